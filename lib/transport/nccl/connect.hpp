#pragma once
/// From ranks that can speak to each other to a communicator of NCCL's.

#include <nccl.h>

#include <chrono>
#include <functional>
#include <string>

#include "baton/device.hpp"
#include "baton/transport.hpp"

namespace baton::nccl {

/// A communicator of the ranks of `host`, of which each has a CUDA device; the caller destroys it.
/// With a limit, unless it is 0, it is one whose calls do not block (NCCL's "blocking" is 0): what
/// they start, settle() waits for. Collective; errors as nccl_transport()'s.
ncclComm_t connect(Transport& host, Device& device, std::chrono::milliseconds limit);

/// Returns when what a call of a communicator that does not block has started is done; `code` is
/// what the call returned. Throws Error(timeout) after `limit`, unless it is 0, with the sentence
/// that `expected` begins; other errors as check()'s.
void settle(ncclResult_t code, const char* call, ncclComm_t communicator, int rank,
            std::chrono::milliseconds limit, const std::function<std::string()>& expected);

/// The same, until a communicator that is being made is ready; aborts it where that fails.
void finish(ncclComm_t made, const char* call, int rank, std::chrono::milliseconds limit,
            const std::function<std::string()>& expected);

}  // namespace baton::nccl
