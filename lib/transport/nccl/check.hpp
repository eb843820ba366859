#pragma once
/// From NCCL's codes to the library's exception.

#include <nccl.h>

namespace baton::nccl {

/// Throws Error(transport) that names `call` unless `code` is success. `communicator`: null if it
/// has none.
void check(ncclResult_t code, const char* call, ncclComm_t communicator, int rank, int peer = -1);

}  // namespace baton::nccl
