#pragma once
/// How long a rank that waits keeps its core.

#include <chrono>
#include <cstdint>

namespace baton::transport {

/// What calls of Transport::idle() in a row do. The event often comes sooner than a system call
/// returns, or its sender is on this very core.
class IdleTurns {
 public:
  enum class Turn : std::uint8_t { returns, yields, blocks };

  /// The next call's. `crowded`: the machine has more ranks than cores.
  Turn next(bool crowded) {
    // A call takes 0.1 us over shared memory, but microseconds over TCP: so time counts, not calls.
    ++calls_;
    if (calls_ <= crowded_spins) return Turn::returns;
    if (!crowded && yields_ == 0) {
      if (calls_ % calls_per_clock != 0) return Turn::returns;
      const auto now = std::chrono::steady_clock::now();
      if (calls_ == calls_per_clock) awake_until_ = now + awake;
      if (now < awake_until_) return Turn::returns;
    }
    return ++yields_ > yields_at_most ? Turn::blocks : Turn::yields;
  }
  /// A message is complete, or goes on.
  void reset() { calls_ = yields_ = 0; }

 private:
  static constexpr std::uint32_t crowded_spins = 4, calls_per_clock = 16, yields_at_most = 32;
  /// How long calls return at once where each rank has a core.
  static constexpr std::chrono::microseconds awake{100};

  std::uint32_t calls_ = 0, yields_ = 0;  // may begin again at 0
  std::chrono::steady_clock::time_point awake_until_;
};

}  // namespace baton::transport
