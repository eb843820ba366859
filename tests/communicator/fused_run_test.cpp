#include <doctest/doctest.h>

#include <string>

#include "baton/schedule/passes.hpp"
#include "baton/verify.hpp"
#include "communicator/planner.hpp"
#include "support/fused_run.hpp"
#include "support/ranks.hpp"
#include "support/sanitizer.hpp"
#include "support/schedules.hpp"
#include "support/values.hpp"

using namespace baton;
using namespace support;

namespace {

/// One collective, as it is and in groups.
struct Case {
  std::string name;
  Op op;
  std::vector<Schedule> whole, groups;
};

std::vector<Case> cases(int size) {
  std::vector<Case> all;
  const Registry registry = Registry::builtin();
  for (const Algorithm& algorithm : registry.all()) {
    for (const bool in_place : {false, true}) {
      Problem p = problem(algorithm.collective, size, 0, 2 * size + 3, in_place);
      if (algorithm.collective == Collective::barrier) p.count = 1;
      if (algorithm.pipelined) p.blocks = 3;
      p.root = rooted(p.collective) ? size / 2 : 0;
      p.average = reducing(p.collective) && in_place;
      p.hosts = hosts_for(algorithm, size);
      if (!refusal(algorithm, p).empty()) continue;
      const std::vector<Schedule> whole = schedules(algorithm, problems(p));
      for (const auto& [segment, window] : {std::pair(0, 0), {3, 0}, {3, 1}}) {
        std::vector<Schedule> cut;
        for (const Schedule& s : whole) cut.push_back(packed(segmented(s, segment)));
        all.push_back({std::string(name(p.collective)) + " " + algorithm.name + ", " +
                           std::to_string(size) + " ranks, segment " + std::to_string(segment) +
                           ", window " + std::to_string(window) + (in_place ? ", in place" : ""),
                       p.average ? avg : sum, cut, fused(cut, window)});
      }
    }
  }
  return all;
}

/// Numbers whose sum depends on the order in which they are added.
std::vector<float> numbers(int rank, std::int64_t count) {
  std::vector<float> out;
  for (std::int64_t i = 0; i < count; ++i) {
    out.push_back(static_cast<float>(value(1, rank, i)) * (i % 3 == 0 ? 1e6F : 0.37F));
  }
  return out;
}

}  // namespace

TEST_CASE("groups, one after another, end with the bits of the same schedule run freely") {
  for (const int size :
       support::under_sanitizer ? std::vector{1, 2, 5} : std::vector{1, 2, 3, 4, 5, 6, 7, 8}) {
    const std::vector<Case> all = cases(size);
    CHECK(all.size() > 200);
    Watchdog watchdog(size, std::chrono::seconds(120));
    ThreadOptions options;
    options.seed = 7;         // messages are late at random
    options.eager_bytes = 0;  // and wait for their receivers
    run_threads(
        size,
        [&](std::unique_ptr<Transport> transport) {
          const int rank = transport->rank();
          const auto groups = transport->split(0, rank);
          Communicator communicator(std::move(transport), test_options());
          for (const Case& c : all) {
            const Schedule& whole = c.whole[static_cast<std::size_t>(rank)];
            std::vector<float> input = numbers(rank, whole.header().input);
            std::vector<float> output = numbers(rank + size, whole.header().output);
            std::vector<float> their_input = input, their_output = output;
            communicator.run(whole, input, output, c.op);
            FusedRun(*groups, c.groups[static_cast<std::size_t>(rank)], their_input, their_output)
                .run();
            CHECK_MESSAGE(same_bits(input, their_input), c.name, ", input of rank ", rank);
            CHECK_MESSAGE(same_bits(output, their_output), c.name, ", output of rank ", rank);
          }
          watchdog.returned(rank);
        },
        options);
  }
}

TEST_CASE("ranks agree on fused groups whoever of them calls in place") {
  constexpr int size = 8;
  const Registry registry = Registry::builtin();
  for (const Algorithm& algorithm : registry.all()) {
    Problem p = problem(algorithm.collective, size, 0, 2 * size + 3, true);
    if (algorithm.collective == Collective::barrier) p.count = 1;
    p.hosts = hosts_for(algorithm, size);
    if (!refusal(algorithm, p).empty()) continue;
    for (const std::int64_t segment : {0, 12}) {
      std::vector<Problem> all = problems(p);
      std::vector<Schedule> groups;
      for (Problem& own : all) {
        own.in_place = own.rank % 3 == 0;
        communicator::Arguments arguments;
        arguments.element_bytes = sizeof(float);
        arguments.input_sizes = {own.input_extent()};
        arguments.output_sizes = {own.output_extent()};
        groups.push_back(communicator::fused_schedule(arguments, {&algorithm, segment, {}}, own));
      }
      const Proof proof = verify_fused(groups, all);
      CHECK_MESSAGE(proof.findings.empty(), std::string(name(p.collective)), " ", algorithm.name,
                    ", segment ", segment, ": ",
                    proof.findings.empty() ? "" : proof.findings[0].sentence);
    }
  }
}
