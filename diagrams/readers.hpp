#pragma once
/// Readers of others' schedules, in the forms that goal() and msccl() write.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "baton/schedule.hpp"

namespace baton::diagrams {

/// How an MSCCL file is read.
struct MscclOptions {
  std::int64_t chunk = 1;  ///< elements of each of its chunks
  bool in_place = false;   ///< of a file that serves both: input and output are one buffer
};

/// The schedules of all ranks of an MSCCL algorithm, with the order of the file as dependencies:
/// steps of a thread block follow one another, and wait for the steps that the file names. A
/// channel is a lane. Throws Error(invalid_argument) naming `origin`, the line, what was expected
/// and what was found.
std::vector<Schedule> parse_msccl(std::string_view text, const std::string& origin,
                                  const MscclOptions& options = {});

/// The schedules of all ranks of a LogGOPSim file, as programs of messages and computations whose
/// elements are bytes. The file has no data: all sends read the same bytes of scratch, and each
/// receive has bytes of its own. A message of 0 bytes becomes one of 1. Computations of a rank
/// follow one another. Throws Error(invalid_argument) naming
/// `origin`, the line, what was expected and what was found.
std::vector<Schedule> parse_goal(std::string_view text, const std::string& origin);

}  // namespace baton::diagrams
