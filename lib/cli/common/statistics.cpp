#include "statistics.hpp"

#include <algorithm>
#include <cmath>

namespace baton::cli {

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const double at = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

double spread(const std::vector<double>& values) {
  return (quantile(values, 0.75) - quantile(values, 0.25)) / 2;
}

std::vector<double> in_microseconds(std::vector<double> seconds) {
  for (double& value : seconds) value *= 1e6;
  return seconds;
}

Interval median_interval(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t n = values.size();
  // P(Bin(n, 1/2) = k) and P(Bin(n, 1/2) <= k), for k = 0, 1, …; the terms are far from underflow
  // for any number of pairs that one waits for.
  double term = std::exp2(-static_cast<double>(n)), tail = term;
  std::size_t j = 1;
  for (;; ++j) {
    const auto k = static_cast<double>(j);
    const double next = term * (static_cast<double>(n) - k + 1) / k;
    if (1 - 2 * (tail + next) < 0.95) break;
    tail += term = next;
  }
  return {median(values), values[j - 1], values[n - j], 1 - 2 * tail};
}

}  // namespace baton::cli
