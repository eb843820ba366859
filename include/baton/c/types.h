#pragma once
/// Statuses, datatypes, ops and handles of the C interface; see baton/baton.h.

// NOLINTBEGIN(modernize-use-using, modernize-deprecated-headers): it is C
#include <stddef.h>
#include <stdint.h>

/// Marks a function of the C interface.
#ifdef __cplusplus
#define BATON_C_API extern "C" __attribute__((visibility("default")))
#else
#define BATON_C_API extern __attribute__((visibility("default")))
#endif

/// Ranks that can send to each other, and this process's or thread's rank among them.
typedef struct baton_transport baton_transport;
/// A group of ranks and the collectives among them.
typedef struct baton_communicator baton_communicator;
/// An operation under way.
typedef struct baton_request baton_request;
/// A collective call that can be started any number of times.
typedef struct baton_plan baton_plan;
/// Options of a communicator.
typedef struct baton_options baton_options;
/// Schedules, one for each rank.
typedef struct baton_schedules baton_schedules;
/// Events in time, predicted or measured.
typedef struct baton_timeline baton_timeline;

/// Statuses: results of functions. After BATON_INVALID_ARGUMENT, BATON_MISMATCH and
/// BATON_UNSUPPORTED a communicator remains usable; after the others it refuses further calls.
enum {
  BATON_OK = 0,
  BATON_INVALID_ARGUMENT = 1,  ///< an argument is wrong; nothing was sent
  BATON_MISMATCH = 2,          ///< ranks called different things; nothing was sent
  BATON_TRUNCATED = 3,         ///< a message had not the length that its receiver expected
  BATON_TRANSPORT = 4,         ///< the transport failed
  BATON_TIMEOUT = 5,           ///< no progress for longer than the timeout
  BATON_UNSUPPORTED = 6,       ///< this build or transport cannot do it
  BATON_MEMORY = 7,            ///< there is not enough memory
  BATON_DEVICE = 8,            ///< a device failed
  BATON_FAILED = 9             ///< a function of the caller's failed, or something unforeseen
};

/// Datatypes. Integers wrap around. 8- and 16-bit floats fold in 32 bits, rounded to nearest even.
enum {
  BATON_I8 = 0,
  BATON_U8 = 1,
  BATON_I32 = 2,
  BATON_U32 = 3,
  BATON_I64 = 4,
  BATON_U64 = 5,
  BATON_F8E4M3 = 6,
  BATON_F8E5M2 = 7,
  BATON_F16 = 8,
  BATON_BF16 = 9,
  BATON_F32 = 10,
  BATON_F64 = 11,
  BATON_USER = 12  ///< elements of a user's op, in reductions by that op
};

/// An op: one of the values below, or a user's op.
typedef intptr_t baton_op;

/// Built-in ops. BATON_LOGICAL_* and BATON_BIT_* are for integers. BATON_AVG is the sum, divided by
/// the number of ranks (integers: truncated toward zero).
enum {
  BATON_SUM = 1,
  BATON_AVG = 2,
  BATON_PROD = 3,
  BATON_MIN = 4,
  BATON_MAX = 5,
  BATON_LOGICAL_AND = 6,
  BATON_LOGICAL_OR = 7,
  BATON_LOGICAL_XOR = 8,
  BATON_BIT_AND = 9,
  BATON_BIT_OR = 10,
  BATON_BIT_XOR = 11
};

/// into[i] = left[i] (+) right[i] for `count` elements. `into` may be `left` or `right`. Must be
/// associative and give the same bits on all ranks. Called by threads that are in the library, also
/// by one in a call of another communicator, and by several at once.
typedef void (*baton_op_function)(void* into, const void* left, const void* right, size_t count,
                                  void* context);

/// What is known of an error.
typedef struct baton_error {
  size_t size;               ///< sizeof(baton_error)
  int status;                ///< BATON_OK: there has been no error
  int rank;                  ///< that raised it, in its communicator; -1: unknown, as below
  int peer;                  ///< that the rank waited for or heard from
  int step;                  ///< of the schedule
  int backend_code;          ///< the transport's own code; 0: none
  const char* sentence;      ///< this and the next texts: until the thread's next error
  const char* operation;     ///< "all_reduce #12"; empty: none
  const char* backend_text;  ///< the transport's own words; empty: none
} baton_error;

/// BATON_ABI_VERSION of the library that the program runs with.
BATON_C_API int baton_abi_version(void);
/// Version of the library that the program runs with: "0.2.0".
BATON_C_API const char* baton_version(void);

/// The sentence of the calling thread's latest error, with what was expected and what was found;
/// empty: there has been none. Never NULL; valid until the thread's next error. Functions that
/// succeed leave it as it is.
BATON_C_API const char* baton_last_error(void);
/// Fills `*error` with what is known of the calling thread's latest error.
BATON_C_API int baton_last_error_details(baton_error* error);
/// "invalid_argument" and so on; "unknown" for a number that is no status.
BATON_C_API const char* baton_status_name(int status);

/// Bytes of an element; 0 for BATON_USER and for a number that is no datatype.
BATON_C_API size_t baton_datatype_bytes(int type);

/// `*op` is the user's op of `function`, until baton_op_destroy(). `context` is handed to it.
/// `commutative`: whether a (+) b is b (+) a; if 0, contributions fold in rank order. `label` names
/// it in messages; NULL: "user". `element_bytes`: of an element of BATON_USER; 0: the op is for the
/// datatypes of the library. Errors: BATON_INVALID_ARGUMENT.
BATON_C_API int baton_op_create(baton_op_function function, void* context, int commutative,
                                const char* label, size_t element_bytes, baton_op* op);
/// Destroys a user's op, which no call and no plan may use any more. Built-in ops stay.
BATON_C_API void baton_op_destroy(baton_op op);

// NOLINTEND(modernize-use-using, modernize-deprecated-headers)
