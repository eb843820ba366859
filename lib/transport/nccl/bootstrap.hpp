#pragma once
/// What ranks tell each other before NCCL is asked. Needs neither NCCL nor CUDA.

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

#include "baton/transport.hpp"

namespace baton::nccl {

/// Where a rank is, as NCCL tells ranks apart: no two may be equal.
struct Seat {
  std::string host;   ///< its host, or what NCCL is told instead
  std::string gpu;    ///< its GPU on this host
  std::string wrong;  ///< why there is none; empty: nothing
};

/// This process' host, as NCCL will see it.
std::string own_host();

using Identifier = std::array<std::byte, 128>;

/// The identifier that `make` makes on rank 0, on all ranks. Throws Error(unsupported) with one
/// sentence on all where a seat is wrong or two are equal, or where `make` throws. Collective, by
/// tag 0. Where ranks do not come within `limit`, unless it is 0, rank 0 tells those that have
/// come: Error(timeout); where rank 0 does not, the others give up after twice as long.
Identifier agree(Transport& host, const Seat& own, const std::function<Identifier()>& make,
                 std::chrono::milliseconds limit);

}  // namespace baton::nccl
