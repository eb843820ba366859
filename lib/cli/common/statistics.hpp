#pragma once

#include <vector>

namespace baton::cli {

/// The value at share `q` of the sorted values, interpolated between neighbours. Not of nothing.
double quantile(std::vector<double> values, double q);
double median(std::vector<double> values);
/// Half the distance between the quartiles.
double spread(const std::vector<double>& values);

/// For reports of seconds.
std::vector<double> in_microseconds(std::vector<double> seconds);

/// A median and the bounds of its confidence interval.
struct Interval {
  double median = 0, low = 0, high = 0;
  double coverage = 0;  ///< the confidence that the bounds have
};

/// The median of what the values are drawn from, with at least 95 % confidence, whatever their
/// distribution: the bounds are order statistics, the j-th smallest and the j-th largest with the
/// greatest j for which 1 - 2 P(Bin(n, 1/2) < j) >= 0.95 (e.g. Hahn & Meeker, Statistical
/// Intervals, 1991, section 5.2). Fewer than 6 values have no such j: then least and greatest, with
/// the coverage that they have. Not of nothing.
Interval median_interval(std::vector<double> values);

}  // namespace baton::cli
