#pragma once

#include <functional>
#include <string>
#include <vector>

#include "case_runner.hpp"
#include "checker.hpp"
#include "timing.hpp"

namespace baton::cli::measure {

/// One that runs a case: this library in one of its ways, or another library.
struct Side : Timed {
  std::string name;      ///< "baton", "drop-in MPI_Bcast", "MPI_Bcast"
  std::string function;  ///< of MPI; empty: this library's API
  bool ours = false;
  std::string algorithm;      ///< empty: unknown
  std::int64_t segment = 0;   ///< bytes; 0: not cut
  std::string way;            ///< of its messages, on a device; empty: the transport's
  std::function<void()> run;  ///< once, from the case's buffers to its result
  CheckResult check;
};

/// This library by its API. Collective; world and runner must outlive it.
Side own_side(World& world, CaseRunner& runner, const Choice& choice);
/// The collectives that come with the transport: the one that one would call first. Empty if there
/// are none. Collective; world and buffers must outlive them.
std::vector<Side> built_in_sides(World& world, const Case& subject, CaseBuffers& buffers,
                                 Entry entry);

}  // namespace baton::cli::measure
