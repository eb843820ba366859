#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "arguments.hpp"
#include "baton/error.hpp"
#include "planner.hpp"
#include "runs.hpp"

namespace baton::communicator {

/// Compares a call among all ranks before it runs: rank 0 gathers every rank's description and
/// broadcasts its verdict. All ranks throw the same sentence. Where each rank has counts of its
/// own, ranks then tell each other what they will send, and rank 0 gathers and broadcasts once
/// more.
class Comparison {
 public:
  /// `wrong`: this rank's own error, null if its call is valid.
  Comparison(const Context& context, Planner& planner, Runs& runs, const Arguments& arguments,
             const Choice& choice, const Error* wrong);
  ~Comparison();

  /// Sends this rank's description; `tag` is the operation's.
  void start(int tag);
  /// Advances the comparison; true if it is finished and all calls are equal. Throws
  /// Error(invalid_argument) if all ranks' calls are wrong in the same way, Error(mismatch) if the
  /// calls differ.
  bool step();
  /// Whether step() has thrown the verdict of all ranks; nothing is in flight then.
  bool refused() const { return refused_; }
  void abandon() noexcept;
  const execute::Run& current() const { return *part().run; }
  /// Grows with each part of the comparison that is complete; at most `stages`.
  std::size_t stage() const { return stage_; }
  static constexpr std::size_t stages = 5;

 private:
  void find_pairs(const Arguments& arguments);
  void compare_pairs();
  void judge();
  void conclude();
  const Execution& part() const {
    return stage_ == exchanging ? exchange_ : stage_ % 3 == gathering ? gather_ : broadcast_;
  }

  static constexpr std::size_t gathering = 0, telling = 1, exchanging = 2;
  const Context& context_;
  Runs& runs_;
  std::vector<std::byte> records_;  // this rank's; on rank 0, all others' behind it
  std::vector<std::byte> verdict_;
  Execution gather_, broadcast_, exchange_;
  int tag_ = 0;
  std::size_t stage_ = 0;
  bool refused_ = false;
  // Elements to send to each rank and to receive from it; empty: all ranks know all counts.
  std::vector<std::int64_t> sends_, expects_, announced_;
};

}  // namespace baton::communicator
