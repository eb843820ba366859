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

// --- cross-entropy, of rows whose classes may be cut over ranks
// ------------------------------------

template <class T>
struct Logits {
  std::int64_t rows, classes, first;  ///< classes are [first, first + classes) of all
  const T* logits;                    ///< [rows, classes]
  const std::int32_t* targets;        ///< [rows]; not of row_maximum_unit()

  /// The target's class here, or -1.
  BATON_DEVICE std::int64_t own(std::int64_t row) const {
    const std::int64_t own = targets[row] - first;
    return own >= 0 && own < classes ? own : -1;
  }
};
struct RowState {
  float part;
};

/// Calls body(row, class, logit) for this thread's elements of rows `first` to `first` + rows_each
/// - 1.
template <class T, class Body>
BATON_DEVICE void each_logit(const Logits<T>& of, std::int64_t first, int thread, Body body) {
  const std::int64_t row = first + thread / lanes;
  if (row >= of.rows) return;
  for (std::int64_t c = thread % lanes; c < of.classes; c += lanes)
    body(row, c, load(of.logits + row * of.classes + c));
}

/// most [rows]: the largest of each row; NaN if any is.
template <class T, class Team>
BATON_DEVICE void row_maximum_unit(Team& team, const Logits<T>& of, std::int64_t first,
                                   float* most) {
  team.run([&](int thread, RowState& state) {
    state.part = -INFINITY;
    each_logit(of, first, thread, [&](std::int64_t, std::int64_t, float logit) {
      state.part = largest(state.part, logit);
    });
  });
  team.template among<lanes>([](RowState& state) -> float& { return state.part; }, Largest());
  team.run([&](int thread, RowState& state) {
    const std::int64_t row = first + thread / lanes;
    if (row < of.rows && thread % lanes == 0) most[row] = state.part;
  });
}

/// sums [2, rows]: of exp(logit - most), and the target's logit less `most`, or 0 where it is none
/// of these classes.
template <class T, class Team>
BATON_DEVICE void exponential_sums_unit(Team& team, const Logits<T>& of, std::int64_t first,
                                        const float* most, float* sums) {
  team.run([&](int thread, RowState& state) {
    state.part = 0;
    each_logit(of, first, thread, [&](std::int64_t row, std::int64_t, float logit) {
      state.part += std::exp(logit - most[row]);
    });
  });
  team.template among<lanes>([](RowState& state) -> float& { return state.part; }, Sum());
  team.run([&](int thread, RowState& state) {
    const std::int64_t row = first + thread / lanes;
    if (row >= of.rows || thread % lanes != 0) return;
    const std::int64_t own = of.own(row);
    sums[row] = state.part;
    sums[of.rows + row] = own < 0 ? 0 : load(of.logits + row * of.classes + own) - most[row];
  });
}

/// terms [rows] of the loss, and dlogits, unless it is null, from sums over all classes.
template <class T, class Team>
BATON_DEVICE void cross_entropy_unit(Team& team, const Logits<T>& of, std::int64_t first,
                                     const float* most, const float* sums, double elements,
                                     double* terms, T* dlogits) {
  team.run([&](int thread, RowState&) {
    const std::int64_t row = first + thread / lanes;
    if (row >= of.rows) return;
    const auto total = static_cast<double>(sums[row]);
    if (thread % lanes == 0)
      terms[row] = std::log(total) - static_cast<double>(sums[of.rows + row]);
    if (!dlogits) return;
    const std::int64_t own = of.own(row);
    const auto scale = static_cast<float>(1 / (total * elements));
    const auto less = static_cast<float>(1 / elements);
    each_logit(of, first, thread, [&](std::int64_t, std::int64_t c, float logit) {
      const float p = std::exp(logit - most[row]) * scale;
      store(dlogits + row * of.classes + c, c == own ? p - less : p);
    });
  });
}

}  // namespace baton::transformer::cuda
