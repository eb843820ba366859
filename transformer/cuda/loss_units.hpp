#pragma once
/// Losses: what a thread block does. Terms are added up in double, in an order that depends on
/// their number only.

#include <cmath>

#include "row_units.hpp"

namespace baton::transformer::cuda {

struct TotalState {
  double sum;
};

/// total = the sum of `count` terms; shared: one for each warp.
template <class Team>
BATON_DEVICE void total_unit(Team& team, std::int64_t count, const double* terms, double* shared,
                             double* total) {
  team.run([&](int thread, TotalState& state) {
    state.sum = 0;
    for (std::int64_t i = thread; i < count; i += threads) state.sum += terms[i];
  });
  team.template among<lanes>([](TotalState& state) -> double& { return state.sum; }, Sum());
  team.step([&](int thread, TotalState& state) {
    if (thread % lanes == 0) shared[thread / lanes] = state.sum;
  });
  team.step([&](int thread, TotalState&) {
    if (thread != 0) return;
    double sum = 0;
    for (int warp = 0; warp < rows_each; ++warp) sum += shared[warp];
    *total = sum;
  });
}

// --- mean squared error -------------------------------------------------------------------------

/// Elements of a thread block.
inline constexpr std::int64_t mse_each = 16 * threads;

template <class T>
struct Mse {
  std::int64_t count;
  const T *y, *target;
  float scale;  ///< 2 / elements
  T* dy;        ///< may be null
};

/// terms [blocks, rows_each]: sums of squares.
template <class T, class Team>
BATON_DEVICE void mse_unit(Team& team, const Mse<T>& of, std::int64_t block, double* terms) {
  team.run([&](int thread, TotalState& state) {
    state.sum = 0;
    const std::int64_t end = (block + 1) * mse_each;
    for (std::int64_t i = block * mse_each + thread; i < of.count && i < end; i += threads) {
      const float y = load(of.y + i), target = load(of.target + i);
      const double difference = static_cast<double>(y) - static_cast<double>(target);
      state.sum += difference * difference;
      if (of.dy) store(of.dy + i, (y - target) * of.scale);
    }
  });
  team.template among<lanes>([](TotalState& state) -> double& { return state.sum; }, Sum());
  team.run([&](int thread, TotalState& state) {
    if (thread % lanes == 0) terms[block * rows_each + thread / lanes] = state.sum;
  });
}

// --- cross-entropy ------------------------------------------------------------------------------

template <class T>
struct CrossEntropy {
  std::int64_t rows, classes;
  const T* logits;              ///< [rows, classes]
  const std::int32_t* targets;  ///< [rows]; what is no class counts as a logit of 0
  double elements;
  T* dlogits;  ///< may be null
};
struct RowState {
  float most, sum;
};

/// terms [rows]: of rows `first` to `first` + rows_each - 1, -log softmax(logits)[target].
template <class T, class Team>
BATON_DEVICE void cross_entropy_unit(Team& team, const CrossEntropy<T>& of, std::int64_t first,
                                     double* terms) {
  const auto each = [&](int thread, auto body) {
    const std::int64_t row = first + thread / lanes;
    if (row >= of.rows) return;
    for (std::int64_t c = thread % lanes; c < of.classes; c += lanes) body(row * of.classes + c, c);
  };
  team.run([&](int thread, RowState& state) {
    state.most = -INFINITY;
    each(thread, [&](std::int64_t at, std::int64_t) {
      state.most = largest(state.most, load(of.logits + at));
    });
  });
  team.template among<lanes>([](RowState& state) -> float& { return state.most; }, Largest());
  team.run([&](int thread, RowState& state) {
    state.sum = 0;
    each(thread, [&](std::int64_t at, std::int64_t) {
      state.sum += std::exp(load(of.logits + at) - state.most);
    });
  });
  team.template among<lanes>([](RowState& state) -> float& { return state.sum; }, Sum());
  team.run([&](int thread, RowState& state) {
    const std::int64_t row = first + thread / lanes;
    if (row >= of.rows) return;
    const std::int64_t target = of.targets[row];
    const bool there = target >= 0 && target < of.classes;
    const auto total = static_cast<double>(state.sum);
    // Before dlogits, which may be logits, is written.
    if (thread % lanes == (there ? target % lanes : 0)) {
      const float own = there ? load(of.logits + row * of.classes + target) : 0;
      terms[row] = std::log(total) - (static_cast<double>(own) - static_cast<double>(state.most));
    }
    if (!of.dlogits) return;
    const auto scale = static_cast<float>(1 / (total * of.elements));
    const auto less = static_cast<float>(1 / of.elements);
    each(thread, [&](std::int64_t at, std::int64_t c) {
      const float p = std::exp(load(of.logits + at) - state.most) * scale;
      store(of.dlogits + at, c == target ? p - less : p);
    });
  });
}

}  // namespace baton::transformer::cuda
