#pragma once
/// Communicators, messages, requests and plans of the C interface; see baton/baton.h.

#include "baton/c/types.h"

/// A communicator of the ranks of a transport, which belongs to it from now on, after an error,
/// too. NULL options: baton_options_from_environment(). Collective: ranks agree on rank 0's
/// options. Errors: BATON_INVALID_ARGUMENT for a wrong option, BATON_TRANSPORT, BATON_TIMEOUT.
BATON_C_API int baton_communicator_create(baton_transport* transport, const baton_options* options,
                                          baton_communicator** communicator);
/// Destroys it. Requests, plans and splits of it remain valid. Collective where the option
/// BATON_TRACE is set, as the recording is then written.
BATON_C_API void baton_communicator_destroy(baton_communicator* communicator);

/// This rank, from 0; -1 for NULL.
BATON_C_API int baton_rank(const baton_communicator* communicator);
/// The number of ranks; -1 for NULL.
BATON_C_API int baton_size(const baton_communicator* communicator);

/// Renames the communicator in errors and in `baton status`: "world" until then, "world/1:0" of the
/// part of its first split that has color 0. Give the same name on all ranks. Errors:
/// BATON_INVALID_ARGUMENT for an empty name.
BATON_C_API int baton_set_name(baton_communicator* communicator, const char* name);

/// The communicator of the ranks that give the same color, ordered by key, then by rank; NULL, with
/// BATON_OK, where color is negative. Collective. Errors: BATON_TRANSPORT.
BATON_C_API int baton_split(baton_communicator* communicator, int color, int key,
                            baton_communicator** part);
/// The communicator of the ranks that go on after a failure: of those that call this within
/// `seconds`, in their order here. All of them call it, for each failure once. Errors:
/// BATON_TIMEOUT for a rank that comes too late; BATON_UNSUPPORTED; BATON_INVALID_ARGUMENT for
/// seconds that are not more than 0.
BATON_C_API int baton_shrink(baton_communicator* communicator, double seconds,
                             baton_communicator** survivors);

/// Sends `count` elements to another rank or to this one; returns when `data` may be used again.
/// Messages of equal tag (0 to 1023) arrive in order. Errors: BATON_INVALID_ARGUMENT,
/// BATON_TRANSPORT, BATON_TIMEOUT.
BATON_C_API int baton_send(baton_communicator* communicator, const void* data, int64_t count,
                           int type, int peer, int tag);
/// Receives a message of exactly `count` elements. Errors: as baton_send(), and BATON_TRUNCATED for
/// a message of another length.
BATON_C_API int baton_recv(baton_communicator* communicator, void* data, int64_t count, int type,
                           int peer, int tag);
/// As baton_send(), but returns at once.
BATON_C_API int baton_start_send(baton_communicator* communicator, const void* data, int64_t count,
                                 int type, int peer, int tag, baton_request** request);
/// As baton_recv(), but returns at once.
BATON_C_API int baton_start_recv(baton_communicator* communicator, void* data, int64_t count,
                                 int type, int peer, int tag, baton_request** request);

/// Advances all operations under way; for callers that compute meanwhile. Errors: none of
/// operations; their requests have these.
BATON_C_API int baton_progress(baton_communicator* communicator);

/// Advances all operations of the communicator; `*done` is 1 if this one is complete, else 0. A
/// complete or failed request is destroyed, and `*request` NULL then; a NULL `*request` is
/// complete. Errors: as baton_wait().
BATON_C_API int baton_test(baton_request** request, int* done);
/// Returns when this rank's part is complete: outputs may be read, inputs reused. `*request` is
/// destroyed and NULL then, after an error, too. Returns at once for a NULL `*request`. Errors:
/// BATON_MISMATCH, BATON_TRUNCATED, BATON_TRANSPORT, BATON_TIMEOUT.
BATON_C_API int baton_wait(baton_request** request);

/// Starts the call of a plan (`baton_plan_…`, baton/c/collectives.h) and waits. Errors: as of the
/// collective, and BATON_INVALID_ARGUMENT.
BATON_C_API int baton_plan_run(baton_plan* plan);
/// Starts the call of a plan; the request must be complete before the next start.
BATON_C_API int baton_plan_start(baton_plan* plan, baton_request** request);
/// The choice that the plan runs by: "ring:131072", algorithm and bytes of a piece (0: not cut).
BATON_C_API int baton_plan_choice(const baton_plan* plan, char* text, size_t room, size_t* length);
/// The messages and bytes that this rank sends in a run; the option BATON_CHECK sends more. NULL:
/// not wanted.
BATON_C_API int baton_plan_traffic(const baton_plan* plan, int64_t* messages, int64_t* bytes);
/// Destroys a plan, none of whose requests may be under way.
BATON_C_API void baton_plan_destroy(baton_plan* plan);
