#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
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
#include "watch.hpp"

namespace baton::communicator {

/// Shared by a communicator and its splits.
struct Family {
  execute::ProgressList operations;
  std::uint64_t name = 0;                    ///< the first communicator's, for watches
  std::vector<status::ProcessId> processes;  ///< of its ranks
  /// Their doors; null: all run on one machine, or nobody wants them.
  std::shared_ptr<const std::vector<status::Door>> doors;
  /// The communicators that were made without a message, by members: such have equal numbers.
  std::map<std::vector<int>, std::uint64_t> made;
  std::mutex making;
  execute::UseFlag busy{false};  ///< used if the transport serves one thread at a time
  std::unique_ptr<ProgressThread> progress_thread;  ///< for communicators on a device's memory
};

/// Marks a communicator, or its family, as in use during a call.
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

/// The work of one operation.
struct Work {
  execute::CachedPlan* plan = nullptr;
  execute::Kernels kernels{};
  std::span<std::byte* const> bases{};     ///< the tensors' addresses
  const char* name = "";                   ///< for errors
  std::optional<RecordedCall> recorded{};  ///< empty: not recorded
  status::Call shown{};                    ///< on the rank's page; none: by its name
};

/// Starts operations and waits for them. load() takes a run of the plan, enter() assigns a number
/// and a tag, start() begins. A repeated call takes a shorter way, run_again().
class Launcher {
 public:
  Launcher(const Context& context, Planner& planner, Recording& recording,
           std::shared_ptr<Family> family);

  /// Throws Error(transport) after break_off().
  void require_usable() const;
  /// Makes further calls impossible. `why` is the reason, unless there was one before.
  void break_off(std::string why);
  const std::string& broken() const { return broken_; }
  /// Ends the wait of a call that is in another thread. The caller then breaks off.
  void interrupt() { interrupted_ = true; }
  /// Throws Error(transport) after interrupt(). For every loop that waits.
  void check_interrupted() const {
    if (interrupted_) [[unlikely]]
      throw Error(ErrorCode::transport, "expected to wait for the end, found an abort()");
  }

  void load(Operation& operation, const Work& work);
  void enter(Operation& operation, const Work& work);
  /// Runs work to its end.
  void run(const Work& work);
  /// The operation of blocking calls: starts it after enter(), and waits for its end.
  Operation& blocking() { return blocking_; }
  void run_blocking();
  /// Runs a repeated call on its entry's own run.
  void run_again(RepeatedCalls::Entry& entry, std::byte* input, std::byte* output);
  /// Keeps an operation among those under way until forget(). `ordered`: it is a collective, not a
  /// message.
  void keep(Operation& operation, bool ordered) {
    if (ordered) under_way_.push_back(&operation);
    family_->operations.add(&operation);
  }

  /// Waits for the operation and advances the rest of the family.
  void wait(Operation& operation);
  /// Abandons the operation and rethrows the exception being handled, with the operation's name.
  [[noreturn]] void fail(Operation& operation);
  void forget(Operation& operation) {
    family_->operations.remove(&operation);
    std::erase(under_way_, &operation);
  }

  /// An idle operation; null if there is none.
  std::unique_ptr<Operation> take_idle();
  /// An idle operation, or a new one.
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
  /// Completes operations whose tag comes next.
  void free_next_tag() {
    if (!under_way_.empty() && sequence_ >= static_cast<std::uint64_t>(operation_tags_))
      finish_oldest();
  }

  Runs& runs() { return runs_; }
  Watch& watch() { return watch_; }
  const Watch& watch() const { return watch_; }
  Family& family() const { return *family_; }
  const std::shared_ptr<Family>& shared_family() const { return family_; }
  execute::UseFlag& busy() { return *busy_; }

 private:
  void finish_oldest();
  /// Hears of a call's waits in the transport's blocking calls. Null: the call may not wait for its
  /// own messages only, as there is a time limit, or another operation needs to advance.
  execute::BlockedView* blocked_view() {
    const bool may = waits_ && context_.options.timeout.count() == 0 && family_->operations.empty();
    return may ? &watch_ : nullptr;
  }

  const Context& context_;
  Planner& planner_;
  Recording& recording_;
  const std::shared_ptr<Family> family_;
  execute::UseFlag own_busy_;
  execute::UseFlag* const busy_;  // own_busy_, or the family's
  const bool waits_;              // the transport has blocking calls and serves one thread
  const int operation_tags_;      // how many operations tags can tell apart
  std::uint64_t sequence_ = 0;
  int tag_turn_ = 0;
  std::atomic<bool> interrupted_ = false;
  std::string broken_;  // the reason if no further calls are possible
  Runs runs_;
  Watch watch_;
  Operation blocking_;
  std::vector<std::unique_ptr<Operation>> idle_;
  std::vector<Operation*> under_way_;  // nonblocking collectives, oldest first
};

}  // namespace baton::communicator
