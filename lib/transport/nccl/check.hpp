#pragma once
/// NCCL's codes as errors.

#include <nccl.h>

namespace baton::nccl {

/// Throws Error(transport) that names `call`, unless `code` is success. `communicator`: null if
/// there is none.
void check(ncclResult_t code, const char* call, ncclComm_t communicator, int rank, int peer = -1);

}  // namespace baton::nccl
