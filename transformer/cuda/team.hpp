#pragma once
/// The threads of a block on the host: what a unit's steps are run by where there is no device.
///
/// A unit is written for a team of threads, each with a state of its own, in steps: the device's
/// team (kernel.cuh) has a thread each and a barrier after a step, this one does them in turn. So a
/// step must not read what another thread writes in it.

#include <array>
#include <memory>

namespace baton::transformer::cuda {

/// Threads of a block, in every kernel here.
inline constexpr int threads = 256;

template <class State>
class HostTeam {
 public:
  /// `backwards`: of a step, the last thread is the first. Results are the same.
  explicit HostTeam(bool backwards = false) : backwards_(backwards) {}

  /// body(thread, state) of every thread, and a barrier.
  template <class Body>
  void step(Body body) {
    for (int turn = 0; turn < threads; ++turn) {
      const int thread = backwards_ ? threads - 1 - turn : turn;
      body(thread, (*states_)[at(thread)]);
    }
  }
  /// The same without the barrier: what it writes is read by the thread itself only.
  template <class Body>
  void run(Body body) {
    step(body);
  }
  /// value(state) becomes the combination of those of `width` neighbours, the same in all of them,
  /// in the order of a butterfly.
  template <int width, class Value, class Op>
  void among(Value value, Op op) {
    for (int offset = width / 2; offset > 0; offset /= 2) {
      const auto before = *states_;
      for (int thread = 0; thread < threads; ++thread) {
        auto other = before[at(thread ^ offset)];
        auto& own = value((*states_)[at(thread)]);
        own = op(own, value(other));
      }
    }
  }

 private:
  static std::size_t at(int thread) { return static_cast<std::size_t>(thread); }
  bool backwards_;
  std::unique_ptr<std::array<State, threads>> states_ =
      std::make_unique<std::array<State, threads>>();
};

}  // namespace baton::transformer::cuda
