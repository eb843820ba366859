#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "baton/simulate.hpp"

namespace baton::simulating {

/// A time table for many look-ups. It keeps the last answers, since a schedule has few sizes.
class Lookup {
 public:
  explicit Lookup(const TimeTable& table) : table_(table), zero_(table.of(0)) {}
  std::int64_t zero() const { return zero_; }
  std::int64_t of(std::int64_t bytes) {
    if (bytes == 0 || table_.points().empty()) return zero_;
    Kept& kept = kept_[static_cast<std::size_t>(bytes * 0x9e3779b97f4a7c15ll >> 32) % slots];
    if (kept.bytes != bytes) kept = {bytes, table_.of(bytes)};
    return kept.ns;
  }

 private:
  struct Kept {
    std::int64_t bytes = -1, ns = 0;
  };
  static constexpr std::size_t slots = 256;
  TimeTable table_;
  std::int64_t zero_;
  std::vector<Kept> kept_ = std::vector<Kept>(slots);
};

/// One level of the network, prepared for the simulation.
struct LevelTimes {
  explicit LevelTimes(const NetworkLevel& level)
      : level(level),
        send(level.send),
        receive(level.receive),
        wire(level.wire),
        burst(level.burst > 0 ? level.wire.of(level.burst) - level.wire.of(0) : 0) {}

  NetworkLevel level;
  Lookup send, receive, wire;
  std::int64_t burst;  ///< the time on the wire that a full bucket covers, in ns
};

/// A message or a part of one: `bytes` bytes, behind `before` others.
struct Load {
  std::int64_t bytes = 0, before = 0;
};

/// When a message's first and last byte pass.
struct Passage {
  std::int64_t first, last;
};

/// One direction of a wire: loads pass one after the other.
class Wire {
 public:
  /// Passes a load that is ready at `at`.
  Passage pass(std::int64_t at, const Load& load, LevelTimes& level) {
    const std::int64_t length =
        load.before == 0 ? level.wire.of(load.bytes)
                         : level.wire.of(load.before + load.bytes) - level.wire.of(load.before);
    std::int64_t quick = length;
    if (level.burst > 0) {
      quick = std::min(length, (load.before == 0 ? level.wire.zero() : 0) +
                                   static_cast<std::int64_t>(level.level.burst_per_byte *
                                                             static_cast<double>(load.bytes)));
    }
    // `busy_` is when the wire would be free at its lasting rate; a full bucket runs ahead of it.
    const std::int64_t begin = std::max(at, free_);
    Passage passage{std::max(begin, busy_ - level.burst), 0};
    busy_ = std::max(at, busy_) + length;
    passage.last = std::max(begin + quick, busy_ - level.burst);
    free_ = std::max(free_, passage.last);
    return passage;
  }

 private:
  std::int64_t busy_ = 0, free_ = 0;
};

}  // namespace baton::simulating
