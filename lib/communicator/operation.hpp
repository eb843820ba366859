#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "../execute/progress.hpp"
#include "baton/error.hpp"
#include "comparison.hpp"
#include "runs.hpp"
#include "watch.hpp"

namespace baton::communicator {

struct State;

/// "all_reduce #12"; "recv" of a message, which has no number.
std::string numbered(const char* operation, std::uint64_t number);
/// The sentence of all ranks as the error of this operation.
Error retold(const Watch::Verdict& verdict, std::string operation, int rank);
/// The error with an operation's name and rank. Errors of a wrong call are unchanged.
Error named(const Error& error, const char* operation, std::uint64_t number, int rank);

/// A collective or message under way.
class Operation : public execute::Advancing {
 public:
  /// `busy` is the communicator's flag.
  Operation(const Context& context, Runs& runs, Watch& watch, execute::UseFlag& busy)
      : context_(context), runs_(runs), watch_(watch), busy_(busy) {}

  /// Makes this operation number `number` of its communicator, and shows it as `call`. Its messages
  /// carry `tag`.
  void enter(const char* name, std::uint64_t number, int tag, const status::Call& call) {
    enter(name, number, tag, watch_.begin(number, call));
  }
  /// Makes it a receive from this rank.
  void receive_from(int rank) { source_ = rank; }
  /// Its run; set it before start().
  Execution& execution() { return execution_; }
  /// Compares the call among the ranks before the run.
  void compare_first(std::unique_ptr<Comparison> comparison) {
    comparison_ = std::move(comparison);
  }
  /// Takes over a run that has already started. `place`: its place on the rank's page.
  void adopt(Execution execution, const char* name, std::uint64_t number, int tag,
             std::uint64_t place) {
    enter(name, number, tag, place);
    execution_ = std::move(execution);
  }

  /// Starts the comparison, if there is one, or the run. The run may end here: after at most
  /// `polls` polls, or by waiting in the transport, of which it tells `view`; null: it may not.
  void start(int polls = 0, execute::BlockedView* view = nullptr);
  /// Advances it once; true if it is finished. Throws its failure.
  bool step();
  /// Changes exactly if there was progress.
  std::size_t completed() const;
  /// Any thread may ask: another communicator's call may have finished it.
  bool finished() const { return finished_.load(std::memory_order_acquire); }
  std::uint64_t number() const { return number_; }
  const char* name() const { return name_; }
  /// Whether it waits for its turn in a device's stream.
  virtual bool ahead() const { return false; }

  /// For loops that wait. After progress.
  void progressed() noexcept;
  /// After a step without progress. If that goes on, the rank's page shows what the operation waits
  /// for, and the call throws if a peer has given it up, or the peer that it waits for is gone.
  /// `waits`: the caller gives up the processor between steps, and on a crowded machine has few
  /// turns; otherwise it may be a program that polls thousands of times, and few of the calls read
  /// the clock.
  void idled(bool waits = false);

  bool advance(const execute::UseFlag* held) noexcept override;
  /// Whether it holds an unreported error. Any thread may ask.
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  /// Throws the unreported error, if any.
  void rethrow();
  /// For requests, which tell their failure each time they are asked. `error`: the one just thrown.
  void failed_with(std::exception_ptr error) { reported_ = std::move(error); }
  void tell_failure() const {
    if (reported_) std::rethrow_exception(reported_);
  }

  /// Whether the comparison has refused the call: all ranks end it, and nothing is in flight.
  bool refused() const { return comparison_ && comparison_->refused(); }
  /// Ends a refused call.
  void end_refused() noexcept {
    comparison_.reset();
    finish();
  }
  /// Abandons the messages in flight and gives back plan and scratch.
  void abandon() noexcept;
  /// "waits for rank 3 (step 4 …)".
  std::string waits_for() const;
  /// The same behind `text`.
  void waits_for(fmt::memory_buffer& text) const;
  /// Why it does not complete, as all ranks tell it; otherwise the ranks that it waits for.
  std::string cause(std::chrono::milliseconds waited) const;
  /// The first peer that it waits for, and the step; -1: none.
  std::pair<int, int> blocker() const { return current().blocker(); }
  /// Throws Error(timeout): the cause, as all ranks tell it, or the ranks that it waits for.
  [[noreturn]] void fail_timeout() const { fail_hung(context_.options.timeout); }
  /// A failure of the transport or of a message as all ranks tell it, with the cause. Tells them.
  Error told(const Error& error) const;
  Error named(const Error& error) const {
    return communicator::named(error, name_, number_, context_.rank);
  }

  std::shared_ptr<State> keep_alive;

 protected:
  const Context& context_;

 private:
  /// Of an operation in a stream: starts it if its turn has come; true if started.
  virtual bool reach() { return true; }
  /// Hooks of advance(): after a step, and while it handles an exception.
  virtual void stepped() {}
  virtual void failed_meanwhile() noexcept {
    error_ = std::current_exception();
    failed_.store(true, std::memory_order_release);
  }
  virtual void ended() noexcept {}
  /// abandon() begins.
  virtual void given_up() noexcept {}
  const execute::Run& current() const {
    return comparison_ ? comparison_->current() : *execution_.run;
  }
  void enter(const char* name, std::uint64_t number, int tag, std::uint64_t place);
  void finish() noexcept;
  std::string numbered() const;
  [[noreturn]] void fail_hung(std::chrono::milliseconds waited,
                              ErrorCode code = ErrorCode::timeout) const;
  /// Throws if its result may be wrong.
  void fail_if_void() const;
  /// A peer has given it up.
  [[noreturn]] void fail_told() const;
  void look_for_blocker();
  std::chrono::milliseconds quiet_for(std::chrono::steady_clock::time_point now) const {
    return std::chrono::duration_cast<std::chrono::milliseconds>(now - quiet_since_);
  }

  Runs& runs_;
  Watch& watch_;
  execute::UseFlag& busy_;
  const char* name_ = "";
  std::uint64_t number_ = 0;
  int tag_ = 0, source_ = -1;  // of a receive: the sender
  std::uint64_t place_ = 0;    // on the rank's page
  static constexpr unsigned polls_per_clock = 16;
  unsigned quiet_ = 0;  // calls of idled() since progress
  std::chrono::steady_clock::time_point quiet_since_;
  bool shown_ = false, timed_ = false;  // timed: quiet_since_ is of this wait
  // A peer that is gone may have sent a message that is still on its way.
  static constexpr unsigned polls_of_missing = 128;
  static constexpr std::chrono::milliseconds between_looks{20}, wait_for_missing{1000};
  std::chrono::steady_clock::time_point look_at_, missing_since_;
  int missing_ = -1;            // peer that is gone
  unsigned missing_polls_ = 0;  // quiet_ when that was found
  std::atomic<bool> finished_{true};
  std::atomic<bool> failed_{false};  // error_ holds one
  Execution execution_;
  std::unique_ptr<Comparison> comparison_;
  std::exception_ptr error_, reported_;
};

}  // namespace baton::communicator
