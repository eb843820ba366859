#pragma once
/// One collective with one fault, and the judgement of its end.

#include <cstdint>
#include <string>

#include "baton/options.hpp"
#include "faulty_transport.hpp"
#include "work.hpp"

namespace faults {

struct Case {
  baton::Collective collective = baton::Collective::barrier;
  baton::Choice choice;
  int size = 2;
  int check = 0;  ///< Options::check
  Plan plan;
};
/// "all_reduce ring:16 on 5 ranks, check 2, rank 2: message 5 corrupted".
std::string describe(const Case& one);

struct Outcome {
  bool happened = false;  ///< the fault; if not, the rank has fewer messages or allocations
  bool served = true;     ///< the algorithm serves this number of ranks
  bool right = false;     ///< all ranks had the right result
  std::string problem;    ///< empty: the end was as promised
};

/// Runs the collective and a barrier on threads. Promised is: each survivor has the right result,
/// or all that have none get the same error; the survivors' communicator works; nothing is left,
/// neither memory nor threads. Kinds `none` and `reordered`: all have the right result.
Outcome run(const Case& one);

}  // namespace faults
