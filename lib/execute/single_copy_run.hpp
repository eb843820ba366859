#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "run.hpp"
#include "strides.hpp"

namespace baton::execute {

/// A run whose receivers read large messages in the senders' memory, if the transport offers that
/// (SingleCopy). If a message's fold depends on nothing else when the receive is posted, it is
/// folded in parts while it is read; likewise the copy that moves it to its places. If the
/// transport takes messages that are made in parts, the copy that gathers a message is carried out
/// while it is sent. Other messages are read into their places.
class SingleCopyRun : public Run {
 public:
  SingleCopyRun(std::shared_ptr<const Plan> plan, int window);

  void abandon() noexcept override;

 protected:
  void use(Transport& transport) override;
  void post(std::uint32_t flight) override;
  void landed(std::uint32_t flight) override {
    if (taking_ != 0) [[unlikely]]
      note_taken(flight);
  }
  void work(std::uint32_t step) override;

  /// Whether the receiver reads this message in its sender's memory.
  bool reads(int peer, std::size_t bytes) const {
    return bytes >= least_read_ && single_copy_->reads(peer);
  }
  /// Posts such a message; `local`: the step that goes with a receive, or Plan::none.
  void post_read(std::uint32_t flight, std::uint32_t local);
  /// The fold or copy for which only this receive is missing, given the open dependencies `waits`;
  /// or Plan::none.
  std::uint32_t taker_after(std::uint32_t step, std::span<const std::uint32_t> waits) const;
  /// Whether the local step is carried out with its message.
  bool with_message(std::uint32_t step) { return !with_message_.empty() && was_with_message(step); }

 private:
  enum class With : std::uint8_t {
    none,
    received,  ///< this time
    sent,      ///< always
  };
  /// A local step that runs while its message comes or goes.
  struct Task {
    SingleCopyRun* run = nullptr;
    std::uint32_t flight = 0;
    std::uint32_t step = Plan::none;  // none: there is no such step
    std::size_t folded = 0;           // bytes
    bool outgrows = false;            // a receive that is larger than the cache
    Strides strides{};                // of a copy
    Source source{};                  // of a send
  };
  /// Folds a part of a message (a Destination).
  static void fold_part(void* task, std::byte* part, std::size_t bytes);
  /// Moves a part of a message to its places (a Destination).
  static void scatter_part(void* task, std::byte* part, std::size_t bytes);
  /// Makes a part of a message (a Source).
  static void gather_part(void* task, std::byte* part, std::size_t bytes) noexcept;
  void mark_sent();
  bool was_with_message(std::uint32_t step);
  [[gnu::cold]] void note_taken(std::uint32_t flight);

  SingleCopy* single_copy_ = nullptr;                                 // the transport's, if any
  Giving* giving_ = nullptr;                                          // likewise
  std::size_t least_read_ = std::numeric_limits<std::size_t>::max();  // bytes
  std::size_t taking_ = 0;          // receives under way with a local step
  std::vector<Task> tasks_;         // of each flight, if any step may go with a message
  std::vector<With> with_message_;  // of each step, likewise
};

}  // namespace baton::execute
