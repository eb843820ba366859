#include <fmt/core.h>

#include <tuple>
#include <utility>

#include "state.hpp"

namespace baton {

const Run& Operation::current() const {
  if (phase_ == Phase::gathering) return *check_->gather.run;
  if (phase_ == Phase::telling) return *check_->broadcast.run;
  return *execution_.run;
}

void Operation::start(int spins, bool may_wait) {
  if (!check_ && spins > 0 && execution_.run->scripted()) {
    phase_ = Phase::running;
    const bool done = execution_.run->start_scripted(*communicator_.transport, execution_.kernels,
                                                     tag_, spins, may_wait);
    if (done) finish();
  } else if (check_) {
    phase_ = Phase::gathering;
    check_->gather.run->start(*communicator_.transport, {}, tag_);
  } else {
    phase_ = Phase::running;
    execution_.run->start(*communicator_.transport, execution_.kernels, tag_);
  }
}

bool Operation::step() {
  if (finished_) return true;
  if (phase_ == Phase::ahead) {
    if (!turn_->reached->passed()) return false;
    turn_->since = std::chrono::steady_clock::now();
    start();
  }
  if (phase_ != Phase::running && !step_check()) return false;
  if (!execution_.run->drive()) return false;
  finish();
  return true;
}

bool Operation::step_check() {
  if (phase_ == Phase::gathering) {
    if (!check_->gather.run->drive()) return false;
    if (communicator_.rank == 0) check_->judge(communicator_.size);
    phase_ = Phase::telling;
    check_->broadcast.run->start(*communicator_.transport, {}, tag_);
  }
  if (!check_->broadcast.run->drive()) return false;
  check_->conclude(communicator_.rank);
  communicator_.give_back(check_->gather);
  communicator_.give_back(check_->broadcast);
  check_.reset();
  phase_ = Phase::running;
  execution_.run->start(*communicator_.transport, execution_.kernels, tag_);
  return true;
}

std::size_t Operation::completed() const {
  return finished_ || ahead()
             ? 0
             : current().completed() + static_cast<std::size_t>(phase_) * 1000000007u;
}

void Operation::finish() noexcept {
  communicator_.give_back(execution_);
  finished_ = true;
  release();
}

void Operation::mark(Device& device, Stream stream) {
  if (!turn_) {
    turn_ = std::make_unique<Turn>();
    turn_->reached = device.make_marker();
    turn_->gate = device.make_gate();
  }
  turn_->reached->set(stream);
}

void Operation::start_when_reached(Stream stream) {
  turn_->gate->hold(stream);
  turn_->stream = stream;
  turn_->completed = 0;
  phase_ = Phase::ahead;
}

void Operation::release() noexcept {
  if (!in_stream()) return;
  turn_->stream = nullptr;
  turn_->gate->open();
  communicator_.family->engine->ended();
}

void Operation::check_time() {
  if (finished_ || ahead() || communicator_.options.timeout.count() == 0) return;
  const auto now = std::chrono::steady_clock::now();
  if (const std::size_t done = completed(); done != turn_->completed) {
    turn_->completed = done;
    turn_->since = now;
  } else if (now - turn_->since > communicator_.options.timeout) {
    fail_timeout();
  }
}

bool Operation::advance(const UseFlag* held) noexcept {
  const bool mine = held == communicator_.busy;
  if (!mine && !communicator_.busy->try_advance()) return false;
  bool further = false;
  if (!finished_ && !error_) {
    const bool was_ahead = ahead();
    const std::size_t before = completed();
    try {
      further = step();
      if (in_stream()) check_time();
    } catch (...) {
      further = true;
      if (in_stream()) {
        communicator_.fail_in_stream(*this);
      } else {
        error_ = std::current_exception();
      }
    }
    further = further || was_ahead != ahead() || before != completed();
  }
  if (!mine) communicator_.busy->leave();
  return further;
}

void Operation::rethrow() {
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void Operation::abandon() noexcept {
  if (finished_) return;
  for (Execution* execution :
       {&execution_, check_ ? &check_->gather : nullptr, check_ ? &check_->broadcast : nullptr}) {
    if (!execution || !execution->run) continue;
    execution->run->abandon();
    communicator_.give_up(*execution);
  }
  check_.reset();
  finished_ = true;
  release();
}

Error named(const Error& error, const char* what, std::uint64_t number, int rank) {
  if (error.code == ErrorCode::mismatch || error.code == ErrorCode::invalid_argument) return error;
  Error named(error.code, fmt::format("{} #{}: {}", what, number, error.what()));
  named.rank = rank;
  named.peer = error.peer;
  named.operation = fmt::format("{} #{}", what, number);
  named.step = error.step;
  named.backend_code = error.backend_code;
  named.backend_text = error.backend_text;
  return named;
}

Error Operation::named(const Error& error) const {
  return baton::named(error, what_, number_, communicator_.rank);
}

void Operation::fail_timeout() const {
  Error error(
      ErrorCode::timeout,
      fmt::format("rank {} {}{}, without progress for {} s", communicator_.rank,
                  current().waiting(), phase_ == Phase::running ? "" : " to compare the call",
                  static_cast<double>(communicator_.options.timeout.count()) / 1000));
  std::tie(error.peer, error.step) = current().blocker();
  throw error;
}

}  // namespace baton
