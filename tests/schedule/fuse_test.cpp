#include <doctest/doctest.h>

#include <map>

#include "baton/error.hpp"
#include "baton/schedule/passes.hpp"
#include "support/ranks.hpp"
#include "support/sanitizer.hpp"
#include "support/schedules.hpp"

using namespace baton;
using support::problem;

namespace {

/// Calls `body(algorithm, problems, schedules, window)` for all algorithms, whole and in segments.
template <class Body>
void for_each_case(const std::vector<int>& sizes, const Body& body) {
  const Registry registry = Registry::builtin();
  for (const Algorithm& algorithm : registry.all()) {
    for (const int size : sizes) {
      for (const std::int64_t count : {1, 7, 13}) {
        if (support::under_sanitizer && count == 7) continue;
        for (const bool in_place : {false, true}) {
          Problem p = problem(algorithm.collective, size, 0, count, in_place);
          if (rooted(p.collective)) p.root = size / 2;
          if (algorithm.collective == Collective::barrier) p.count = 1;
          if (algorithm.pipelined) p.blocks = 3;
          if (p.collective == Collective::all_to_all) p.output_rows = p.input_rows = count;
          p.hosts = support::hosts_for(algorithm, size);
          if (!refusal(algorithm, p).empty()) continue;
          CAPTURE(std::string(name(algorithm.collective)));
          CAPTURE(algorithm.name);
          CAPTURE(size);
          CAPTURE(count);
          CAPTURE(in_place);
          const auto problems = support::problems(p);
          const auto whole = support::schedules(algorithm, problems);
          body(problems, whole, 0);
          std::vector<Schedule> cut, contiguous;
          for (const Schedule& s : whole) {
            cut.push_back(segmented(s, 2));
            contiguous.push_back(packed(s));
          }
          body(problems, contiguous, 0);
          for (const int window : {0, 1, 2}) {
            CAPTURE(window);
            body(problems, cut, window);
          }
        }
      }
    }
  }
}

std::string flaws(const std::vector<Schedule>& made, const std::vector<Problem>& problems) {
  const Proof proof = verify_fused(made, problems);
  return proof.holds() ? "" : proof.findings[0].sentence;
}

using Lengths = std::map<std::tuple<StepKind, int, int>, std::vector<std::int64_t>>;
/// Lengths of a rank's messages by kind, peer and lane, in order of size.
Lengths messages(const Schedule& s) {
  Lengths lengths;
  for (const Step& step : s.steps()) {
    if (step.message()) lengths[{step.kind, step.peer, step.lane}].push_back(s.length(step));
  }
  for (auto& [stream, list] : lengths) std::ranges::sort(list);
  return lengths;
}

/// For each step whether it comes to wait for `first`, by whatever way.
std::vector<bool> waiting_for(const Schedule& s, std::size_t first) {
  std::vector<bool> waits(s.steps().size(), false);
  waits[first] = true;
  for (std::size_t i = first + 1; i < waits.size(); ++i) {
    for (const std::uint32_t d : s.dependencies(i)) waits[i] = waits[i] || waits[d];
  }
  return waits;
}

/// Groups of a set of schedules.
int fused_groups_of(const std::vector<Schedule>& schedules) {
  int count = 0;
  for (const Schedule& s : schedules) {
    for (const Step& step : s.steps()) {
      if (step.message()) count = std::max(count, step.round + 1);
    }
  }
  return count;
}

std::vector<Schedule> generated(Collective collective, const std::string& algorithm, int size,
                                std::int64_t count, bool in_place = false, int blocks = 1) {
  const Registry registry = Registry::builtin();
  Problem p = problem(collective, size, 0, count, in_place);
  p.blocks = blocks;
  return support::schedules(registry.find(collective, algorithm), support::problems(p));
}

int fused_groups(Collective collective, const std::string& algorithm, int size,
                 bool in_place = false) {
  return fused_groups_of(fused(generated(collective, algorithm, size, 16, in_place)));
}

}  // namespace

TEST_CASE("a fused schedule is the same collective, proved in fused groups and without") {
  for_each_case({1, 2, 3, 5, 6, 8}, [](const auto& problems, const auto& schedules, int window) {
    const std::vector<Schedule> made = fused(schedules, window);
    CHECK(flaws(made, problems) == "");
    CHECK(support::flaws(made, problems) == "");
    for (std::size_t r = 0; r < made.size(); ++r) {
      Schedule::Header header = schedules[r].header();
      header.slots = made[r].header().slots;
      CHECK(made[r].header() == header);
      CHECK(made[r].steps().size() == schedules[r].steps().size());
      CHECK(messages(made[r]) == messages(schedules[r]));
      CHECK(parse(print(made[r]))[0] == made[r]);
    }
  });
}

TEST_CASE(
    "the messages of a fused group are independent, side by side, and of one number at both ends") {
  for_each_case({2, 3, 4, 7}, [](const auto&, const auto& schedules, int window) {
    const std::vector<Schedule> made = fused(schedules, window);
    std::map<std::tuple<int, int>, std::vector<std::pair<int, int>>> sent, received;
    for (const Schedule& s : made) {
      const auto steps = s.steps();
      std::map<std::tuple<int, StepKind, int, int>, int> streams;
      for (std::size_t i = 0; i < steps.size(); ++i) {
        const Step& step = steps[i];
        if (i > 0) CHECK(step.round >= steps[i - 1].round);
        if (!step.message()) continue;
        if (i > 0 && steps[i - 1].round == step.round && step.round > 0) {
          CHECK(steps[i - 1].message());
        }
        const std::pair number(step.round, int{step.lane});
        if (step.kind == StepKind::send) sent[{s.rank(), step.peer}].push_back(number);
        if (step.kind == StepKind::recv) received[{step.peer, s.rank()}].push_back(number);
        const int together = ++streams[{step.round, step.kind, step.peer, step.lane}];
        if (window > 0) CHECK(together <= window);
        const auto waits = waiting_for(s, i);
        std::size_t k = i + 1;
        while (k < steps.size() &&
               !(waits[k] && steps[k].message() && steps[k].round == step.round)) {
          ++k;
        }
        CHECK(k == steps.size());
      }
    }
    CHECK(sent == received);
    for (const auto& [pair, numbers] : sent) CHECK(std::ranges::is_sorted(numbers));
  });
}

TEST_CASE("there are as many fused groups as messages on the longest chain") {
  using enum Collective;
  CHECK(fused_groups(all_reduce, "ring", 8) == 14);
  CHECK(fused_groups(all_reduce, "recursive_doubling", 8) == 3);
  CHECK(fused_groups(all_reduce, "rabenseifner", 8) == 6);
  CHECK(fused_groups(all_gather, "ring", 7) == 6);
  CHECK(fused_groups(all_gather, "bruck", 7) == 3);
  CHECK(fused_groups(broadcast, "binomial", 8) == 3);
  CHECK(fused_groups(broadcast, "binomial", 9) == 3);
  CHECK(fused_groups(broadcast, "chain", 8) == 7);
  CHECK(fused_groups(broadcast, "linear", 8) == 1);
  CHECK(fused_groups(barrier, "dissemination", 8) == 3);
  CHECK(fused_groups(all_to_all, "spread_out", 8) == 1);
  CHECK(fused_groups(all_to_all, "pairwise", 8) == 1);
  CHECK(fused_groups(all_reduce, "one_shot", 8) == 1);
  // Two slots would make these wait four times.
  CHECK(fused_groups(all_to_all, "pairwise", 8, true) == 1);
  CHECK(fused_groups(reduce, "linear", 8) == 1);
}

TEST_CASE("pieces travel together, or as a pipeline where a window holds them apart") {
  std::vector<Schedule> cut;
  for (const Schedule& s : generated(Collective::broadcast, "chain", 4, 10)) {
    cut.push_back(segmented(s, 2));
  }
  CHECK(fused_groups_of(fused(cut)) == 3);
  CHECK(fused_groups_of(fused(cut, 5)) == 3);
  CHECK(fused_groups_of(fused(cut, 2)) == 3 + 2);
  const std::vector<Schedule> pipeline = fused(cut, 1);
  CHECK(fused_groups_of(pipeline) == 3 + 4);
  CHECK(support::steps(pipeline[1]) ==
        "recv output[0:2] from 0\nrecv output[2:2] from 0\nsend output[0:2] to 2\n"
        "recv output[4:2] from 0\nsend output[2:2] to 2\nrecv output[6:2] from 0\n"
        "send output[4:2] to 2\nrecv output[8:2] from 0\nsend output[6:2] to 2\n"
        "send output[8:2] to 2");
}

TEST_CASE("slots are as many as messages wait at once") {
  const auto slots = [](const std::vector<Schedule>& schedules, int window) {
    return fused(schedules, window)[0].header().slots;
  };
  const auto ring = generated(Collective::all_reduce, "ring", 8, 64);
  CHECK(slots(ring, 0) == 8);  // one chunk
  CHECK(slots(generated(Collective::reduce, "linear", 8, 64), 0) == 7 * 64);
  std::vector<Schedule> cut;
  for (const Schedule& s : ring) cut.push_back(segmented(s, 2));
  CHECK(slots(cut, 0) == 8);
  CHECK(slots(cut, 1) == 2);
}

TEST_CASE("one rank's fused groups are those that it has among all") {
  for_each_case({1, 3, 8}, [](const auto&, const auto& schedules, int window) {
    const std::vector<Schedule> made = fused(schedules, window);
    for (std::size_t r = 0; r < made.size(); ++r) {
      const auto of = [&](int rank) { return schedules[static_cast<std::size_t>(rank)]; };
      CHECK(fused(of, static_cast<int>(r), window) == made[r]);
    }
  });
}

TEST_CASE("listed dependencies are kept") {
  // Both ranks wait where the regions do not say so.
  const std::vector<Schedule> made = fused(parse(R"(baton-schedule 1
collective all_reduce
size 2
input 2
output 2
dependencies listed
rank 0
  send 1 input[0:1]
  recv 1 slot[0:2] after 0
  fold output[0:2] = input[0:2] + slot[0:2] after 1
rank 1
  recv 0 output[0:1]
  send 0 input[0:2] after 0
)"));
  CHECK(fused_groups_of(made) == 2);
  CHECK(std::ranges::equal(made[0].dependencies(1), std::vector<std::uint32_t>{0}));
  CHECK(std::ranges::equal(made[0].dependencies(2), std::vector<std::uint32_t>{1}));
  CHECK(std::ranges::equal(made[1].dependencies(1), std::vector<std::uint32_t>{0}));
}

TEST_CASE("slots that are used in another way are kept") {
  const std::vector<Schedule> made = fused(parse(R"(baton-schedule 1
collective all_reduce
size 2
input 2
output 2
rank 0
  recv 1 output[0:2]
  send 1 output[0:2]
rank 1
  copy slot[1:1] = input[1:1]
  copy slot[0:1] = input[0:1]
  recv 0 output[0:2]
  send 0 slot[0:2]
)"));
  CHECK(support::steps(made[1]) ==
        "copy slot[1:1] = input[1:1]\ncopy slot[0:1] = input[0:1]\nsend slot[0:2] to 0\n"
        "recv output[0:2] from 0");
  CHECK(std::ranges::equal(made[1].dependencies(2), std::vector<std::uint32_t>{0, 1}));
  CHECK(made[1].header().slots == 2);
}

TEST_CASE("messages that overtake others of their lane do so at both ends") {
  // What rank 0 sends first, rank 1 can take last only.
  const std::string text = R"(baton-schedule 1
collective all_reduce
size 3
input 2
output 2
rank 0
  send 1 input[0:1]
  send 1 input[1:1]
rank 1
  recv 2 output[0:1]
  recv 0 output[0:1]
  recv 0 output[1:1]
rank 2
  send 1 input[0:1]
)";
  const std::vector<Schedule> made = fused(parse(text));
  CHECK(support::steps(made[0]) == "send input[1:1] to 1\nsend input[0:1] to 1");
  CHECK(support::steps(made[1]) ==
        "recv output[0:1] from 2\nrecv output[1:1] from 0\nrecv output[0:1] from 0");
  CHECK(made[0].steps()[1].round == 1);
}

TEST_CASE("schedules that have no fused groups are refused") {
  const std::string head = "baton-schedule 1\ncollective all_reduce\nsize 2\ninput 2\noutput 2\n";
  const auto says = [&](const std::string& ranks, const std::vector<std::string>& parts) {
    const std::vector<Schedule> schedules = parse(head + ranks);
    const Error error = support::error_of([&] { fused(schedules); });
    CHECK(error.code == ErrorCode::invalid_argument);
    CHECK_MESSAGE(support::holds(error.what(), parts), std::string(error.what()));
  };
  says("rank 0\nsend 1 input[0:1]\nsend 1 input[1:1]\nrank 1\nrecv 0 output[0:1]\n",
       {"as many receives as sends from rank 0 to rank 1 in lane 0", "1 receive, 2 sends"});
  says("rank 0\nsend 1 input[0:1]\nrank 1\nrecv 0 output[0:1]\nrecv 0 output[1:1] lane 2\n",
       {"as many receives as sends from rank 0 to rank 1 in lane 2", "1 receive, 0 sends"});
  says(
      "rank 0\nrecv 1 output[0:1]\nsend 1 output[0:1]\nrank 1\nrecv 0 output[0:1]\n"
      "send 0 output[0:1]\n",
      {"steps that can take place", "step", "waits for itself"});
  says("rank 0\n", {"the schedules of 2 ranks, found 1"});
  says("rank 1\n" + head + "rank 0\n", {"the schedule of rank 0 of 2", "found that of rank 1"});
}

TEST_CASE("ranks that call in place and ranks that do not come to the same fused groups") {
  const Registry registry = Registry::builtin();
  for (const Algorithm& algorithm : registry.all()) {
    for (const int size : {2, 3, 5, 8}) {
      for (const auto& options : {std::pair(0, 0), {3, 1}}) {
        const int segment = options.first, window = options.second;
        Problem p = problem(algorithm.collective, size, 0, 2 * size + 3, true);
        if (algorithm.collective == Collective::barrier) p.count = 1;
        if (algorithm.pipelined && segment > 0) p.blocks = 3;
        p.hosts = support::hosts_for(algorithm, size);
        if (!refusal(algorithm, p).empty()) continue;
        const auto generated = [&](const Problem& problem) {
          return packed(segmented(algorithm.generate(problem), segment));
        };
        const auto known = [&](int rank) { return generated(p.at(rank)); };
        std::vector<Problem> mixed = support::problems(p);
        std::vector<Schedule> made;
        for (Problem& own : mixed) {
          own.in_place = own.rank % 2 == 0;
          made.push_back(fused(known, generated(own), window));
        }
        CAPTURE(std::string(name(algorithm.collective)));
        CAPTURE(algorithm.name);
        CAPTURE(size);
        CAPTURE(segment);
        CHECK(flaws(made, mixed) == "");
        CHECK(fused(known, known(size - 1), window) == fused(known, size - 1, window));
      }
    }
  }
}

TEST_CASE("a rank's own schedule has the messages that others know of, and none that waits") {
  const auto pair = [](const std::string& steps) {
    return parse("baton-schedule 1\ncollective all_reduce\nsize 2\ninput 2\noutput 2\nrank 0\n" +
                 steps + "rank 1\nrecv 0 output[0:1]\nsend 0 output[1:1]\n");
  };
  const auto schedules = pair("send 1 input[0:1]\nrecv 1 output[0:1]\n");
  const auto known = [&](int rank) { return schedules[static_cast<std::size_t>(rank)]; };
  const auto says = [&](const std::string& steps, const std::string& found) {
    const Error error = support::error_of([&] { fused(known, pair(steps)[0]); });
    CHECK(error.code == ErrorCode::invalid_argument);
    CHECK_MESSAGE(support::holds(error.what(), {"of rank 0", found}), std::string(error.what()));
  };
  CHECK(fused(known, pair("recv 1 output[1:1]\ncopy output[0:1] = output[1:1]\nsend 1 "
                          "input[0:1]\n")[0])
            .steps()
            .size() == 3);
  says("send 1 input[0:1]\nrecv 1 output[0:1]\nsend 1 input[1:1]\n", "one more");
  says("send 1 input[0:1]\n", "found none");
  says("recv 1 output[0:1]\nsend 1 output[0:1]\n", "waits for its own");
}
