#pragma once
/// Messages with a checksum.

#include <memory>

#include "baton/transport.hpp"

#pragma GCC visibility push(default)
namespace baton {

/// A transport of the same ranks as `inner`, of the host's memory, each of whose messages carries a
/// checksum of its bytes, length, sender and tag: 8 B more. A message that arrives changed is
/// Error(transport). Costs a copy on both sides. All ranks use it, or none. Throws
/// Error(invalid_argument) for a null pointer.
std::unique_ptr<Transport> checked_transport(std::unique_ptr<Transport> inner);

}  // namespace baton
#pragma GCC visibility pop
