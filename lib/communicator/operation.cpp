#include <fmt/format.h>

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
  return finished_ ? 0 : current().completed() + static_cast<std::size_t>(phase_) * 1000000007u;
}

void Operation::finish() noexcept {
  communicator_.give_back(execution_);
  finished_ = true;
}

void Operation::advance(const UseFlag* held) noexcept {
  const bool mine = held == communicator_.busy;
  if (!mine && !communicator_.busy->try_advance()) return;
  if (!finished_ && !error_) {
    try {
      step();
    } catch (...) {
      error_ = std::current_exception();
    }
  }
  if (!mine) communicator_.busy->leave();
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
}

Error Operation::named(const Error& error) const {
  if (error.code == ErrorCode::mismatch || error.code == ErrorCode::invalid_argument) return error;
  Error named(error.code, fmt::format("{} #{}: {}", what_, number_, error.what()));
  named.rank = communicator_.rank;
  named.peer = error.peer;
  named.operation = fmt::format("{} #{}", what_, number_);
  named.step = error.step;
  named.backend_code = error.backend_code;
  named.backend_text = error.backend_text;
  return named;
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
