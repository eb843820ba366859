#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "program.hpp"

namespace baton::simulating {

/// Words that describe something completely, to find equal things.
using Key = std::vector<std::int64_t>;

struct KeyHash {
  std::size_t operator()(const Key& key) const;
};

/// Flattens ranks' schedules, cut into pieces of `segment` elements. Keeps equal shapes once. Cuts
/// schedules once if they differ only in peers and in the order of operands (with few exceptions).
/// For any number of threads.
class Shapes {
 public:
  Shapes(std::size_t element_bytes, std::int64_t segment, int calls)
      : element_bytes_(element_bytes), segment_(segment), calls_(calls) {}

  FlatRank of(const Schedule& schedule);

 private:
  /// A schedule before it is cut.
  struct Kind {
    std::shared_ptr<const Shape> shape;
    std::vector<std::uint32_t>
        peers;  ///< of each channel, by number in the order of first messages
  };
  FlatRank cut(const Schedule& schedule) const;
  std::shared_ptr<const Shape> unique(std::shared_ptr<const Shape> shape);

  std::size_t element_bytes_;
  std::int64_t segment_;
  int calls_;
  std::mutex mutex_;
  std::unordered_map<Key, Kind, KeyHash> kinds_;
  std::size_t kinds_words_ = 0;
  std::unordered_multimap<std::size_t, std::shared_ptr<const Shape>> shapes_;
};

}  // namespace baton::simulating
