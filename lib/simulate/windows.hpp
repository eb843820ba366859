#pragma once

#include <cstdint>

#include "engine.hpp"

namespace baton::simulating {

/// What came to pass beside a state.
struct Outcome {
  std::int64_t events = 0, bytes_within = 0;
};

/// Simulates all ranks to the end.
///
/// Time passes in windows as long as the state's lookahead: what happens in one domain in a window
/// reaches others after it, so domains follow their events one by one, and on several threads.
Outcome run(State& state, const Network& network, const SimulateOptions& options);

}  // namespace baton::simulating
