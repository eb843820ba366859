#include "operation.hpp"

#include <fmt/core.h>

#include <tuple>

namespace baton::communicator {

Error named(const Error& error, const char* operation, std::uint64_t number, int rank) {
  if (error.code == ErrorCode::mismatch || error.code == ErrorCode::invalid_argument) return error;
  const std::string which = fmt::format("{} #{}", operation, number);
  Error named(error.code, fmt::format("{}: {}", which, error.what()));
  named.rank = rank;
  named.peer = error.peer;
  named.operation = which;
  named.step = error.step;
  named.backend_code = error.backend_code;
  named.backend_text = error.backend_text;
  return named;
}

void Operation::enter(const char* name, std::uint64_t number, int tag) {
  name_ = name;
  number_ = number;
  tag_ = tag;
  finished_ = false;
  error_ = nullptr;
}

void Operation::start(int polls, bool may_wait) {
  if (comparison_) return comparison_->start(tag_);
  if (execution_.run->start(*context_.transport, execution_.kernels, tag_, {polls, may_wait}))
    finish();
}

bool Operation::step() {
  if (finished_) return true;
  if (!reach()) return false;
  if (comparison_) {
    if (!comparison_->step()) return false;
    comparison_.reset();
    start();
  }
  if (finished_) return true;  // start() has finished it
  if (!execution_.run->drive()) return false;
  finish();
  return true;
}

std::size_t Operation::completed() const {
  if (finished_ || ahead()) return 0;
  const std::size_t phase = !comparison_ ? 2 : comparison_->telling() ? 1 : 0;
  return current().completed() + phase * 1000000007u;
}

void Operation::finish() noexcept {
  runs_.give_back(execution_);
  finished_ = true;
  ended();
}

bool Operation::advance(const execute::UseFlag* held) noexcept {
  const bool mine = held == &busy_;
  if (!mine && !busy_.try_advance()) return false;
  bool further = false;
  if (!finished_ && !error_) {
    const bool was_ahead = ahead();
    const std::size_t before = completed();
    try {
      further = step();
      stepped();
    } catch (...) {
      further = true;
      failed_meanwhile();
    }
    further = further || was_ahead != ahead() || before != completed();
  }
  if (!mine) busy_.leave();
  return further;
}

void Operation::rethrow() {
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void Operation::abandon() noexcept {
  if (finished_) return;
  if (execution_.run) {
    execution_.run->abandon();
    runs_.give_up(execution_);
  }
  if (comparison_) {
    comparison_->abandon();
    // If the transport cannot cancel, a message may still arrive in the buffers.
    if (!context_.can.cancels) static_cast<void>(comparison_.release());
    comparison_.reset();
  }
  finished_ = true;
  ended();
}

std::string Operation::waits_for() const {
  return current().waiting() + (comparison_ ? " to compare the call" : "");
}

void Operation::fail_timeout() const {
  Error error(ErrorCode::timeout,
              fmt::format("rank {} {}, without progress for {} s", context_.rank, waits_for(),
                          static_cast<double>(context_.options.timeout.count()) / 1000));
  std::tie(error.peer, error.step) = current().blocker();
  throw error;
}

}  // namespace baton::communicator
