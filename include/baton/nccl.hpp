#pragma once
/// Messages between CUDA devices by NCCL's ncclSend and ncclRecv. In the library baton-nccl.

#include <chrono>
#include <memory>

#include "baton/fused_transport.hpp"
#include "baton/options.hpp"
#include "baton/transport.hpp"

#pragma GCC visibility push(default)
namespace baton {

/// A transport of the ranks of `host`, which carries NCCL's identifier by its tag 0, must not be in
/// use by anything else meanwhile, and may go afterwards. `device` is cuda_device()'s and outlives
/// the transport. Collective over `host`.
///
/// If ranks do not come to this call, or do not connect, within the timeout, throws
/// Error(timeout); 0: never. With a timeout NCCL's calls do not block, so that a fused group or
/// a split whose peers do not come ends likewise, and interrupt() ends the former; but NCCL then
/// starts a thread for each one.
///
/// Throws Error(unsupported) on all ranks, with one sentence, before NCCL is asked, where a device
/// is not CUDA's, or where two ranks have one GPU, which NCCL refuses: unless they are processes
/// with different NCCL_HOSTID in their environments, between which it uses the network. Throws
/// Error(transport) with NCCL's code and text where NCCL fails.
///
/// NCCL connects ranks when they first have messages for each other; that waits for the peer's call
/// on the host. What is given while the caller has a group of NCCL's own open is given in that
/// group, and its order is lost.
std::unique_ptr<FusedTransport> nccl_transport(
    Transport& host, Device& device,
    std::chrono::milliseconds timeout = Options::from_environment().timeout);

}  // namespace baton
#pragma GCC visibility pop
