/* Fixed numbers of the C interface, in C: what programs were compiled with must stay. */
#include "baton/baton.h"

#define FIXED(name, value) typedef char fixed_##name[(name) == (value) ? 1 : -1]
#define STRUCT(name, bytes) typedef char struct_##name[sizeof(name) == (bytes) ? 1 : -1]
#define MEMBER(name, member, at) \
  typedef char member_##name##_##member[offsetof(name, member) == (at) ? 1 : -1]

FIXED(BATON_ABI_VERSION, 1);

FIXED(BATON_OK, 0);
FIXED(BATON_INVALID_ARGUMENT, 1);
FIXED(BATON_MISMATCH, 2);
FIXED(BATON_TRUNCATED, 3);
FIXED(BATON_TRANSPORT, 4);
FIXED(BATON_TIMEOUT, 5);
FIXED(BATON_UNSUPPORTED, 6);
FIXED(BATON_MEMORY, 7);
FIXED(BATON_DEVICE, 8);
FIXED(BATON_FAILED, 9);

FIXED(BATON_I8, 0);
FIXED(BATON_U8, 1);
FIXED(BATON_I32, 2);
FIXED(BATON_U32, 3);
FIXED(BATON_I64, 4);
FIXED(BATON_U64, 5);
FIXED(BATON_F8E4M3, 6);
FIXED(BATON_F8E5M2, 7);
FIXED(BATON_F16, 8);
FIXED(BATON_BF16, 9);
FIXED(BATON_F32, 10);
FIXED(BATON_F64, 11);
FIXED(BATON_USER, 12);

FIXED(BATON_SUM, 1);
FIXED(BATON_AVG, 2);
FIXED(BATON_PROD, 3);
FIXED(BATON_MIN, 4);
FIXED(BATON_MAX, 5);
FIXED(BATON_LOGICAL_AND, 6);
FIXED(BATON_LOGICAL_OR, 7);
FIXED(BATON_LOGICAL_XOR, 8);
FIXED(BATON_BIT_AND, 9);
FIXED(BATON_BIT_OR, 10);
FIXED(BATON_BIT_XOR, 11);

FIXED(BATON_STEP_SEND, 0);
FIXED(BATON_STEP_RECV, 1);
FIXED(BATON_STEP_FOLD, 2);
FIXED(BATON_STEP_COPY, 3);
FIXED(BATON_STEP_DIVIDE, 4);
FIXED(BATON_STEP_COMPUTE, 5);

/* Of 64-bit machines. A struct may grow at its end; its first members stay. */
#if UINTPTR_MAX == UINT64_MAX
STRUCT(baton_error, 56);
MEMBER(baton_error, status, 8);
MEMBER(baton_error, backend_code, 24);
MEMBER(baton_error, sentence, 32);
MEMBER(baton_error, backend_text, 48);
STRUCT(baton_ucx_options, 32);
MEMBER(baton_ucx_options, meeting_ms, 8);
MEMBER(baton_ucx_options, concurrent, 24);
STRUCT(baton_proof, 32);
MEMBER(baton_proof, messages, 24);
STRUCT(baton_simulate_options, 32);
MEMBER(baton_simulate_options, calls, 16);
MEMBER(baton_simulate_options, segment, 24);
STRUCT(baton_prediction, 48);
MEMBER(baton_prediction, bytes_across, 40);
STRUCT(baton_timeline_facts, 48);
MEMBER(baton_timeline_facts, events, 16);
MEMBER(baton_timeline_facts, clock_error_ns, 40);
STRUCT(baton_event, 64);
MEMBER(baton_event, kind, 24);
MEMBER(baton_event, end_ns, 56);
#endif

int main(void) { return baton_abi_version() == BATON_ABI_VERSION ? 0 : 1; }
