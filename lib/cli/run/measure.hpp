#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/measure/sides.hpp"

namespace baton::cli::run {

/// How a case is run.
struct MeasureOptions {
  std::optional<std::int64_t> segment;  ///< bytes; empty: chosen
  int iterations = 0;                   ///< 0: as many as fit into a tenth of a second, 2 to 1000
  int warmup = 1;
  bool in_place = false;  ///< of flat data; tensors stay apart
};

/// The algorithms of `registry` to run a case with: names, or "" for the library's choice. Empty
/// where no algorithm of the collective has the name, or all refuse.
std::vector<std::string> algorithms_for(const Case& subject, const Registry& registry,
                                        const std::string& name);

/// Checks and times the case: a side for each algorithm, then one for the transport's own
/// collective where it has one. Each has one sample. Collective.
///
/// Each algorithm is run on exact values (or any bits, where data only moves), every result
/// compared with the reference: the built-in's, or one computed from all inputs; then, where
/// reductions round, on random ones. Results that all ranks share must be the same bits on all of
/// them, and the same again after the timed runs. `before(algorithm)` is called before each
/// algorithm.
std::vector<measure::Side> measure_case(World& world, Communicator& communicator,
                                        const Case& subject,
                                        const std::vector<std::string>& algorithms,
                                        const MeasureOptions& options,
                                        const std::function<void(const std::string&)>& before);

}  // namespace baton::cli::run
