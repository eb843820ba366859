#pragma once
/// The exchange of the ranks before NCCL starts. Needs neither NCCL nor CUDA.

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

#include "baton/transport.hpp"

namespace baton::nccl {

/// A rank's place, as NCCL tells ranks apart: all must differ.
struct Seat {
  std::string host;   ///< its host, or the name given to NCCL
  std::string gpu;    ///< its GPU on this host
  std::string wrong;  ///< the reason if there is no GPU; otherwise empty
};

/// This process's host, as NCCL will see it.
std::string own_host();

using Identifier = std::array<std::byte, 128>;

/// Calls `make` on rank 0 and returns its identifier on all ranks. Collective; uses tag 0.
///
/// Throws Error(unsupported) with the same sentence on all ranks if a seat is wrong, if two seats
/// are equal, or if `make` throws. Throws Error(timeout) if ranks are missing after `limit` (0:
/// never): rank 0 tells the ranks that came. If rank 0 is missing, the others give up after twice
/// the limit.
Identifier agree(Transport& host, const Seat& own, const std::function<Identifier()>& make,
                 std::chrono::milliseconds limit);

}  // namespace baton::nccl
