#pragma once

#include <utility>
#include <vector>

#include "baton/verify.hpp"

namespace baton::proving {

/// Collects flaws: the first of each kind on each rank.
class Findings {
 public:
  void reset(int size) {
    seen_.assign(static_cast<std::size_t>(size), 0);
    found_.clear();
  }
  /// Calls `sentence` only for the first finding of its kind on its rank.
  template <class Sentence>
  void add(Flaw flaw, int rank, int step, const Sentence& sentence) {
    std::uint32_t& seen = seen_[static_cast<std::size_t>(rank)];
    const std::uint32_t bit = 1u << static_cast<unsigned>(flaw);
    if (seen & bit) return;
    seen |= bit;
    found_.push_back({flaw, rank, step, sentence()});
  }
  bool any() const { return !found_.empty(); }
  bool any(Flaw flaw) const {
    for (const Finding& finding : found_) {
      if (finding.flaw == flaw) return true;
    }
    return false;
  }
  std::vector<Finding> take() { return std::move(found_); }

 private:
  std::vector<std::uint32_t> seen_;
  std::vector<Finding> found_;
};

}  // namespace baton::proving
