#pragma once
/// Messages between CUDA devices by NCCL's ncclSend and ncclRecv. In the library baton-nccl.

#include <memory>

#include "baton/group_transport.hpp"
#include "baton/transport.hpp"

namespace baton {

/// A transport of the ranks of `host`, which carries NCCL's identifier by its tag 0, must not be in
/// use by anything else meanwhile, and may go afterwards. `device` is cuda_device()'s and outlives
/// the transport. Collective over `host`.
///
/// Throws Error(unsupported) on all ranks, with one sentence, before NCCL is asked, where a device
/// is not CUDA's, or where two ranks have one GPU, which NCCL refuses: unless they are processes
/// with different NCCL_HOSTID in their environments, between which it uses the network. Throws
/// Error(transport) with NCCL's code and text where NCCL fails.
///
/// NCCL connects ranks when they first have messages for each other; that waits for the peer's call
/// on the host. What is given while the caller has a group of NCCL's own open is given in that
/// group, and its order is lost.
std::unique_ptr<GroupTransport> nccl_transport(Transport& host, Device& device);

}  // namespace baton
