#pragma once
/// Schedules as text: readable, complete, and read back to an equal value. The format is described
/// in lib/schedule/README.md.

#include <string>
#include <string_view>
#include <vector>

#include "baton/schedule/step.hpp"

#pragma GCC visibility push(default)
namespace baton {

/// The text form of one rank's schedule, dependencies listed.
std::string print(const Schedule& schedule);
/// "output[0:4]", "input[3:2 x5 /8]": one region.
std::string print(const Region& region);
/// One step as a phrase: "fold output[0:4] = slot[0:4] + input[0:4]".
std::string print(const Schedule& schedule, std::size_t index);

/// Reads any number of schedules, one per rank, and returns them by rank; those of joined texts,
/// text by text. Dependencies that a rank's text does not list are inferred. Throws
/// Error(invalid_argument) naming `origin`, the line, what was expected and found.
std::vector<Schedule> parse(std::string_view text, std::string_view origin = "schedule");

}  // namespace baton
#pragma GCC visibility pop
