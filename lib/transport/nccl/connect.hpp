#pragma once
/// From ranks that can speak to each other to a communicator of NCCL's.

#include <nccl.h>

#include "baton/device.hpp"
#include "baton/transport.hpp"

namespace baton::nccl {

/// A communicator of the ranks of `host`, of which each has a CUDA device; the caller destroys it.
/// Collective; errors as nccl_transport()'s.
ncclComm_t connect(Transport& host, Device& device);

}  // namespace baton::nccl
