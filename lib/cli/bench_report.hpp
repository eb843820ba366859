#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "contest.hpp"
#include "network.hpp"

namespace baton::cli {

/// All that was measured on one exercise.
struct BenchRow {
  Exercise exercise;
  Contest contest;
  double lower_bound = 0;  ///< seconds per call; 0: there is none

  std::int64_t checks() const;
  std::int64_t wrong() const;
  /// Lower bound / time of a side.
  Interval share(const Contestant& side) const;
  Json json() const;
};

/// What the last column of a table says: the share of the limit, or by what messages go.
enum class LastColumn : std::uint8_t { limit, way };

/// A line for each comparison, or one for each side where there are none, under a head. Where sides
/// have a way, that is the last column.
std::string bench_head(LastColumn last);
std::string bench_lines(const BenchRow& row);

/// "latency 0.21 us, 9.1 GB/s each way at 64.0 MiB"
std::string text_of(const Path& path);

}  // namespace baton::cli
