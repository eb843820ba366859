#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "run.hpp"

namespace baton::execute {

/// A run whose receivers read large messages in the senders' memory, if the transport offers that
/// (SingleCopy). If a message's fold depends on nothing else when the receive is posted, it is
/// folded in parts while it is read. Other messages are read into their places.
class SingleCopyRun : public Run {
 public:
  SingleCopyRun(std::shared_ptr<const Plan> plan, int window);

  void abandon() noexcept override;

 protected:
  void use(Transport& transport) override;
  void post(std::uint32_t flight) override;
  void landed(std::uint32_t flight) override {
    if (folding_ != 0) [[unlikely]]
      note_fold(flight);
  }
  void work(std::uint32_t step) override;

  /// Whether the receiver reads this message in its sender's memory.
  bool reads(int peer, std::size_t bytes) const {
    return bytes >= least_read_ && single_copy_->reads(peer);
  }
  /// Posts such a message.
  void post_read(std::uint32_t flight, std::uint32_t fold);
  /// The fold for which only this receive is missing, given the open dependencies `waits`; or
  /// no_fold.
  std::uint32_t fold_after(std::uint32_t step, std::span<const std::uint32_t> waits) const {
    const std::uint32_t fold = plan_->items()[step].fold;
    return fold != Plan::no_fold && waits[fold] == 1 ? fold : Plan::no_fold;
  }
  /// Whether the step was carried out while its message was read.
  bool folded(std::uint32_t step) {
    return !folded_.empty() && std::exchange(folded_[step], char{0}) != 0;
  }

 private:
  /// A fold that runs while its message is read.
  struct Fold {
    SingleCopyRun* run = nullptr;
    std::uint32_t flight = 0;
    std::uint32_t step = Plan::no_fold;  // no_fold: none
    std::size_t folded = 0;              // bytes
    bool outgrows = false;               // larger than the cache
  };
  /// Folds a part of a message (a Destination).
  static void take(void* fold, std::byte* part, std::size_t bytes);
  [[gnu::cold]] void note_fold(std::uint32_t flight);

  SingleCopy* single_copy_ = nullptr;                                 // the transport's, if any
  std::size_t least_read_ = std::numeric_limits<std::size_t>::max();  // bytes
  std::size_t folding_ = 0;   // flights with a fold under way
  std::vector<Fold> folds_;   // of each flight, if any step may fold
  std::vector<char> folded_;  // of each step, likewise
};

}  // namespace baton::execute
