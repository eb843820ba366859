#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "baton/schedule/passes.hpp"
#include "support/schedules.hpp"

using namespace baton;
using support::problem;

namespace {

bool contiguous_messages(const Schedule& s) {
  for (const Step& step : s.steps()) {
    if (step.message() && (step.parts[0] != 1 || !s.operand(step, 0)[0].contiguous())) return false;
  }
  return true;
}

/// Sets of problems whose messages are not all contiguous, and some whose are.
std::vector<Problem> varied(Collective collective, int size) {
  std::vector<Problem> all;
  for (const bool in_place : {false, true}) {
    Problem p = problem(collective, size, 0, 6, in_place);
    if (collective == Collective::barrier) p.count = 1;
    all.push_back(p);
    if (collective == Collective::all_gather || collective == Collective::all_to_all) {
      if (collective == Collective::all_gather && in_place) continue;
      p.output_rows = 3;
      p.input_rows = collective == Collective::all_gather ? 1 : in_place ? 3 : 2;
      all.push_back(p);
    }
  }
  return all;
}

}  // namespace

TEST_CASE("packed: every message is contiguous, and the collective is the same") {
  const Registry registry = Registry::builtin();
  int changed = 0;
  for (const Algorithm& algorithm : registry.all()) {
    for (const int size : {2, 3, 5, 8}) {
      for (const Problem& p : varied(algorithm.collective, size)) {
        if (!refusal(algorithm, p).empty()) continue;
        CAPTURE(algorithm.name);
        CAPTURE(size);
        CAPTURE(p.in_place);
        CAPTURE(p.output_rows);
        const auto problems = support::problems(p);
        for (const std::int64_t segment : {0, 2, 4}) {
          std::vector<Schedule> result;
          for (const Schedule& s : support::schedules(algorithm, problems)) {
            const Schedule cut = segmented(s, segment);
            result.push_back(packed(cut));
            CHECK(contiguous_messages(result.back()));
            CHECK(slots_in_pairs(result.back()));  // so that work may go with messages
            CHECK(result.back().sent() == cut.sent());
            CHECK(result.back().messages() == cut.messages());
            if (contiguous_messages(cut)) CHECK(result.back() == cut);
            changed += contiguous_messages(cut) ? 0 : 1;
          }
          CHECK(support::flaws(result, problems) == "");
        }
      }
    }
  }
  CHECK(changed > 100);
}

TEST_CASE("packed: pack before the send, unpack after the receive") {
  const auto schedules = parse(
      "baton-schedule 1\ncollective all_to_all\nsize 2\ninput 8\noutput 8\n"
      "rank 0\nsend 1 input[1:1 x4 /2]\nrecv 1 output[0:2], output[6:2]\n"
      "rank 1\nrecv 0 output[0:4]\nsend 0 input[0:4]\n");
  CHECK(support::steps(packed(schedules[0])) ==
        "copy slot[4:4] = input[1:1 x4 /2]\nsend slot[4:4] to 1\n"
        "recv slot[0:4] from 1\ncopy output[0:2], output[6:2] = slot[0:4]");
  CHECK(packed(schedules[1]) == schedules[1]);
  CHECK(packed(schedules[0]).header().slots == 8);
}

TEST_CASE("packed: slots that a hand-written schedule uses in its own way keep their meaning") {
  const auto schedules = parse(
      "baton-schedule 1\ncollective all_reduce\nsize 3\ninput 4\noutput 4\n"
      "rank 0\nrecv 1 slot[0:4]\nrecv 2 slot[4:4]\n"
      "fold output[0:4] = input[0:4] + slot[0:4]\nfold output[0:4] = output[0:4] + slot[4:4]\n"
      "send 1 output[0:2], output[2:2]\nsend 2 output[0:4]\n"
      "rank 1\nsend 0 input[0:4]\nrecv 0 output[0:4]\n"
      "rank 2\nsend 0 input[0:4]\nrecv 0 output[0:4]\n");
  const auto problems = problems_of(schedules);
  REQUIRE(support::flaws(schedules, problems) == "");
  std::vector<Schedule> result, cut;
  for (const Schedule& s : schedules) {
    result.push_back(packed(s));
    cut.push_back(segmented(s, 3));
  }
  CHECK(contiguous_messages(result[0]));
  CHECK(support::flaws(result, problems) == "");
  CHECK(support::flaws(cut, problems) == "");
}

TEST_CASE("a slot that more than the next step reads is used in a way of its own") {
  // Rank 0 uses what it has received once more.
  for (const char* const once_more :
       {"copy slot[4:4] = slot[0:4]\nsend 2 slot[4:4]",
        "fold slot[4:4] = slot[0:4] + input[0:4]\nsend 2 slot[4:4]",
        "divide slot[0:4]\nsend 2 slot[0:4]",
        "recv 2 slot[4:4]\nfold output[0:4] = slot[0:4] + slot[4:4]"}) {
    const Schedule s =
        parse(std::string("baton-schedule 1\ncollective all_reduce\nsize 3\ninput 4\n"
                          "output 4\nrank 0\nrecv 1 slot[0:4]\n"
                          "copy output[0:4] = slot[0:4]\n") +
              once_more + "\nrank 1\nrank 2\n")[0];
    CHECK(!slots_in_pairs(s));
    const Schedule cut = segmented(s, 3);
    for (const Step& step : cut.steps())  // no step reads where it writes
      if (step.kind == StepKind::copy)
        CHECK(!std::ranges::equal(cut.operand(step, 0), cut.operand(step, 1)));
  }
  const Schedule pairs = parse(
      "baton-schedule 1\ncollective all_reduce\nsize 2\ninput 4\noutput 4\nrank 0\n"
      "recv 1 slot[0:4]\nfold output[0:4] = slot[0:4] + input[0:4]\nrank 1\n")[0];
  CHECK(slots_in_pairs(pairs));
}
