#pragma once
/// Options of a communicator, by name; see baton/baton.h. Names and forms are those of the
/// environment variables.

#include "baton/c/types.h"

/// `*options` are the library's defaults; the environment has no say.
BATON_C_API int baton_options_create(baton_options** options);
/// `*options` are the library's defaults, then what the environment says. Errors:
/// BATON_INVALID_ARGUMENT with the variable, what was expected and what was found.
BATON_C_API int baton_options_from_environment(baton_options** options);
/// Sets an option as its environment variable would: "BATON_ALL_REDUCE" to "ring:128K",
/// "BATON_TIMEOUT" to "30" (seconds). Errors: BATON_INVALID_ARGUMENT, and the options stay as they
/// were.
BATON_C_API int baton_options_set(baton_options* options, const char* name, const char* value);
/// Destroys options; communicators that were made with them keep theirs.
BATON_C_API void baton_options_destroy(baton_options* options);

/// The number of options that there are.
BATON_C_API int baton_option_count(void);
/// Texts about option `index`, from 0 to baton_option_count() - 1: its name, the form of its value
/// and its meaning. They live as long as the library. NULL: not wanted. Errors:
/// BATON_INVALID_ARGUMENT.
BATON_C_API int baton_option_info(int index, const char** name, const char** form,
                                  const char** meaning);
