#pragma once
/// The algorithm that a communicator chooses for a call, without a communicator.

#include <cstddef>

#include "baton/options.hpp"
#include "baton/schedule/algorithm.hpp"

#pragma GCC visibility push(default)
namespace baton {

/// The algorithm and the segment of the least estimate; on several hosts, of the estimates that are
/// within 12 % of it, one whose ranks send the fewest bytes. A communicator without a tuning table
/// chooses the same for calls whose options name none. Its transport's Capabilities::cores is
/// `cores`. Depends on no data that differ between ranks. Throws Error(invalid_argument) if no
/// algorithm of the registry serves the problem, elements have 0 bytes, or `cores` is negative.
Choice chosen(const Registry& registry, const Problem& problem, std::size_t element_bytes,
              int cores = 0);

/// The schedule of a choice that names an algorithm, cut into pieces of its segment, as a
/// communicator runs it. Throws Error(invalid_argument) if the algorithm does not serve the
/// problem, or elements have 0 bytes.
Schedule scheduled(const Registry& registry, const Problem& problem, std::size_t element_bytes,
                   const Choice& choice);

}  // namespace baton
#pragma GCC visibility pop
