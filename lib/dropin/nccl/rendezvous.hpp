#pragma once
/// How the ranks of a communicator find each other: NCCL's unique identifier.

#include <nccl.h>

#include <memory>

#include "baton/transport.hpp"
#include "identifier.hpp"

namespace baton::nccl_abi {

/// An identifier of a new meeting in this process, which a thread receives. Throws
/// Error(transport).
ncclUniqueId make_identifier();
/// Throws Error(invalid_argument) unless make_identifier() made it, in any process.
Origin origin_of(const ncclUniqueId& identifier);

/// The transport of rank `rank` of `size`, whose memory is that of a device: threads' if all ranks
/// are in this process, else UCX's. Collective. Throws Error(transport, timeout, mismatch), and as
/// platform::device().
std::unique_ptr<Transport> connect(const Origin& origin, int rank, int size, int ordinal);

}  // namespace baton::nccl_abi
