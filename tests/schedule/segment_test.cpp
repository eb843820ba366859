#include <doctest/doctest.h>

#include <map>

#include "baton/schedule/passes.hpp"
#include "support/schedules.hpp"

using namespace baton;
using support::problem;

namespace {

/// Calls `body(algorithm, problems)` for all algorithms and some problems that they serve.
template <class Body>
void for_each_algorithm(const Body& body) {
  const Registry registry = Registry::builtin();
  for (const Algorithm& algorithm : registry.all()) {
    for (const int size : {1, 2, 3, 5, 6, 8}) {
      for (const std::int64_t count : {1, 7, 13}) {
        for (const bool in_place : {false, true}) {
          Problem p = problem(algorithm.collective, size, 0, count, in_place);
          p.root = size / 2;
          if (algorithm.collective == Collective::barrier) p.count = 1;
          if (algorithm.collective == Collective::all_to_all) p.output_rows = p.input_rows = count;
          p.hosts = support::hosts_for(algorithm, p.size);
          if (!refusal(algorithm, p).empty()) continue;
          CAPTURE(algorithm.name);
          CAPTURE(std::string(name(algorithm.collective)));
          CAPTURE(size);
          CAPTURE(count);
          CAPTURE(in_place);
          body(algorithm, support::problems(p));
        }
      }
    }
  }
}

using Stream = std::tuple<int, int, int>;  // from, to, lane

/// Lengths of the messages as the senders (or receivers) see them.
std::map<Stream, std::vector<std::int64_t>> lengths(const std::vector<Schedule>& schedules,
                                                    StepKind kind) {
  std::map<Stream, std::vector<std::int64_t>> all;
  for (const Schedule& s : schedules) {
    for (const Step& step : s.steps()) {
      if (step.kind != kind) continue;
      const int from = kind == StepKind::send ? s.rank() : step.peer;
      const int to = kind == StepKind::send ? step.peer : s.rank();
      all[{from, to, step.lane}].push_back(s.length(step));
    }
  }
  return all;
}

std::vector<Schedule> segmented_all(const std::vector<Schedule>& whole, std::int64_t segment) {
  std::vector<Schedule> cut;
  for (const Schedule& s : whole) cut.push_back(segmented(s, segment));
  return cut;
}

}  // namespace

TEST_CASE("a segmented schedule is the same collective in smaller messages") {
  for_each_algorithm([](const Algorithm& algorithm, const std::vector<Problem>& problems) {
    const auto whole = support::schedules(algorithm, problems);
    for (const std::int64_t segment : {1, 3}) {
      const auto cut = segmented_all(whole, segment);
      CHECK(support::flaws(cut, problems) == "");
      CHECK(lengths(cut, StepKind::send) == lengths(cut, StepKind::recv));
      for (std::size_t r = 0; r < cut.size(); ++r) {
        CHECK(cut[r].sent() == whole[r].sent());
        CHECK(cut[r].received() == whole[r].received());
        CHECK(cut[r].header().scratch == whole[r].header().scratch);
        CHECK(cut[r].header().slots <= 2 * cut[r].lanes() * segment);
        CHECK(cut[r].rounds() == whole[r].rounds());
        std::int64_t pieces = 0;
        for (const Step& step : whole[r].steps()) {
          if (step.kind == StepKind::send)
            pieces += (whole[r].length(step) + segment - 1) / segment;
        }
        CHECK(cut[r].messages() == pieces);
        for (const Step& step : cut[r].steps()) CHECK(cut[r].length(step) <= segment);
      }
    }
  });
}

TEST_CASE("uneven counts, segmented") {
  const Registry registry = Registry::builtin();
  const std::int64_t counts[] = {5, 0, 1, 9};
  for (const Algorithm& algorithm : registry.all()) {
    if (!algorithm.uneven || algorithm.collective == Collective::all_to_all) continue;
    Problem p = problem(algorithm.collective, 4, 0, 5);
    p.input_blocks = p.output_blocks = Blocks::packed(counts);
    p.hosts = support::hosts_for(algorithm, p.size);
    CAPTURE(algorithm.name);
    const auto problems = support::problems(p);
    CHECK(support::flaws(segmented_all(support::schedules(algorithm, problems), 2), problems) ==
          "");
  }
}

TEST_CASE("segments of nothing, and larger than every message, change nothing") {
  for_each_algorithm([](const Algorithm& algorithm, const std::vector<Problem>& problems) {
    for (const Schedule& s : support::schedules(algorithm, problems)) {
      CHECK(segmented(s, 0) == s);
      CHECK(segmented(s, -1) == s);
      const Schedule large = segmented(s, 1'000'000);
      CHECK_MESSAGE(large == s, difference(large, s).value_or(""));
    }
  });
}

TEST_CASE("pieces of a pipeline overlap: a chain forwards piece by piece") {
  const Registry registry = Registry::builtin();
  const Schedule whole = registry.find(Collective::broadcast, "chain")
                             .generate(problem(Collective::broadcast, 3, 1, 6));
  CHECK(support::steps(segmented(whole, 2)) ==
        "recv output[0:2] from 0\nrecv output[2:2] from 0\nrecv output[4:2] from 0\n"
        "send output[0:2] to 2\nsend output[2:2] to 2\nsend output[4:2] to 2");
  const Schedule cut = segmented(whole, 2);
  for (std::size_t i = 3; i < 6; ++i) {
    CHECK(std::vector(cut.dependencies(i).begin(), cut.dependencies(i).end()) ==
          std::vector<std::uint32_t>{static_cast<std::uint32_t>(i - 3)});
  }
}
