#include "operation.hpp"

#include <fmt/core.h>
#include <fmt/format.h>

#include <iterator>
#include <tuple>

namespace baton::communicator {

std::string numbered(const char* operation, std::uint64_t number) {
  return number == 0 ? std::string(operation) : fmt::format("{} #{}", operation, number);
}

Error retold(const Watch::Verdict& verdict, std::string operation, int rank) {
  Error error(verdict.code, verdict.sentence);
  error.rank = rank;
  error.operation = std::move(operation);
  return error;
}

Error named(const Error& error, const char* operation, std::uint64_t number, int rank) {
  if (error.code == ErrorCode::mismatch || error.code == ErrorCode::invalid_argument) return error;
  if (!error.operation.empty()) return error;  // it names one
  const std::string which = numbered(operation, number);
  Error named(error.code, fmt::format("{}: {}", which, error.what()));
  named.rank = rank;
  named.peer = error.peer;
  named.operation = which;
  named.step = error.step;
  named.backend_code = error.backend_code;
  named.backend_text = error.backend_text;
  return named;
}

void Operation::enter(const char* name, std::uint64_t number, int tag, std::uint64_t place) {
  place_ = place;
  source_ = -1;
  name_ = name;
  number_ = number;
  tag_ = tag;
  finished_.store(false, std::memory_order_relaxed);
  failed_.store(false, std::memory_order_relaxed);
  quiet_ = 0;
  shown_ = timed_ = false;
  error_ = reported_ = nullptr;
}

void Operation::start(int polls, execute::BlockedView* view) {
  if (comparison_) return comparison_->start(tag_);
  const bool done =
      execution_.run->start(*context_.transport, execution_.kernels, tag_, {polls, view});
  if (done && !watch_.doubtful(number_)) finish();  // otherwise step() says why not
}

bool Operation::step() {
  if (finished()) return true;
  if (!reach()) return false;
  if (comparison_) {
    if (!comparison_->step()) return false;
    comparison_.reset();
    start();
  }
  if (finished()) return true;  // start() has finished it
  if (!execution_.run->drive()) return false;
  // A peer that has given it up may have used the memory of its messages for something else.
  if (watch_.doubtful(number_)) [[unlikely]]
    fail_if_void();
  finish();
  return true;
}

std::size_t Operation::completed() const {
  if (finished() || ahead()) return 0;
  const std::size_t phase = comparison_ ? comparison_->stage() : Comparison::stages;
  return current().completed() + phase * 1000000007u;
}

void Operation::finish() noexcept {
  runs_.give_back(execution_);
  watch_.end(place_);
  progressed();
  finished_.store(true, std::memory_order_release);
  ended();
}

bool Operation::advance(const execute::UseFlag* held) noexcept {
  const bool mine = held == &busy_;
  if (!mine && !busy_.try_advance()) return false;
  bool further = false;
  if (!finished() && !error_) {
    const bool was_ahead = ahead();
    const std::size_t before = completed();
    try {
      further = step() || was_ahead != ahead() || before != completed();
      stepped();
      if (!ahead()) further ? progressed() : idled();
    } catch (...) {
      further = true;
      failed_meanwhile();
    }
  }
  if (!mine) busy_.leave();
  return further;
}

void Operation::progressed() noexcept {
  quiet_ = 0;
  timed_ = false;
  if (std::exchange(shown_, false)) watch_.hide(*this);
}

void Operation::idled(bool waits) {
  if (finished()) return;
  ++quiet_;
  const bool looks = waits || quiet_ % polls_per_clock == 0;
  if (!shown_) {
    if (!looks) return;
    const auto now = std::chrono::steady_clock::now();
    if (!std::exchange(timed_, true)) quiet_since_ = now;
    if (now - quiet_since_ < Watch::quiet_before_show) return;
    watch_.show(*this);
    shown_ = true;
    missing_ = -1;
    look_at_ = now + between_looks;
  }
  if (watch_.told(number_)) fail_told();
  if (looks) look_for_blocker();
}

void Operation::fail_if_void() const {
  if (number_ != 0) fail_told();
  if (source_ < 0 || !watch_.has_failed(source_)) return;
  Error error = retold(watch_.verdict(name_, 0, source_, {}, ErrorCode::transport), numbered(),
                       context_.rank);
  error.peer = source_;
  throw error;
}

void Operation::fail_told() const {
  if (watch_.told_as() == ErrorCode::timeout) fail_timeout();
  fail_hung(quiet_for(std::chrono::steady_clock::now()), watch_.told_as());
}

void Operation::look_for_blocker() {
  const auto now = std::chrono::steady_clock::now();
  if (now < look_at_) return;
  look_at_ = now + between_looks;
  if (!watch_.shows_a_wait()) watch_.show(*this);  // another operation that was shown has ended
  const int peer = blocker().first;
  if (peer >= 0)
    if (const auto why = watch_.unmade_by(peer, number_); !why.sentence.empty())
      throw retold(why, numbered(), context_.rank);
  // A message may be lost, or have been sent before its rank failed.
  const bool fails = number_ == 0 && watch_.doubtful(0) && peer >= 0 && watch_.has_failed(peer);
  if (peer < 0 || (!fails && !watch_.gone(peer) && !watch_.shrinks(peer))) {
    missing_ = -1;
  } else if (peer != missing_) {
    missing_ = peer;
    missing_since_ = now;
    missing_polls_ = quiet_;
  } else if (quiet_ - missing_polls_ >= polls_of_missing &&
             (context_.can.one_process || now - missing_since_ >= wait_for_missing)) {
    fail_hung(quiet_for(now), ErrorCode::transport);
  }
}

void Operation::rethrow() {
  if (!failed()) return;
  failed_.store(false, std::memory_order_relaxed);
  std::rethrow_exception(std::exchange(error_, nullptr));
}

void Operation::abandon() noexcept {
  if (finished()) return;
  given_up();
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
  finished_.store(true, std::memory_order_release);
  ended();
}

void Operation::waits_for(fmt::memory_buffer& text) const {
  current().waiting(text);
  if (comparison_) fmt::format_to(std::back_inserter(text), " to compare the call");
}

std::string Operation::waits_for() const {
  fmt::memory_buffer text;
  waits_for(text);
  return fmt::to_string(text);
}

std::string Operation::numbered() const { return communicator::numbered(name_, number_); }

std::string Operation::cause(std::chrono::milliseconds waited) const {
  const Watch::Verdict verdict = watch_.verdict(*this, waited);
  return verdict.sentence.empty() ? fmt::format("rank {} {}", context_.rank, waits_for())
                                  : verdict.sentence;
}

void Operation::fail_hung(std::chrono::milliseconds waited, ErrorCode code) const {
  const Watch::Verdict verdict = watch_.verdict(*this, waited, code);
  Error error = retold(verdict, numbered(), context_.rank);
  if (verdict.sentence.empty())
    error = Error(code, fmt::format("rank {} {}, without progress for {} s", context_.rank,
                                    waits_for(), static_cast<double>(waited.count()) / 1000));
  std::tie(error.peer, error.step) = blocker();
  throw error;
}

Error Operation::told(const Error& error) const {
  if (error.code == ErrorCode::timeout || !error.operation.empty()) return error;  // it was told
  const Watch::Verdict verdict = watch_.verdict(error, name_, number_);
  if (verdict.sentence.empty()) return error;
  Error told = retold(verdict, numbered(), context_.rank);
  told.peer = error.peer;
  told.step = error.step;
  told.backend_code = error.backend_code;
  told.backend_text = error.backend_text;
  return told;
}

}  // namespace baton::communicator
