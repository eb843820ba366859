#pragma once
/// A first exchange among all ranks, for example of their places.

#include <cstddef>
#include <span>
#include <type_traits>
#include <vector>

#include "baton/transport.hpp"

namespace baton::transport {

/// Bruck's all-gather in ceil(log2 P) rounds. `blocks` has equal room for each rank's block, in
/// rank order; this rank's block is already filled in. Collective.
void all_gather(Transport& group, std::span<std::byte> blocks, int tag = 0);

/// The value of each rank. Collective.
template <class T>
std::vector<T> gathered(Transport& group, const T& own, int tag = 0) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> values(static_cast<std::size_t>(group.size()));
  values[static_cast<std::size_t>(group.rank())] = own;
  all_gather(group, std::as_writable_bytes(std::span(values)), tag);
  return values;
}

}  // namespace baton::transport
