#pragma once

#include <chrono>

namespace baton::execute {

/// Attempts before a rank leaves its core to others. They end early where each takes long: the
/// library may yield in each, and then a few hundred take seconds on a crowded machine.
class Spins {
 public:
  explicit Spins(int most) : most_(most) {}

  /// Call this after each attempt that completed nothing. False if it was the last one.
  bool again() {
    if (over_) return false;
    if (++attempts_ >= most_) over_ = true;
    if (attempts_ == next_look_) [[unlikely]]
      look();
    return !over_;
  }
  bool over() const { return over_; }

 private:
  static constexpr int first_look = 8;
  static constexpr std::chrono::microseconds longest_attempt{100};

  void look() {
    const auto now = std::chrono::steady_clock::now();
    const int since = attempts_ / 2;
    if (attempts_ > first_look && now - looked_ > since * longest_attempt) over_ = true;
    looked_ = now;
    next_look_ = 2 * attempts_;
  }

  int most_, attempts_ = 0, next_look_ = first_look;
  bool over_ = false;
  std::chrono::steady_clock::time_point looked_;
};

}  // namespace baton::execute
