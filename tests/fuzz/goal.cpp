/// LogGOPSim's schedules.

#include "diagrams/readers.hpp"

#include "target.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  baton::fuzz::accepted(
      [&] { baton::diagrams::parse_goal(baton::fuzz::text_of(data, size), "schedule.goal"); });
  return 0;
}
