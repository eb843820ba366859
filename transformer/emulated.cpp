#include "emulated.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace baton::transformer {
namespace {

using std::chrono::nanoseconds;
using Clock = std::chrono::steady_clock;

constexpr nanoseconds panel = std::chrono::microseconds(100);
/// A shorter time is slept together with the next one.
constexpr nanoseconds shortest = std::chrono::microseconds(20);

thread_local const EmulatedSpeed* speed = nullptr;
thread_local nanoseconds owed{};  // below 0: slept too long

/// Sleeps; returns how long.
nanoseconds slept(nanoseconds time) {
  const auto begin = Clock::now();
  std::this_thread::sleep_for(time);
  return Clock::now() - begin;
}

void pass(double ns, const Meanwhile& meanwhile) {
  owed += nanoseconds(std::int64_t(ns + 0.5));
  while (owed >= shortest) {
    owed -= slept(meanwhile ? std::min(owed, panel) : owed);
    if (meanwhile) meanwhile();
  }
}

}  // namespace

EmulationScope::EmulationScope(const EmulatedSpeed& its)
    : speed_(its), before_(speed), owed_before_(owed.count()), slack_(prctl(PR_GET_TIMERSLACK)) {
  if (slack_ <= 0 || prctl(PR_SET_TIMERSLACK, 1UL) != 0) slack_ = 0;  // sleeps are longer then
  speed = &speed_;
  owed = {};
}

EmulationScope::~EmulationScope() {
  speed = before_;
  owed = nanoseconds(owed_before_);
  if (slack_ > 0) prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(slack_));
}

bool emulates() { return speed != nullptr; }

void emulate(double operations, const Meanwhile& meanwhile) {
  pass(operations / speed->operations, meanwhile);
}

void emulate_optimizer(std::int64_t parameters) {
  pass(static_cast<double>(parameters) * speed->optimizer_ns, {});
}

}  // namespace baton::transformer
