#pragma once
/// Makes a communicator of NCCL for connected ranks, and waits for its calls.

#include <nccl.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>

#include "baton/device.hpp"
#include "baton/transport.hpp"

namespace baton::nccl {

/// Throws Error(transport) that names `call`, unless `code` is success. `communicator`: null if
/// there is none.
void check(ncclResult_t code, const char* call, ncclComm_t communicator, int rank, int peer = -1);

/// Makes NCCL's communicator for the ranks of `host`, each with a CUDA device. The caller destroys
/// it. If `limit` is not 0, its calls do not block (NCCL's "blocking" is 0), and settle() waits for
/// them. Collective; throws as nccl_transport() does.
ncclComm_t connect(Transport& host, Device& device, std::chrono::milliseconds limit);

/// Waits until a nonblocking communicator has finished a call; `code` is the call's result. Throws
/// Error(timeout) after `limit` (0: never), with a sentence that begins with `expected`; otherwise
/// throws as check() does. `interrupted`: throws Error(transport) once it is true.
void settle(ncclResult_t code, const char* call, ncclComm_t communicator, int rank,
            std::chrono::milliseconds limit, const std::function<std::string()>& expected,
            const std::atomic<bool>* interrupted = nullptr);

/// Waits until a new communicator is ready; aborts it after a failure. Otherwise as settle().
void finish(ncclComm_t made, const char* call, int rank, std::chrono::milliseconds limit,
            const std::function<std::string()>& expected);

}  // namespace baton::nccl
