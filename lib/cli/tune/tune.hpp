#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cli/common/world.hpp"
#include "select/table.hpp"

namespace baton::cli::tune {

/// What `baton tune` measures.
struct TuneOptions {
  std::vector<Collective> collectives;
  std::vector<std::int64_t> sizes;  ///< bytes, as Case::bytes() counts them, ascending
  int repeats = 5;                  ///< measurements of each candidate that is among the best
  double seconds = 0.02;            ///< that one of them takes, about
};

/// The rows of a table: for each collective and size the algorithm and segment that took the least
/// time on its slowest rank. What was best for the size before stays while it is nearly as fast, so
/// that noise makes no rows; of others that are equally fast, the registry's first is taken.
/// `before(what)` is called before each size. Collective; all ranks have the same result.
std::vector<selecting::TuningRow> tune(World& world, Communicator& communicator,
                                       const TuneOptions& options,
                                       const std::function<void(const std::string&)>& before);

}  // namespace baton::cli::tune
