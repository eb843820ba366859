#pragma once
/// How the ranks of a communicator find each other: NCCL's unique identifier.

#include <nccl.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "baton/transport.hpp"

namespace baton::nccl_abi {

/// The content of an identifier: the place where ranks meet, and for which meeting.
struct Origin {
  std::vector<std::string> addresses;
  std::uint64_t key = 0, meeting = 0;

  /// The same place for another meeting, which all that know `what` agree on.
  Origin with(std::uint64_t what) const;
};

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
