#pragma once
/// The algorithm that a communicator chooses for a call, without a communicator.

#include <cstddef>

#include "baton/options.hpp"
#include "baton/schedule/algorithm.hpp"

#pragma GCC visibility push(default)
namespace baton {

/// The algorithm and the segment of the least estimate: what a communicator without a tuning table
/// chooses for calls whose options name none. Depends on no data that differ between ranks. Throws
/// Error(invalid_argument) if no algorithm of the registry serves the problem, or elements have 0
/// bytes.
Choice chosen(const Registry& registry, const Problem& problem, std::size_t element_bytes);

/// The schedule of a choice that names an algorithm, cut into pieces of its segment, as a
/// communicator runs it. Throws Error(invalid_argument) if the algorithm does not serve the
/// problem, or elements have 0 bytes.
Schedule scheduled(const Registry& registry, const Problem& problem, std::size_t element_bytes,
                   const Choice& choice);

}  // namespace baton
#pragma GCC visibility pop
