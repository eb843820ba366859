#pragma once
/// The threads of a block on the host: what a unit's steps are run by where there is no device.
///
/// A unit is written for a team of threads, each with a state of its own, in steps: the device's
/// team (kernel.cuh) has a thread each and a barrier after a step, this one does them in turn. So a
/// step must not read what another thread writes in it.

#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <vector>

#include "factors.hpp"

namespace baton::transformer::cuda {

/// Threads of a block, in every kernel but attention's.
inline constexpr int threads = 256;

template <class State, int count = threads>
class HostTeam {
 public:
  /// `backwards`: of a step, the last thread is the first. Results are the same.
  explicit HostTeam(bool backwards = false) : backwards_(backwards) {}

  /// body(thread, state) of every thread, and a barrier.
  template <class Body>
  void step(Body body) {
    for (int turn = 0; turn < count; ++turn) {
      const int thread = backwards_ ? count - 1 - turn : turn;
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
      for (int thread = 0; thread < count; ++thread) {
        auto other = before[at(thread ^ offset)];
        auto& own = value((*states_)[at(thread)]);
        own = op(own, value(other));
      }
    }
  }
  /// take(thread, state, word) gets give(thread, state) of the thread whose number differs by
  /// `offset` alone.
  template <int offset, class Give, class Take>
  void swap(Give give, Take take) {
    for (int thread = 0; thread < count; ++thread) {
      const int other = thread | offset;
      if (thread == other) continue;
      State &one = (*states_)[at(thread)], &two = (*states_)[at(other)];
      const std::uint32_t ones = give(thread, one), twos = give(other, two);
      take(thread, one, twos), take(other, two, ones);
    }
  }
  /// Four matrices of 8 rows of 16 bytes, of every warp: at(thread) is where row thread % 8 of
  /// matrix thread / 8 % 4 lies. Of each matrix a thread gets word thread % 4 of row thread / 4
  /// % 8.
  template <class At, class To>
  void load_matrices(At at_, To to) {
    for (int first = 0; first < count; first += 32) {
      for (int lane = 0; lane < 32; ++lane) {
        Chunk& words = to((*states_)[at(first + lane)]);
        for (int matrix = 0; matrix < 4; ++matrix)
          words.word[matrix] = at_(first + matrix * 8 + lane / 4)->word[lane % 4];
      }
    }
  }
  /// sum(state) += a(state) · b(state) of every warp, by a tensor core: 16 rows and 8 columns of
  /// sums, of which each thread holds what PTX's mma.m16n8k8 (tf32) and mma.m16n8k16 (bf16) say.
  template <class Kind, class Sums, class A, class B>
  void mma(Sums sum, A a, B b) {
    for (int first = 0; first < count; first += 32) {
      float rows[16][16] = {}, columns[8][16] = {};  // factors, by their place in the sum
      for (int lane = 0; lane < 32; ++lane) {
        const State& state = (*states_)[at(first + lane)];
        const auto x = a(state);
        const auto y = b(state);
        const int group = lane / 4, place = lane % 4;
        for (int w = 0; w < 4; ++w)
          Kind::spread(x.word[w], place + w / 2 * 4, rows[group + w % 2 * 8]);
        for (int w = 0; w < 2; ++w) Kind::spread(y.word[w], place + w * 4, columns[group]);
      }
      // Small tiles are empty for the most part: a factor of zeros adds nothing to what is finite.
      const float in_rows = size_of(rows), in_columns = size_of(columns);
      if ((in_rows == 0 && std::isfinite(in_columns)) ||
          (in_columns == 0 && std::isfinite(in_rows)))
        continue;
      for (int lane = 0; lane < 32; ++lane) {
        auto& own = sum((*states_)[at(first + lane)]);
        for (int i = 0; i < 4; ++i)
          for (int k = 0; k < 16; ++k)
            own[i] += rows[lane / 4 + i / 2 * 8][k] * columns[lane % 4 * 2 + i % 2][k];
      }
    }
  }

  /// Starts copies of a tile, of which load(thread) is a thread's part: here, they are done in
  /// await_copies().
  template <int, int, class Source, class Tile, class Load>
  void copy(int stage, Source, const Tile&, Chunk*, Load load) {
    copies_[stage].push_back([load] {
      for (int thread = 0; thread < count; ++thread) load(thread);
    });
  }
  void finish_copies(int) {}
  void await_copies(int stage) {
    for (const auto& copy : copies_[stage]) copy();
    copies_[stage].clear();
  }

  /// Begins products of the warpgroups, 64 rows of sums each. They go on beside the threads, and
  /// need their factors and sums until await_products(): here, they are done then.
  void begin_products() { products_.emplace_back(); }
  /// sum(state), or 0 unless `adds`, += a · b, of 16 elements. A sum is [columns / 8][4], of which
  /// threads hold what mma()'s do. A factor that has no at(row or column, element) is a thread's
  /// words, those of mma().
  template <class Sum, class A, class B>
  void product(Sum sum, A a, B b, bool adds) {
    products_.back().push_back([this, sum, a, b, adds] {
      for (int first = 0; first < count; first += 128) multiply(first, sum, a, b, adds);
    });
  }
  void end_products() {}
  /// All but the last `pending` products since begin_products() are done.
  template <int pending, class Sums>
  void await_products(Sums) {
    while (products_.size() > pending) {
      for (const auto& product : products_.front()) product();
      products_.erase(products_.begin());
    }
  }

 private:
  template <class Sum, class A, class B>
  void multiply(int first, Sum sum, A a, B b, bool adds) {
    constexpr int columns = std::extent_v<std::remove_reference_t<decltype(sum(*states_->data()))>>;
    float rows[64][16], others[columns * 8][16];
    for (int row = 0; row < 64; ++row)
      for (int k = 0; k < 16; ++k)
        if constexpr (requires { a.at(row, k); }) rows[row][k] = a.at(row, k);
    if constexpr (requires { a((*states_)[0]); }) {
      for (int thread = 0; thread < 128; ++thread) {
        const auto& words = a((*states_)[at(first + thread)]);
        for (int w = 0; w < 4; ++w) {
          const int row = thread / 32 * 16 + thread % 32 / 4 + w % 2 * 8;
          Bf16::spread(words.word[w], thread % 4 + w / 2 * 4, rows[row]);
        }
      }
    }
    for (int column = 0; column < columns * 8; ++column)
      for (int k = 0; k < 16; ++k) others[column][k] = b.at(column, k);
    for (int thread = 0; thread < 128; ++thread) {
      auto& own = sum((*states_)[at(first + thread)]);
      for (int n = 0; n < columns; ++n) {
        for (int i = 0; i < 4; ++i) {
          const int row = thread / 32 * 16 + thread % 32 / 4 + i / 2 * 8;
          float total = adds ? own[n][i] : 0;
          for (int k = 0; k < 16; ++k)
            total += rows[row][k] * others[n * 8 + thread % 4 * 2 + i % 2][k];
          own[n][i] = total;
        }
      }
    }
  }
  template <int rows>
  static float size_of(const float (&factor)[rows][16]) {
    float size = 0;
    for (const auto& row : factor)
      for (const float value : row) size += std::abs(value);
    return size;
  }
  static std::size_t at(int thread) { return static_cast<std::size_t>(thread); }
  bool backwards_;
  std::unique_ptr<std::array<State, count>> states_ = std::make_unique<std::array<State, count>>();
  std::vector<std::vector<std::function<void()>>> products_;
  std::vector<std::function<void()>> copies_[2];
};

}  // namespace baton::transformer::cuda
