#include <doctest/doctest.h>
#include <baton/error.hpp>
#include <baton/schedule/passes.hpp>
#include <baton/schedule/text.hpp>

#include <random>
#include <string>
#include <vector>

#include "baton/schedule.hpp"
#include "baton/verify.hpp"
#include "support/schedules.hpp"

using namespace baton;

namespace {

void check_round_trip(const Schedule& schedule) {
  const std::string text = print(schedule);
  const std::vector<Schedule> read = parse(text);
  REQUIRE(read.size() == 1);
  CHECK(difference(read[0], schedule).value_or("") == "");
  CHECK(read[0] == schedule);
  CHECK(print(read[0]) == text);
}

/// The sentence with which a text is refused; empty if it is read.
std::string refused(std::string_view text) {
  try {
    parse(text, "file");
  } catch (const Error& error) {
    CHECK(error.code == ErrorCode::invalid_argument);
    return error.what();
  }
  return "";
}

/// A text of rank 1 of 3 with these lines below it.
std::string rank_1(std::string_view lines) {
  return "baton-schedule 1\ncollective all_reduce\nsize 3\ninput 6\noutput 6\nrank 1\n" +
         std::string(lines);
}

const char* const ring_by_hand = R"(
baton-schedule 1   # a ring all-reduce of six elements
collective all_reduce
algorithm my_ring
size 3
input 6
output 6

rank 0
  send 1 input[0:2]
  recv_reduce 2 output[4:2] = input[4:2] left
round 1
  send 1 output[4:2]
  recv_reduce 2 output[2:2] = input[2:2] left
round 2
  send 1 output[2:2]
  recv 2 output[0:2]
round 3
  send 1 output[0:2]
  recv 2 output[4:2]

rank 1
  send 2 input[2:2]
  recv_reduce 0 output[0:2] = input[0:2]
round 1
  send 2 output[0:2]
  recv_reduce 0 output[4:2] = input[4:2]
round 2
  send 2 output[4:2]
  recv 0 output[2:2]
round 3
  send 2 output[2:2]
  recv 0 output[0:2]

rank 2
  send 0 input[4:2]
  recv_reduce 1 output[2:2] = input[2:2]
round 1
  send 0 output[2:2]
  recv_reduce 1 output[0:2] = input[0:2]
round 2
  send 0 output[0:2]
  recv 1 output[4:2]
round 3
  send 0 output[4:2]
  recv 1 output[2:2]
)";

/// The same ring by the builder.
Schedule built_ring(int rank) {
  Problem p;
  p.size = 3;
  p.rank = rank;
  p.count = 6;
  ScheduleBuilder ring(p);
  const Chunks chunk = ring.chunks(3);
  const int next = p.rank_after(1), prev = p.rank_before(1);
  for (int t = 0; t < 2; ++t) {
    ring.send(next, chunk[rank - t]);
    ring.recv_reduce(prev, chunk[rank - t - 1], Side::left);
    ring.end_round();
  }
  for (int t = 0; t < 2; ++t) {
    ring.send(next, chunk[rank + 1 - t]);
    ring.recv(prev, chunk[rank - t]);
    ring.end_round();
  }
  return ring.build("my_ring");
}

/// A schedule with two lanes, strided regions, lists of regions and every kind of step.
Schedule built_mixture() {
  Problem p;
  p.collective = Collective::all_to_all;
  p.size = 3;
  p.rank = 1;
  p.count = 8;
  p.input_rows = 4;
  ScheduleBuilder b(p);
  const Chunks in = b.input_blocks(), out = b.output_blocks();
  const Region kept = b.scratch(8);
  b.copy(out[1], in[1]);
  b.end_round();
  b.send(0, in[0]);
  b.lane(1);
  b.send(2, Regions{in[2], in[1], kept});
  b.recv(2, Regions{out[2], kept});
  b.end_round();
  b.lane(3);
  b.recv_reduce(0, kept);
  b.recv_late(0, out[0]);
  b.lane(0);
  b.fold(kept, kept, in[2]);
  return b.build("a \"mixture\" # of all\\");
}

}  // namespace

TEST_CASE("a schedule written by hand is the one that the builder makes") {
  const std::vector<Schedule> ring = parse(ring_by_hand, "ring");
  REQUIRE(ring.size() == 3);
  for (int r = 0; r < 3; ++r) {
    CHECK(difference(ring[static_cast<std::size_t>(r)], built_ring(r)).value_or("") == "");
    CHECK(ring[static_cast<std::size_t>(r)] == built_ring(r));
  }
}

TEST_CASE("print and parse are inverse") {
  for (int r = 0; r < 3; ++r) check_round_trip(built_ring(r));
  check_round_trip(built_mixture());
  check_round_trip(segmented(built_mixture(), 3));

  SUBCASE("without dependencies, too") {
    const Schedule s = built_ring(0);
    Dependencies none;
    for (std::size_t i = 0; i < s.steps().size(); ++i) none.end_step();
    check_round_trip(Schedule(s.header(), {s.steps().begin(), s.steps().end()},
                              {s.regions().begin(), s.regions().end()}, none));
  }
  SUBCASE("several in one text") {
    const std::vector<Schedule> read = parse(print(built_ring(2)) + print(built_mixture()));
    REQUIRE(read.size() == 2);
    CHECK(read[0] == built_ring(2));
    CHECK(read[1] == built_mixture());
  }
}

TEST_CASE("every algorithm's schedules are read back") {
  const Registry registry = Registry::builtin();
  for (const Algorithm& algorithm : registry.all()) {
    for (const int size : {1, 2, 3, 4, 5, 8}) {
      Problem p;
      p.collective = algorithm.collective;
      p.size = size;
      p.root = rooted(p.collective) ? size - 1 : 0;
      p.count = p.collective == Collective::barrier ? 1 : 7;
      for (const bool in_place : {false, true}) {
        p.in_place = in_place;
        p.hosts = support::hosts_for(algorithm, p.size);
        if (!refusal(algorithm, p).empty()) continue;
        for (p.rank = 0; p.rank < size; ++p.rank) {
          CAPTURE(algorithm.name);
          const Schedule schedule = algorithm.generate(p);
          check_round_trip(schedule);
          check_round_trip(segmented(schedule, 2));
        }
        p.rank = 0;
      }
    }
  }
}

TEST_CASE("the older word for the divide step is read, the newer one written") {
  const std::string text = R"(baton-schedule 1
collective all_reduce
size 1
input 2
output 2
rank 0
copy output[0:2] = input[0:2]
finish output[0:2]
)";
  const std::vector<Schedule> schedules = parse(text);
  REQUIRE(schedules[0].steps().size() == 2);
  CHECK(schedules[0].steps()[1].kind == StepKind::divide);
  const std::string written = print(schedules[0]);
  CHECK(written.find("divide output[0:2]") != std::string::npos);
  CHECK(written.find("finish") == std::string::npos);
}

TEST_CASE("what is not listed is computed") {
  const Schedule s =
      parse(rank_1("recv 0 slot[3:2]\n"
                   "copy scratch[5:2] = slot[3:2]\n"
                   "10: send 0 input[0:2]\n"
                   "recv_reduce 2 output[0:4] = input[0:4] left lane 2\n"
                   "recv_late 2 output[0:3] lane 2\n"
                   "recv_reduce 2 output[0:1]\n"
                   "send 0 output[5:1] after 11 10\n"))[0];
  CHECK(s.header().scratch == 7);
  CHECK(s.header().slots == 5 + 1 + 2 * 4);
  REQUIRE(s.steps().size() == 10);
  CHECK(print(s, 7) == "recv slot[5:1] from 2");
  CHECK(print(s, 8) == "fold output[0:1] = output[0:1] + slot[5:1]");
  CHECK(print(s, 3) == "recv slot[6:4] from 2");
  CHECK(print(s, 4) == "fold output[0:4] = slot[6:4] + input[0:4]");
  CHECK(print(s, 5) == "recv slot[10:3] from 2");
  CHECK(s.steps()[5].lane == 2);
  const auto after = s.dependencies(9);
  CHECK(std::vector(after.begin(), after.end()) == std::vector<std::uint32_t>{2, 4});
  const auto inferred = s.dependencies(6);
  CHECK(std::vector(inferred.begin(), inferred.end()) == std::vector<std::uint32_t>{4, 5});
}

TEST_CASE("a header line below a rank holds for that rank only") {
  const auto read = parse(
      "baton-schedule 1\ncollective gather\nsize 2\ninput 2\noutput 0\n"
      "rank 0\noutput 4\nrecv 1 output[2:2]\nrank 1\nsend 0 input[0:2]\n");
  REQUIRE(read.size() == 2);
  CHECK(read[0].header().output == 4);
  CHECK(read[1].header().output == 0);
}

TEST_CASE("ranks are in their order, whatever a text's") {
  const std::string text = ring_by_hand;
  const std::size_t rank_0 = text.find("rank 0"), rank_1 = text.find("rank 1"),
                    rank_2 = text.find("rank 2");
  const std::string head = text.substr(0, rank_0), first = text.substr(rank_0, rank_1 - rank_0),
                    second = text.substr(rank_1, rank_2 - rank_1), third = text.substr(rank_2);
  const std::vector<Schedule> ring = parse(text);
  const std::vector<Schedule> permuted = parse(head + third + first + second);
  CHECK(permuted == ring);
  CHECK(verify(permuted, problems_of(permuted)).holds());
  // Of each of several texts, in the order of the texts.
  std::vector<int> ranks;
  for (const Schedule& schedule : parse(head + third + head + second + first)) {
    ranks.push_back(schedule.rank());
  }
  CHECK(ranks == std::vector{2, 0, 1});
}

TEST_CASE("errors name the line, what was expected, and what was found") {
  CHECK(refused("") == "file:1: expected \"baton-schedule 1\", found the end of the text");
  CHECK(refused("\n#\nhello") == "file:3: expected \"baton-schedule 1\", found \"hello\"");
  CHECK(refused("baton-schedule 2") == "file:1: expected version from 1 to 1, found 2");
  CHECK(refused("baton-schedule 1\nsend 1 input[0:1]") ==
        "file:2: expected a header line or \"rank\", found \"send\"");
  CHECK(refused("baton-schedule 1\ncollective allreduce") ==
        "file:2: expected the name of a collective, found \"allreduce\"");
  CHECK(refused("baton-schedule 1\ncollective barrier\ninput 1\noutput 0\nrank 0\n") ==
        "file:5: expected a line \"size ...\" before the steps, found none");
  CHECK(refused(rank_1("send 3 input[0:1]")) == "file:7: expected a peer from 0 to 2, found 3");
  CHECK(refused(rank_1("send 1 input[0:1]")) ==
        "file:7: expected another rank as peer, found rank 1 itself");
  CHECK(refused(rank_1("send 0 work[0:1]")) ==
        "file:7: expected a region of input, output, scratch or slot, found \"work[0:1]\"");
  CHECK(refused(rank_1("send 0 input[0:0]")) == "file:7: expected a length of at least 1, found 0");
  CHECK(refused(rank_1("send 0 input[0:2 x3 /1]")) ==
        "file:7: expected a stride of at least 2, found 1");
  CHECK(refused(rank_1("send 0 input[0:2 x9999999 /99999999]")) ==
        "file:7: expected fewer blocks, found 9999999");
  CHECK(refused(rank_1("send 0 input[0:99999999999999999999]")) ==
        "file:7: expected a length of at least 1, found 99999999999999999999");
  CHECK(refused(rank_1("\ncopy output[0:2] = input[0:1], input[3:2]")) ==
        "file:8: expected operands of equal length (2 elements), found 3");
  CHECK(refused(rank_1("fold output[0:2] = input[0:2]")) ==
        "file:7: expected \"+\", found the end of the line");
  CHECK(refused(rank_1("send 0 input[0:1]\n1: send 0 input[0:1] after 1")) ==
        "file:8: expected the number of an earlier step, found 1");
  CHECK(refused(rank_1("3: send 0 input[0:1]\n3: send 0 input[0:1]")) ==
        "file:8: expected a step number from 4 to 2147483646, found 3");
  CHECK(refused(rank_1("send 0 input[0:1] lane 256")) ==
        "file:7: expected a lane from 0 to 255, found 256");
  CHECK(refused(rank_1("send 0 input[0:1]\nsize 4")) ==
        "file:8: expected a step, \"round\" or \"rank\", found \"size\"");
  CHECK(refused(rank_1("dependencies listed\nrecv_late 0 output[0:1]")) ==
        "file:8: expected steps in full, since dependencies are listed, found a shorthand");
  CHECK(refused(rank_1("rank 1\n")) == "file:7: expected each rank once, found rank 1 again");
  CHECK(refused(rank_1("rank 3\n")) == "file:7: expected a rank below 3, found 3");
  CHECK(refused("baton-schedule 1\ncollective program\nsize 1\ninput 0\noutput 0\n"
                "dependencies listed\nrank 0\ncompute 5 other a\ncompute 5 other b")
            .starts_with("file:7: schedule of rank 0, step 1: expected "));
}

TEST_CASE("any text is read or refused, never more") {
  const std::string texts[] = {ring_by_hand, print(built_mixture()), print(built_ring(1))};
  const std::string_view pieces[] = {
      "\n", "#",  ":",      "[",    "]",      "/", "x2",    "999999999999", "0",    ",",
      "=",  "+",  "rank 2", "send", "after ", "0", "lane ", "round ",       "slot", "recv_reduce ",
      "-",  "\"", "size 1"};
  std::mt19937 random(7);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random()) % n; };
  int read = 0, turned_away = 0;
  for (int i = 0; i < 6000; ++i) {
    std::string text = texts[below(3)];
    if (i % 4 == 0) text.resize(below(text.size()));
    for (std::size_t changes = i % 4 == 0 ? 0 : 1 + below(4); changes > 0; --changes) {
      const std::size_t at = below(text.size());
      switch (below(5)) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, 1 + below(12));
          break;
        case 2:
          text.insert(at, pieces[below(std::size(pieces))]);
          break;
        case 3:
          text.insert(at, text.substr(below(text.size()), below(40)));
          break;
        case 4:
          text[at] = static_cast<char>('0' + below(10));
          break;
      }
    }
    try {
      for (const Schedule& schedule : parse(text)) check_round_trip(schedule);
      ++read;
    } catch (const Error& error) {
      CHECK(error.code == ErrorCode::invalid_argument);
      ++turned_away;
    }
  }
  CHECK(read > 300);
  CHECK(turned_away > 1000);
}

TEST_CASE("difference names the first one") {
  const Schedule ring = parse(ring_by_hand)[0];
  const auto changed = [&](std::string_view from, std::string_view to) {
    std::string text = ring_by_hand;
    text.replace(text.find(from), from.size(), to);
    return difference(ring, parse(text)[0]).value_or("");
  };
  CHECK(difference(ring, ring) == std::nullopt);
  CHECK(changed("my_ring", "ring") == "algorithm: \"my_ring\" and \"ring\"");
  CHECK(changed("output 6", "output 7") == "elements of output: 6 and 7");
  CHECK(changed("send 1 input[0:2]", "send 2 input[0:2]") ==
        "step 0: \"send input[0:2] to 1\" and \"send input[0:2] to 2\"");
  CHECK(changed("send 1 input[0:2]", "send 1 input[0:2] lane 1") ==
        "step 0, \"send input[0:2] to 1\": lane 0 and 1");
  CHECK(changed("round 1", "round 5") == "step 3, \"send output[4:2] to 1\": round 1 and 5");
  CHECK(changed("send 1 output[4:2]", "send 1 output[4:2] after 0") ==
        "step 3, \"send output[4:2] to 1\": waits for [2] and [0, 2]");
  CHECK(changed("  send 1 output[0:2]\n  recv 2 output[4:2]", "  send 1 output[0:2]") ==
        "steps: 10 and 9; only the first has \"recv output[4:2] from 2\"");
}
