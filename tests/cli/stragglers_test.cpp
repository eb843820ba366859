/// Who entered last, from timelines made by hand.

#include <doctest/doctest.h>

#include "cli/timeline/sources.hpp"

using namespace baton;

namespace {

void add(Timeline& timeline, const char* name, const char* algorithm,
         const std::vector<std::int64_t>& entered, std::vector<int> ranks = {}) {
  const auto number = static_cast<std::uint32_t>(timeline.operations.size());
  TimedOperation operation;
  operation.name = name;
  operation.choice.algorithm = algorithm;
  operation.ranks = std::move(ranks);
  for (std::size_t r = 0; r < entered.size(); ++r) {
    if (entered[r] < 0) continue;  // dropped
    for (const std::int64_t later : {5000, 0}) {
      Event event;
      event.operation = number;
      event.rank = operation.rank_of(static_cast<int>(r));
      event.posted = event.start = event.end = entered[r] + later;
      timeline.events.push_back(event);
    }
  }
  timeline.operations.push_back(std::move(operation));
}

}  // namespace

TEST_CASE("stragglers: the rank that entered last, how often and how late") {
  Trace trace;
  Timeline& timeline = trace.timeline;
  timeline.ranks = 3;
  CHECK(cli::timeline::stragglers(trace) ==
        "no collective of which all ranks' events were recorded\n");
  for (int i = 0; i < 3; ++i) add(timeline, "all_reduce", "ring", {100, 2000, 6000});
  add(timeline, "all_reduce", "tree", {8000, 100, 7000});
  add(timeline, "broadcast", "binomial", {0, 50}, {2, 0});
  add(timeline, "all_reduce", "ring", {0, -1, 9'000'000});  // a rank's events were dropped
  add(timeline, "message", "", {0, 9'000'000}, {0, 1});
  CHECK(cli::timeline::stragglers(trace) ==
        "all_reduce, 4 calls:\n"
        "  rank 2 entered last in 3 of 4, 4.0 us after all others on average\n"
        "  rank 0 entered last in 1 of 4, 1.0 us after all others on average\n"
        "broadcast, 1 call:\n"
        "  rank 0 entered last in 1 of 1, 0.1 us after all others on average\n");
  timeline.clock_error = 1500;
  CHECK(cli::timeline::stragglers(trace).ends_with("Clocks agree to within 1.5 us.\n"));
}
