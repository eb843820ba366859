#pragma once
/// Schedules of the C interface: read, printed, proved, simulated and run; see baton/baton.h.

// NOLINTBEGIN(modernize-use-using, modernize-deprecated-headers): it is C
#include "baton/c/types.h"

/// `*schedules` are those of a text in the form of lib/schedule/README.md, one for each rank that
/// it has. `origin` names the text in errors; NULL: "schedule". Errors: BATON_INVALID_ARGUMENT with
/// the line, what was expected and what was found.
BATON_C_API int baton_schedules_parse(const char* text, const char* origin,
                                      baton_schedules** schedules);
/// `*schedules` are those of a built-in algorithm of a collective ("all_reduce", "ring") on `ranks`
/// ranks, for `count` elements as the function of that name takes them, cut into pieces of
/// `segment` elements; 0: not cut. `root` counts where the collective has one. Errors:
/// BATON_INVALID_ARGUMENT, also if the algorithm does not serve these ranks.
BATON_C_API int baton_schedules_generate(const char* collective, const char* algorithm, int ranks,
                                         int64_t count, int root, int64_t segment,
                                         baton_schedules** schedules);
/// The number of schedules; -1 for NULL.
BATON_C_API int baton_schedules_count(const baton_schedules* schedules);
/// The text form of schedule `index`, or of all for -1. Errors: BATON_INVALID_ARGUMENT.
BATON_C_API int baton_schedules_print(const baton_schedules* schedules, int index, char* text,
                                      size_t room, size_t* length);
/// A table of what each rank holds after every round, with small numbers as inputs. Errors:
/// BATON_INVALID_ARGUMENT if the schedules are too large for people to read.
BATON_C_API int baton_walk_through(const baton_schedules* schedules, char* text, size_t room,
                                   size_t* length);
/// Destroys schedules.
BATON_C_API void baton_schedules_destroy(baton_schedules* schedules);

/// Runs this rank's schedule of `schedules`, as it is; returns when this rank's part is complete.
/// Input and output have the elements that the schedule's header states. Every rank runs its part.
/// Errors: as of collectives.
BATON_C_API int baton_run_schedules(baton_communicator* communicator,
                                    const baton_schedules* schedules, const void* input,
                                    int64_t input_count, void* output, int64_t output_count,
                                    int type, baton_op op);

/// Result of a check.
typedef struct baton_proof {
  size_t size;       ///< sizeof(baton_proof)
  int64_t findings;  ///< flaws; 0: the schedules are proved
  int64_t rounds;    ///< longest path in the one-port model; -1 if there is none
  int64_t messages;  ///< of all ranks
} baton_proof;

/// Checks the schedules of all ranks against the promise of their collective, for an op that
/// commutes: each contribution once, sends matched, no deadlock even if every send waits for its
/// receiver, no races. `text` has a line for each finding, empty if there is none. BATON_OK also
/// where there are findings. Errors: BATON_INVALID_ARGUMENT if the schedules' headers contradict
/// each other.
BATON_C_API int baton_verify(const baton_schedules* schedules, baton_proof* proof, char* text,
                             size_t room, size_t* length);

/// How schedules are simulated.
typedef struct baton_simulate_options {
  size_t size;         ///< sizeof(baton_simulate_options)
  int ranks_per_host;  ///< 0: the network's; -1: all on one host
  int window;          ///< messages in flight per lane, peer and direction; 0: 2
  int calls;           ///< that each rank makes, one right after the other; 0: 1
  int64_t segment;     ///< elements of a piece of a message; 0: not cut
} baton_simulate_options;

/// Result of a simulation.
typedef struct baton_prediction {
  size_t size;           ///< sizeof(baton_prediction)
  int64_t total_ns;      ///< from the common start to the end of the last rank
  int64_t messages;      ///< of all ranks
  int64_t steps;         ///< of all ranks
  int64_t bytes_within;  ///< between ranks of one host
  int64_t bytes_across;  ///< from host to host
} baton_prediction;

/// The time that the schedules take with elements of `element_bytes` bytes on `network`: a file, or
/// the name of a network that comes with the library, such as "infiniband-100g". NULL options:
/// defaults. `finish_ns`, unless NULL, has room for each rank's end. `timeline`, unless NULL, gets
/// the time of every step, and `calls` must be 1 then. Errors: BATON_INVALID_ARGUMENT where
/// messages do not match, ranks wait for each other for ever, or there is no such network.
BATON_C_API int baton_simulate(const baton_schedules* schedules, size_t element_bytes,
                               const char* network, const baton_simulate_options* options,
                               baton_prediction* prediction, int64_t* finish_ns,
                               baton_timeline** timeline);

// NOLINTEND(modernize-use-using, modernize-deprecated-headers)
