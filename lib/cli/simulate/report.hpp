#pragma once

#include <cstdint>
#include <vector>

#include "cli/common/json.hpp"
#include "simulation.hpp"

namespace baton::cli::simulate {

/// How the ranks' times are spread.
struct Spread {
  std::int64_t least, median, most;
};

Spread spread_of(std::vector<std::int64_t> finish);

/// Of the host that sends, and of the one that receives, the most.
HostBytes most_bytes(const Prediction& prediction);

/// The chain of events that decided the time of the last step.
struct CriticalPath {
  std::int64_t messages = 0, folds = 0, copies = 0;
  std::vector<int> ranks;  ///< that it leads through
};

CriticalPath path_of(Timeline timeline);

/// `path` may be null: not looked for.
Json json_of(const Forecast& forecast, const Case& subject, const CriticalPath* path);
void print(const Forecast& forecast, const CriticalPath* path);

}  // namespace baton::cli::simulate
