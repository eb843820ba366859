#include <doctest/doctest.h>
#include <baton/error.hpp>
#include <baton/explain.hpp>
#include <baton/schedule/text.hpp>

#include "support/programs.hpp"
#include "support/schedules.hpp"

using namespace baton;

namespace {

std::vector<Schedule> schedules_of(std::string_view algorithm, Problem p) {
  const Registry registry = Registry::builtin();
  std::vector<Schedule> schedules;
  for (p.rank = 0; p.rank < p.size; ++p.rank) {
    schedules.push_back(registry.find(p.collective, algorithm).generate(p));
  }
  return schedules;
}

Problem problem(Collective collective, int size, std::int64_t count) {
  Problem p;
  p.collective = collective;
  p.size = size;
  p.count = count;
  return p;
}

std::string refused(std::span<const Schedule> schedules, const WalkThrough& how = {}) {
  try {
    walk_through(schedules, how);
  } catch (const Error& error) {
    CHECK(error.code == ErrorCode::invalid_argument);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a broadcast of 10 (r + 1) from root 1 on 4 ranks") {
  Problem p = problem(Collective::broadcast, 4, 1);
  p.root = 1;
  CHECK(walk_through(schedules_of("binomial", p)) == R"(broadcast by binomial, 4 ranks, root 1

                rank 0   rank 1   rank 2   rank 3
before          10       20       30       40
after round 0   10       20       30       20
after round 1   20       20       20       20
)");
  CHECK(walk_through(schedules_of("linear", p), {.values = {}, .every_step = true}) ==
        R"(broadcast by linear, 4 ranks, root 1

                                      rank 0   rank 1   rank 2   rank 3
before                                10       20       30       40
rank 2: recv output[0:1] from 1: 20   10       20       20       40
rank 3: recv output[0:1] from 1: 20   10       20       20       20
rank 0: recv output[0:1] from 1: 20   20       20       20       20
)");
}

TEST_CASE("the accumulator at root of a gather-broadcast all-reduce of r + 1") {
  const auto schedules = schedules_of("gather_broadcast", problem(Collective::all_reduce, 4, 1));
  const WalkThrough how{.values = {{1}, {2}, {3}, {4}}, .every_step = true};
  CHECK(walk_through(schedules, how) == R"(all_reduce by gather_broadcast, 4 ranks, sum

                                                         rank 0   rank 1   rank 2   rank 3
before                                                    1        2        3        4
rank 0: recv slot[0:1] from 1: 2                          1        2        3        4
rank 0: fold output[0:1] = input[0:1] + slot[0:1]: 3      3        2        3        4
rank 0: recv slot[1:1] from 2: 3                          3        2        3        4
rank 0: fold output[0:1] = output[0:1] + slot[1:1]: 6     6        2        3        4
rank 0: recv slot[0:1] from 3: 4                          6        2        3        4
rank 0: fold output[0:1] = output[0:1] + slot[0:1]: 10   10        2        3        4
rank 1: recv output[0:1] from 0: 10                      10       10        3        4
rank 2: recv output[0:1] from 0: 10                      10       10       10        4
rank 3: recv output[0:1] from 0: 10                      10       10       10       10
)");
}

TEST_CASE("the layout of an all-gather of [r, r + 10] on 3 ranks") {
  const auto schedules = schedules_of("ring", problem(Collective::all_gather, 3, 2));
  CHECK(walk_through(schedules, {.values = {{0, 10}, {1, 11}, {2, 12}}}) ==
        R"(all_gather by ring, 3 ranks

                rank 0              rank 1              rank 2
before           0 10                1 11                2 12
after round 0    ·  ·  ·  ·  2 12    0 10  ·  ·  ·  ·    ·  ·  1 11  ·  ·
after round 1    0 10  1 11  2 12    0 10  1 11  2 12    0 10  1 11  2 12
)");
}

TEST_CASE("in place, an all-gather begins with the own block") {
  Problem p = problem(Collective::all_gather, 2, 2);
  p.in_place = true;
  CHECK(walk_through(schedules_of("ring", p)) == R"(all_gather by ring, 2 ranks

                rank 0        rank 1
before          10 11  ·  ·    ·  · 20 21
after round 0   10 11 20 21   10 11 20 21
)");
}

TEST_CASE("scratch stands behind a bar, and average divides") {
  Problem p = problem(Collective::reduce, 3, 2);
  p.average = true;
  CHECK(walk_through(schedules_of("binomial", p),
                     {.values = {{1, 2}, {4, -8}, {7, 0}}, .op = OpKind::avg}) ==
        R"(reduce by binomial, 3 ranks, root 0, avg

                rank 0   rank 1   rank 2
before           1  2     4 -8    7 0
after round 0    5 -6     4 -8    7 0
after round 1    4 -2     4 -8    7 0
)");
  CHECK(walk_through(schedules_of("dissemination", problem(Collective::barrier, 2, 1))) ==
        R"(barrier by dissemination, 2 ranks

                rank 0    rank 1
before          10        20
after round 0   10 | 20   20 | 10

Behind | stands scratch.
)");
}

TEST_CASE("every operation") {
  const auto schedules = schedules_of("gather_broadcast", problem(Collective::all_reduce, 2, 1));
  const auto result = [&](OpKind op) {
    const std::string text = walk_through(schedules, {.values = {{6}, {3}}, .op = op});
    return text.substr(text.find_last_of(' ') + 1);
  };
  CHECK(result(OpKind::sum) == "9\n");
  CHECK(result(OpKind::prod) == "18\n");
  CHECK(result(OpKind::min) == "3\n");
  CHECK(result(OpKind::max) == "6\n");
  CHECK(result(OpKind::logical_and) == "1\n");
  CHECK(result(OpKind::logical_or) == "1\n");
  CHECK(result(OpKind::logical_xor) == "0\n");
  CHECK(result(OpKind::bit_and) == "2\n");
  CHECK(result(OpKind::bit_or) == "7\n");
  CHECK(result(OpKind::bit_xor) == "5\n");
}

TEST_CASE("every algorithm can be walked through, in place and in pieces too") {
  const Registry registry = Registry::builtin();
  for (const Algorithm& algorithm : registry.all()) {
    for (const int size : {1, 2, 3, 4, 6}) {
      for (const bool in_place : {false, true}) {
        Problem p = problem(algorithm.collective, size, 5);
        p.in_place = in_place;
        p.root = rooted(p.collective) ? size / 2 : 0;
        if (p.collective == Collective::barrier) p.count = 1;
        p.hosts = support::hosts_for(algorithm, p.size);
        if (!refusal(algorithm, p).empty()) continue;
        CAPTURE(algorithm.name);
        const auto schedules = schedules_of(algorithm.name, p);
        const std::string text = walk_through(schedules);
        std::string last = text.substr(text.rfind("\nafter round") + 1);
        // What everybody has at the end has no gaps.
        if (p.collective == Collective::all_gather || p.collective == Collective::all_to_all ||
            p.collective == Collective::all_reduce || p.collective == Collective::broadcast) {
          last = last.substr(0, last.find('|'));
          CHECK(last.find("·") == std::string::npos);
        }
      }
    }
  }
}

TEST_CASE("what cannot be walked through is refused") {
  const auto schedules = schedules_of("binomial", problem(Collective::broadcast, 2, 1));
  CHECK(refused(schedules, {.values = {}, .op = OpKind::user}) ==
        "a walk-through expects a built-in operation, found a user's");
  CHECK(refused({}) == "a walk-through expects the schedules of all ranks, found none");
  CHECK(refused(std::span(schedules).first(1)) ==
        "a walk-through expects one schedule of broadcast per rank, found rank 0 of 2 of broadcast "
        "at "
        "place 0 of 1");
  CHECK(refused(schedules, {.values = {{1}}}) ==
        "a walk-through expects the values of 2 ranks, found those of 1");
  CHECK(refused(schedules, {.values = {{1}, {1, 2}}}) ==
        "a walk-through expects 1 values of rank 1, found 2");

  const std::string header = "baton-schedule 1\ncollective broadcast\nsize 2\ninput 0\noutput 2\n";
  CHECK(refused(parse(header + "rank 0\nsend 1 output[0:1]\nrank 1\nrecv 0 output[0:2]")) ==
        "rank 1, step 0: expected 2 elements from 0, found 1");
  CHECK(refused(parse(header + "rank 0\nrank 1\nrecv 0 output[0:2]")) ==
        "expected as many receives as sends from rank 0 to rank 1 in lane 0, found 1 receive, 0 "
        "sends");
  CHECK(refused(parse(header + "rank 0\nsend 1 output[1:2]\nrank 1\nrecv 0 output[0:2]")) ==
        "rank 0, step 0: expected a region within 2 elements, found output[1:2]");
  CHECK(
      refused(parse(header + "rank 0\nrecv 1 output[0:2]\nsend 1 output[0:2]\n"
                             "rank 1\nrecv 0 output[0:2]\nsend 0 output[0:2]")) ==
      "expected an order in which all steps can run, found that step 1 of rank 0 waits for step 0 "
      "of rank 0 and that one for it");
}

TEST_CASE("a schedule in words") {
  Problem p = problem(Collective::broadcast, 4, 1);
  p.root = 1;
  CHECK(in_words(schedules_of("binomial", p)[3]) ==
        "broadcast by binomial, 4 ranks, root 1: rank 3\n"
        "round 0: recv output[0:1] from 1\n"
        "round 1: send output[0:1] to 0\n");
  CHECK(
      in_words(parse("baton-schedule 1\ncollective all_reduce\nsize 2\ninput 1\noutput 1\nrank 0\n"
                     "recv 1 slot[0:1] lane 2\nfold output[0:1] = input[0:1] + slot[0:1]")[0]) ==
      "all_reduce, 2 ranks: rank 0\n"
      "round 0: recv slot[0:1] from 1 (lane 2), fold output[0:1] = input[0:1] + slot[0:1] (lane "
      "0)\n");
  CHECK(in_words(
            parse("baton-schedule 1\ncollective barrier\nsize 1\ninput 1\noutput 0\nrank 0")[0]) ==
        "barrier, 1 rank: rank 0\nnothing to do\n");
}

TEST_CASE("of many elements the first and the last are shown, and how many lie between") {
  const auto schedules = schedules_of("linear", problem(Collective::broadcast, 2, 9));
  const std::string text = walk_through(schedules, {.values = {}, .every_step = true, .most = 5});
  CHECK(text == R"(broadcast by linear, 2 ranks, root 0

                                                           rank 0                    rank 1
before                                                     10 11 12 (4 more) 17 18   20 21 22 (4 more) 27 28
rank 1: recv output[0:9] from 0: 10 11 12 (4 more) 17 18   10 11 12 (4 more) 17 18   10 11 12 (4 more) 17 18
)");
  CHECK(refused(schedules, {.values = {}, .most = 1}) ==
        "a walk-through expects to show at least 2 elements, found 1");
  // A million elements are no million words.
  CHECK(walk_through(schedules_of("linear", problem(Collective::broadcast, 2, 1 << 20))).size() <
        10000);
}

TEST_CASE("a program has words, but no values to walk through") {
  const auto schedules = parse(support::two_stages);
  CHECK(refused(schedules).find("found a program of computations") != std::string::npos);
  CHECK(in_words(schedules[1])
            .find("recv scratch[0:4] from 0 (lane 0), compute 1000 forward "
                  "1F0 reads scratch[0:4] (lane 0)") != std::string::npos);
}
