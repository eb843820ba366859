#pragma once
/// Recordings and timelines of the C interface; see baton/baton.h. The program `baton timeline`
/// draws recordings that are files.

// NOLINTBEGIN(modernize-use-using, modernize-deprecated-headers): it is C
#include "baton/c/types.h"

/// From now on the times of every step are recorded, also on communicators that are split from this
/// one while it records. Each rank keeps its last `events` events (40 bytes each); 0: 262144. The
/// option BATON_TRACE does the same for a communicator's whole life. Collective. Errors:
/// BATON_INVALID_ARGUMENT, BATON_TIMEOUT.
BATON_C_API int baton_start_recording(baton_communicator* communicator, int64_t events);
/// Ends it; rank 0 writes all that was recorded to `file`. Collective. Errors: BATON_TIMEOUT where
/// ranks do not take part; BATON_INVALID_ARGUMENT on all ranks where the file cannot be written,
/// and where nothing is being recorded.
BATON_C_API int baton_stop_recording(baton_communicator* communicator, const char* file);
/// Ends it; on rank 0 `*timeline` is all that was recorded, elsewhere NULL. Collective. Errors: as
/// baton_stop_recording().
BATON_C_API int baton_stop_recording_timeline(baton_communicator* communicator,
                                              baton_timeline** timeline);

/// Adds a computation of class `kind` ("forward", "backward", "optimizer", "other" …) to the
/// recording that this thread has begun last; without one that goes on it does nothing. Times are
/// nanoseconds of CLOCK_MONOTONIC. Errors: BATON_INVALID_ARGUMENT for an unknown class.
BATON_C_API int baton_record_computation(const char* name, const char* kind, int64_t begin_ns,
                                         int64_t end_ns);

/// `*timeline` is a recording read from `number` files: one, or the parts that ranks wrote each for
/// itself. `force`: also where clocks were not compared. Errors: BATON_INVALID_ARGUMENT.
BATON_C_API int baton_read_trace(const char* const* files, int number, int force,
                                 baton_timeline** timeline);

/// Facts about a timeline.
typedef struct baton_timeline_facts {
  size_t size;             ///< sizeof(baton_timeline_facts)
  int ranks;               ///< that it shows
  int operations;          ///< calls of collectives
  int64_t events;          ///< steps of ranks
  int64_t duration_ns;     ///< from the first event to the end of the last
  int64_t dropped;         ///< events that ranks had no room for
  int64_t clock_error_ns;  ///< bound on how far a host's clock is off rank 0's
} baton_timeline_facts;

/// Fills `*facts`.
BATON_C_API int baton_timeline_facts_of(const baton_timeline* timeline,
                                        baton_timeline_facts* facts);

/// Kinds of steps.
enum {
  BATON_STEP_SEND = 0,
  BATON_STEP_RECV = 1,
  BATON_STEP_FOLD = 2,
  BATON_STEP_COPY = 3,
  BATON_STEP_DIVIDE = 4,
  BATON_STEP_COMPUTE = 5
};

/// One step of one rank; times are ns from the timeline's origin. A message travels from the
/// `posted_ns` of its send to the `end_ns` of its receive.
typedef struct baton_event {
  size_t size;        ///< sizeof(baton_event)
  int operation;      ///< from 0
  int step;           ///< of the rank's schedule, from 0
  int rank;           ///< of the timeline
  int peer;           ///< of a message; else -1
  int kind;           ///< BATON_STEP_SEND and so on
  int64_t bytes;      ///< of a message, or of one operand of another step
  int64_t posted_ns;  ///< the step is handed to the transport, or may begin
  int64_t start_ns;   ///< a message: its rank is free again; others: work begins
  int64_t end_ns;     ///< the message is there, or the buffer is free, or the work is done
} baton_event;

/// Fills `*event` with event `index`, by rank, then by time. Errors: BATON_INVALID_ARGUMENT.
BATON_C_API int baton_timeline_event(const baton_timeline* timeline, int64_t index,
                                     baton_event* event);
/// Name and choice of an operation: "all_reduce ring:131072". Errors: BATON_INVALID_ARGUMENT.
BATON_C_API int baton_timeline_operation(const baton_timeline* timeline, int operation, char* text,
                                         size_t room, size_t* length);
/// The chain of events that determined the time of the last event, in order: writes at most `room`
/// indices of events to `events`; `*number` is the number of all. `events` may be NULL if `room` is
/// 0.
BATON_C_API int baton_critical_path(const baton_timeline* timeline, int64_t* events, int64_t room,
                                    int64_t* number);
/// Destroys a timeline.
BATON_C_API void baton_timeline_destroy(baton_timeline* timeline);

// NOLINTEND(modernize-use-using, modernize-deprecated-headers)
