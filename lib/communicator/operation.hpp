#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <utility>

#include "../execute/progress.hpp"
#include "baton/error.hpp"
#include "comparison.hpp"
#include "runs.hpp"

namespace baton::communicator {

struct State;

/// The error with an operation's name and rank, unless the call itself is wrong.
Error named(const Error& error, const char* operation, std::uint64_t number, int rank);

/// One collective or message under way.
class Operation : public execute::Advancing {
 public:
  /// `busy` says who is at the communicator.
  Operation(const Context& context, Runs& runs, execute::UseFlag& busy)
      : context_(context), runs_(runs), busy_(busy) {}

  /// Makes it operation number `number` of its communicator, whose messages carry `tag`.
  void enter(const char* name, std::uint64_t number, int tag);
  /// Its run: to be set before start().
  Execution& execution() { return execution_; }
  /// Has the call compared among the ranks before the run.
  void compare_first(std::unique_ptr<Comparison> comparison) {
    comparison_ = std::move(comparison);
  }
  /// Takes over a run that has been started.
  void adopt(Execution execution, const char* name, std::uint64_t number, int tag) {
    enter(name, number, tag);
    execution_ = std::move(execution);
  }

  /// Starts the comparison, if there is one, else the run. The run may come to its end if that
  /// takes at most `polls` polls, or waits in the transport.
  void start(int polls = 0, bool may_wait = false);
  /// Advances it once; whether it is finished. Throws what went wrong.
  bool step();
  /// Changes if and only if there was progress.
  std::size_t completed() const;
  bool finished() const { return finished_; }
  std::uint64_t number() const { return number_; }
  /// Whether it waits until a device's stream has come to it.
  virtual bool ahead() const { return false; }

  bool advance(const execute::UseFlag* held) noexcept override;
  /// Whether advance() met an error that nobody has been told.
  bool failed() const { return error_ != nullptr; }
  /// Throws that error, if any.
  void rethrow();

  /// Gives up the messages in flight and returns plan and scratch.
  void abandon() noexcept;
  /// Throws Error(timeout) that says which ranks it waits for.
  [[noreturn]] void fail_timeout() const;
  Error named(const Error& error) const {
    return communicator::named(error, name_, number_, context_.rank);
  }

  std::shared_ptr<State> keep_alive;

 protected:
  const Context& context_;

 private:
  /// Of an operation in a stream: starts it if the stream has come to it; whether it has.
  virtual bool reach() { return true; }
  /// advance() has made a step, has met an exception (that is being handled).
  virtual void stepped() {}
  virtual void failed_meanwhile() noexcept { error_ = std::current_exception(); }
  virtual void ended() noexcept {}
  const execute::Run& current() const {
    return comparison_ ? comparison_->current() : *execution_.run;
  }
  void finish() noexcept;

  Runs& runs_;
  execute::UseFlag& busy_;
  const char* name_ = "";
  std::uint64_t number_ = 0;
  int tag_ = 0;
  bool finished_ = true;
  Execution execution_;
  std::unique_ptr<Comparison> comparison_;
  std::exception_ptr error_;
};

}  // namespace baton::communicator
