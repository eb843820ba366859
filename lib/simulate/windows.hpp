#pragma once

#include <cstdint>

#include "engine.hpp"

namespace baton::simulating {

/// The outcome of a simulation, beside the state.
struct Outcome {
  std::int64_t events = 0, bytes_within = 0;
};

/// Simulates all ranks to the end.
///
/// Time passes in windows as long as the state's lookahead. An event of one domain reaches other
/// domains after the window. So domains run their events independently, on several threads.
Outcome run(State& state, const Network& network, const SimulateOptions& options);

}  // namespace baton::simulating
