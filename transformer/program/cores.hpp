#pragma once
/// The cores that ranks run on.

#include <vector>

#include "baton/communicator.hpp"

namespace baton::transformer::program {

/// Cores by rank, as the kernel numbers them.
struct Pinning {
  std::vector<std::vector<int>> cores;
  bool shared = false;  ///< whether two ranks of a host share a core
};

/// `each` cores for every rank, of those that it may use: in rank order, those that the fewest of
/// its host's lower ranks have, the lowest first. `hosts` may be null: all share one. Throws
/// Error(invalid_argument) if a rank may use fewer.
Pinning shared_out(const std::vector<std::vector<int>>& usable, int each, const Hosts* hosts);

/// Pins this rank to `each` cores, with all threads that it starts from now on; a rank that is a
/// process, with all that it has. Collective; throws Error(invalid_argument) on all ranks, or on
/// none.
Pinning pin(Communicator& world, int each, bool process);

}  // namespace baton::transformer::program
