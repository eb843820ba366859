#include "clock.hpp"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>

#include "baton/error.hpp"

namespace baton::tracing {
namespace {

void finish_message(Transport& transport, Message& message, int peer, const Patience& patience) {
  constexpr int spins = 256;
  std::size_t bytes = 0;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; !transport.test(message, bytes); ++i) {
    if (i < spins) continue;
    try {
      const auto waited = std::chrono::steady_clock::now() - begin;
      patience(peer, std::chrono::duration_cast<std::chrono::milliseconds>(waited));
    } catch (...) {
      transport.cancel(message);
      throw;
    }
    transport.idle(std::chrono::microseconds(200));
  }
}

}  // namespace

Patience at_most(std::chrono::milliseconds limit) {
  return [limit](int peer, std::chrono::milliseconds waited) {
    if (waited < limit) return;
    Error error(ErrorCode::timeout,
                fmt::format("expected rank {} to compare clocks, found it silent for {} s", peer,
                            static_cast<double>(waited.count()) / 1000));
    error.peer = peer;
    throw error;
  };
}

std::uint64_t clock_identity(int host) {
  struct stat status {};
  const bool known = stat("/proc/self/ns/time", &status) == 0;
  const std::uint64_t space = known ? static_cast<std::uint64_t>(status.st_ino) : 0;
  return static_cast<std::uint64_t>(host) << 40 ^ space;
}

void send_all(Transport& transport, int peer, int tag, const void* data, std::size_t bytes,
              const Patience& patience) {
  Message message;
  transport.isend(peer, tag, data, bytes, message);
  finish_message(transport, message, peer, patience);
}

void recv_all(Transport& transport, int peer, int tag, void* data, std::size_t bytes,
              const Patience& patience) {
  Message message;
  transport.irecv(peer, tag, data, bytes, message);
  finish_message(transport, message, peer, patience);
}

ClockSample compare_clock(Transport& transport, int reference, int tag, int rounds,
                          const Clock& clock, const Patience& patience) {
  ClockSample best;
  for (int i = 0; i < rounds; ++i) {
    std::int64_t its = 0;
    const std::int64_t asked = clock();
    send_all(transport, reference, tag, &asked, sizeof asked, patience);
    recv_all(transport, reference, tag, &its, sizeof its, patience);
    const std::int64_t answered = clock();
    // It was read between these two times, so the middle is off by at most half their distance.
    const std::int64_t middle = asked + (answered - asked) / 2;
    const std::int64_t error = (answered - asked + 1) / 2;
    if (i == 0 || error < best.error) best = {middle, its - middle, error};
  }
  return best;
}

void answer_clock(Transport& transport, int asking, int tag, int rounds, const Clock& clock,
                  const Patience& patience) {
  for (int i = 0; i < rounds; ++i) {
    std::int64_t its = 0;
    recv_all(transport, asking, tag, &its, sizeof its, patience);
    const std::int64_t own = clock();
    send_all(transport, asking, tag, &own, sizeof own, patience);
  }
}

Correction::Correction(const ClockSample& before, const ClockSample& after)
    : before_(before), error_(std::max(before.error, after.error) + 1) {
  const std::int64_t between = after.local - before.local;
  if (between > 0) {
    slope_ = static_cast<double>(after.offset - before.offset) / static_cast<double>(between);
  }
}

std::int64_t Correction::operator()(std::int64_t local) const {
  const double drifted = slope_ * static_cast<double>(local - before_.local);
  constexpr double most = 1LL << 60;  // what a file says may make no sense
  return local + before_.offset + std::llround(std::clamp(drifted, -most, most));
}

}  // namespace baton::tracing
