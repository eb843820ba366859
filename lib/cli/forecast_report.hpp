#pragma once

#include <cstdint>
#include <vector>

#include "forecast.hpp"

namespace baton::cli {

/// How the ranks' times are spread.
struct Spread {
  std::int64_t least, median, most;
};

Spread spread_of(std::vector<std::int64_t> finish);

/// Of the host that sends, and of the one that receives, the most.
HostBytes most_bytes(const Prediction& prediction);

/// What decided the time of the last step.
struct Path {
  std::int64_t messages = 0, folds = 0, copies = 0;
  std::vector<int> ranks;  ///< that it leads through
};

Path path_of(Timeline timeline);

/// `path` may be null: not looked for.
Json json(const Forecast& forecast, const Exercise& exercise, const Path* path);
void print(const Forecast& forecast, const Path* path);

}  // namespace baton::cli
