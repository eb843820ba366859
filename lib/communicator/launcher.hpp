#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../execute/progress.hpp"
#include "operation.hpp"
#include "planner.hpp"
#include "progress_thread.hpp"
#include "recording.hpp"
#include "runs.hpp"

namespace baton::communicator {

/// What a communicator shares with those split from it.
struct Family {
  execute::ProgressList operations;
  execute::UseFlag busy{false};  ///< used where the transport serves one thread at a time
  std::unique_ptr<ProgressThread> progress_thread;  ///< of communicators on a device's memory
};

/// Marks a communicator, or its family, as in use for the length of a call.
class InUse {
 public:
  explicit InUse(execute::UseFlag& flag) : flag_(flag) {
    if (!flag_.enter()) [[unlikely]]
      refuse();
  }
  ~InUse() { flag_.leave(); }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;

 private:
  [[noreturn]] static void refuse();
  execute::UseFlag& flag_;
};

/// Work of one operation.
struct Work {
  execute::CachedPlan* plan = nullptr;
  execute::Kernels kernels{};
  std::span<std::byte* const> bases{};     ///< of the tensors
  const char* name = "";                   ///< in errors
  std::optional<RecordedCall> recorded{};  ///< empty: leaves no trace in a recording
};

/// Starts operations and waits for them. Every operation starts in one way: it takes a run of its
/// plan (load), a number and a tag (enter), and begins; only a repeated call takes a shorter way
/// (run_again).
class Launcher {
 public:
  Launcher(const Context& context, Planner& planner, Recording& recording,
           std::shared_ptr<Family> family);

  /// Throws Error(transport) where no further calls are possible.
  void require_usable() const;
  /// Makes further calls impossible.
  void break_off(std::string why);
  const std::string& broken() const { return broken_; }

  void load(Operation& operation, const Work& work);
  void enter(Operation& operation, const Work& work);
  /// Runs work to its end.
  void run(const Work& work);
  /// The operation of calls that wait: starts it after enter(), and waits for its end.
  Operation& blocking() { return blocking_; }
  void run_blocking();
  /// Runs a repeated call on the run that its entry has at hand.
  void run_again(RepeatedCalls::Entry& entry, std::byte* input, std::byte* output);
  /// Keeps an operation among those under way until forget(). `ordered`: its tag is an operation's,
  /// not a message's.
  void keep(Operation& operation, bool ordered) {
    if (ordered) under_way_.push_back(&operation);
    family_->operations.add(&operation);
  }

  /// Waits for the operation, advancing the family's others.
  void wait(Operation& operation);
  /// Gives the operation up and throws the exception being handled, with the operation's name.
  [[noreturn]] void fail(Operation& operation);
  void forget(Operation& operation) {
    family_->operations.remove(&operation);
    std::erase(under_way_, &operation);
  }

  /// An operation that is not in use; null where there is none.
  std::unique_ptr<Operation> take_idle();
  /// The same, else a new one.
  std::unique_ptr<Operation> take_operation();
  void give_operation(std::unique_ptr<Operation> operation) {
    idle_.push_back(std::move(operation));
  }

  /// A tag for the next operation, and its number.
  int next_tag() {
    ++sequence_;
    tag_turn_ = tag_turn_ + 1 == operation_tags_ ? 0 : tag_turn_ + 1;
    return user_tags + lanes * tag_turn_;
  }
  std::uint64_t sequence() const { return sequence_; }
  /// Brings operations under way to their end whose tag is about to be used again.
  void free_next_tag() {
    if (!under_way_.empty() && sequence_ >= static_cast<std::uint64_t>(operation_tags_))
      finish_oldest();
  }

  Runs& runs() { return runs_; }
  Family& family() { return *family_; }
  const std::shared_ptr<Family>& shared_family() const { return family_; }
  execute::UseFlag& busy() { return *busy_; }

 private:
  void finish_oldest();
  /// Whether nothing but a call's own messages matters while it waits: no time limit, and nothing
  /// else under way that must be advanced.
  bool may_wait() const {
    return waits_ && context_.options.timeout.count() == 0 && family_->operations.empty();
  }

  const Context& context_;
  Planner& planner_;
  Recording& recording_;
  const std::shared_ptr<Family> family_;
  execute::UseFlag own_busy_;
  execute::UseFlag* const busy_;  // own_busy_, or the family's
  const bool waits_;              // the transport has blocking calls that serve one thread
  const int operation_tags_;      // operations that tags tell apart
  std::uint64_t sequence_ = 0;
  int tag_turn_ = 0;
  std::string broken_;  // why no further calls are possible
  Runs runs_;
  Operation blocking_;
  std::vector<std::unique_ptr<Operation>> idle_;
  std::vector<Operation*> under_way_;  // nonblocking collectives, the oldest first
};

}  // namespace baton::communicator
