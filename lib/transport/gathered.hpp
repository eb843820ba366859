#pragma once
/// A first exchange among all ranks, for example of their places.

#include <cstddef>
#include <span>
#include <type_traits>
#include <vector>

#include "baton/transport.hpp"

namespace baton::transport {

/// Some ranks of a group, this one among them, numbered in this order.
class Part {
 public:
  /// All of them.
  Part(Transport& group) : group_(group), size_(group.size()), index_(group.rank()) {}
  Part(Transport& group, const std::vector<int>& ranks);

  Transport& group() const { return group_; }
  int size() const { return size_; }
  int index() const { return index_; }
  int rank(int index) const {
    return ranks_.empty() ? index : ranks_[static_cast<std::size_t>(index)];
  }

 private:
  Transport& group_;
  std::vector<int> ranks_;
  int size_, index_;
};

/// Bruck's all-gather in ceil(log2 P) rounds. `blocks` has equal room for each rank's block, in
/// order; this rank's block is already filled in. Collective.
void all_gather(const Part& part, std::span<std::byte> blocks, int tag = 0);

/// The value of each rank. Collective.
template <class T>
std::vector<T> gathered(const Part& part, const T& own, int tag = 0) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::vector<T> values(static_cast<std::size_t>(part.size()));
  values[static_cast<std::size_t>(part.index())] = own;
  all_gather(part, std::as_writable_bytes(std::span(values)), tag);
  return values;
}

}  // namespace baton::transport
