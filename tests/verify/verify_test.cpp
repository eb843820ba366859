#include <limits>

#include "by_hand.hpp"
#include "support/programs.hpp"

using namespace by_hand;

TEST_CASE("good schedules hold") {
  const Proof proof = prove(exchange);
  CHECK(summary(proof) == "");
  CHECK(proof.rounds == 1);
  CHECK(proof.messages == 2);
  CHECK(flaws(exchange, not_commutative) == "");

  const Proof chain = prove(head("broadcast", 3, "root 1\ninput 0\noutput 4\nin_place") +
                            "rank 0\nrecv 2 output[0:4]\n"
                            "rank 1\nsend 2 output[0:4]\n"
                            "rank 2\nrecv 1 output[0:4]\nsend 0 output[0:4]\n");
  CHECK(summary(chain) == "");
  CHECK(chain.rounds == 2);

  CHECK(flaws(head("gather", 2, "root 1") +
              "rank 0\ninput 2\noutput 0\nsend 1 input[0:2]\n"
              "rank 1\ninput 2\noutput 4\nrecv 0 output[0:2]\ncopy output[2:2] = input[0:2]\n") ==
        "");
  CHECK(flaws(head("scatter", 2) +
              "rank 0\ninput 3\noutput 2\nsend 1 input[2:1]\ncopy output[0:2] = input[0:2]\n"
              "rank 1\ninput 0\noutput 1\nrecv 0 output[0:1]\n") == "");
  CHECK(flaws(head("all_gather", 2, "input 0\noutput 2\nin_place") +
              "rank 0\nsend 1 output[0:1]\nrecv 1 output[1:1]\n"
              "rank 1\nrecv 0 output[0:1]\nsend 0 output[1:1]\n") == "");
  CHECK(flaws(head("reduce_scatter", 2, "input 2\noutput 0\nin_place") +
              "rank 0\nsend 1 input[1:1]\nrecv_reduce 1 input[0:1]\n"
              "rank 1\nsend 0 input[0:1]\nrecv_reduce 0 input[1:1]\n") == "");
  CHECK(flaws(head("all_to_all", 2, "input 2\noutput 2") +
              "rank 0\nsend 1 input[1:1]\nrecv 1 output[1:1]\ncopy output[0:1] = input[0:1]\n"
              "rank 1\nsend 0 input[0:1]\nrecv 0 output[0:1]\ncopy output[1:1] = input[1:1]\n") ==
        "");
  CHECK(flaws(head("exscan", 2, "input 1\noutput 1") +
              "rank 0\nsend 1 input[0:1]\nrank 1\nrecv 0 output[0:1]\n") == "");
  CHECK(flaws(head("scan", 2, "input 1\noutput 1") +
              "rank 0\nsend 1 input[0:1]\ncopy output[0:1] = input[0:1]\n"
              "rank 1\nrecv_reduce 0 output[0:1] = input[0:1]\n") == "");
  CHECK(flaws(head("barrier", 2, "input 1\noutput 0") +
              "rank 0\nsend 1 input[0:1]\nrecv 1 slot[0:1]\n"
              "rank 1\nsend 0 input[0:1]\nrecv 0 slot[0:1]\n") == "");
}

TEST_CASE("unmatched: messages that nobody receives or sends, or of another length") {
  const std::string wrong = head("broadcast", 2, "input 0\noutput 2\nin_place");
  CHECK(flaws(wrong + "rank 0\nsend 1 output[0:2]\nrank 1\n") == "unmatched 0");
  CHECK(flaws(wrong + "rank 0\nrank 1\nrecv 0 output[0:2]\n") == "unmatched 1");
  CHECK(flaws(wrong + "rank 0\nsend 1 output[0:2]\nrank 1\nrecv 0 output[0:1]\n") == "unmatched 1");
  CHECK(flaws(wrong + "rank 0\nsend 1 output[0:2] lane 1\nrank 1\nrecv 0 output[0:2]\n") ==
        "unmatched 0, unmatched 1");
  // First in, first out: the second message is not taken first because it would fit.
  CHECK(flaws(head("broadcast", 2, "input 0\noutput 3\nin_place") +
              "rank 0\nsend 1 output[0:1]\nsend 1 output[1:2]\n"
              "rank 1\nrecv 0 output[1:2]\nrecv 0 output[0:1]\n") == "unmatched 1");
  CHECK(sentence(wrong + "rank 0\nrank 1\nrecv 0 output[0:2]\n") ==
        "step 0 of rank 1 (recv output[0:2] from 0) has no send on its peer");
}

TEST_CASE("deadlock: cycles with synchronous sends and a window of one") {
  const std::string both_receive_first = head("broadcast", 2, "input 0\noutput 1\nin_place") +
                                         "rank 0\nrecv 1 output[0:1]\nsend 1 output[0:1]\n"
                                         "rank 1\nrecv 0 output[0:1]\nsend 0 output[0:1]\n";
  CHECK(flaws(both_receive_first) == "deadlock 0");
  CHECK(sentence(both_receive_first) ==
        "step 0 of rank 0 (recv output[0:1] from 1) waits for "
        "step 1 of rank 1 (send output[0:1] to 0), which waits for "
        "step 0 of rank 1 (recv output[0:1] from 0), which waits for "
        "step 1 of rank 0 (send output[0:1] to 1), which waits for the first");

  // An exchange whose receives wait for the sends works only while messages are sent eagerly.
  std::string late = replaced(exchange, "recv 1 slot[0:2]", "recv 1 slot[0:2] after 0");
  CHECK(flaws(late) == "");
  late = replaced(late, "recv 0 slot[0:2]", "recv 0 slot[0:2] after 0");
  CHECK(flaws(late) == "deadlock 0");

  // The second message of rank 0 could be sent at once, had the first not to be complete before it.
  const std::string window = head("barrier", 2, "input 1\noutput 0") +
                             "rank 0\nrecv 1 scratch[0:1]\nsend 1 scratch[0:1]\nsend 1 input[0:1]\n"
                             "rank 1\nrecv 0 scratch[0:1]\nrecv 0 scratch[1:1]\n"
                             "send 0 scratch[1:1]\n";
  CHECK(flaws(window) == "deadlock 0");
  // In a lane of its own it can; but not through one port, in program order.
  const Proof lanes =
      prove(replaced(replaced(window, "send 1 input[0:1]", "send 1 input[0:1] lane 1"),
                     "recv 0 scratch[1:1]", "recv 0 scratch[1:1] lane 1"));
  CHECK(summary(lanes) == "");
  CHECK(lanes.rounds == -1);
}

TEST_CASE("rounds are the longest path through one port per rank and direction") {
  // Rank 0 sends twice: two rounds, although nothing orders the messages.
  CHECK(prove(head("broadcast", 3, "input 0\noutput 1\nin_place") +
              "rank 0\nsend 1 output[0:1]\nsend 2 output[0:1]\n"
              "rank 1\nrecv 0 output[0:1]\nrank 2\nrecv 0 output[0:1]\n")
            .rounds == 2);
  // Two receives of one rank, from different peers, in different lanes.
  CHECK(prove(head("gather", 3) + "rank 0\ninput 1\noutput 3\ncopy output[0:1] = input[0:1]\n"
                                  "recv 1 output[1:1] lane 1\nrecv 2 output[2:1] lane 2\n"
                                  "rank 1\ninput 1\noutput 0\nsend 0 input[0:1] lane 1\n"
                                  "rank 2\ninput 1\noutput 0\nsend 0 input[0:1] lane 2\n")
            .rounds == 2);
  // Folds take no time, but carry it.
  CHECK(prove(head("reduce", 3) +
              "rank 0\ninput 1\noutput 1\nrecv_reduce 1 output[0:1] = input[0:1]\n"
              "rank 1\ninput 1\noutput 0\nrecv_reduce 2 scratch[0:1] = input[0:1]\n"
              "send 0 scratch[0:1]\n"
              "rank 2\ninput 1\noutput 0\nsend 1 input[0:1]\n")
            .rounds == 2);
}

TEST_CASE("hazard: steps on common elements that nothing orders") {
  const std::string listed =
      head("broadcast", 3, "input 0\noutput 2\nin_place\ndependencies listed");
  const std::string ends = "rank 0\nsend 1 output[0:2]\nrank 2\nrecv 1 output[0:2]\n";
  CHECK(flaws(listed + ends + "rank 1\nrecv 0 output[0:2]\nsend 2 output[0:2] after 0\n") == "");
  const std::string read_after_write =
      listed + ends + "rank 1\nrecv 0 output[0:2]\nsend 2 output[0:2]\n";
  CHECK(flaws(read_after_write) == "hazard 1");
  CHECK(sentence(read_after_write) ==
        "step 0 of rank 1 (recv output[0:2] from 0) and step 1 of rank 1 (send output[0:2] to 2) "
        "both "
        "touch output[0], one writes, and nothing orders them");

  const std::string barrier =
      head("barrier", 2, "input 1\noutput 0\nscratch 8\ndependencies listed") +
      "rank 0\nsend 1 input[0:1]\nrecv 1 slot[0:1]\n"
      "rank 1\nsend 0 input[0:1]\nrecv 0 slot[0:1]\n";
  CHECK(flaws(barrier) == "");
  const auto with = [&](const std::string& steps) { return flaws(barrier + steps); };
  // Write after write, write after read; common elements decide, not bounding boxes.
  CHECK(with("copy scratch[0:1] = input[0:1]\ncopy scratch[0:1] = input[0:1]\n") == "hazard 1");
  CHECK(with("copy scratch[0:1] = input[0:1]\ncopy scratch[0:1] = input[0:1] after 2\n") == "");
  CHECK(with("copy scratch[0:1] = input[0:1]\ncopy scratch[1:1] = scratch[0:1] after 2\n"
             "copy scratch[0:1] = input[0:1] after 2\n") == "hazard 1");
  CHECK(with("copy scratch[0:1] = input[0:1]\ncopy scratch[1:1] = scratch[0:1] after 2\n"
             "copy scratch[0:1] = input[0:1] after 3\n") == "");
  // Of two readers one is not waited for.
  CHECK(
      with("copy scratch[0:1] = input[0:1]\ncopy scratch[1:1] = scratch[0:1] after 2\n"
           "copy scratch[2:1] = scratch[0:1] after 2\ncopy scratch[0:1] = input[0:1] after 4\n") ==
      "hazard 1");
  const std::string fill =
      "copy scratch[0:1], scratch[2:1], scratch[4:1] = input[0:1], input[0:1], input[0:1]\n";
  CHECK(with(fill + "copy scratch[1:1 x3 /2] = scratch[0:1 x3 /2] after 2\n") == "");
  CHECK(with(fill + "copy scratch[4:1] = input[0:1]\n") == "hazard 1");
  CHECK(with(fill + "copy scratch[1:1 x2 /2] = input[0:1], input[0:1]\n") == "");
  // A path over a third step orders as well; a path to another step does not.
  CHECK(with("copy scratch[0:1] = input[0:1]\ncopy scratch[7:1] = input[0:1] after 2\n"
             "copy scratch[6:1] = input[0:1] after 3\ncopy scratch[0:1] = input[0:1] after 4\n") ==
        "");
  CHECK(with("copy scratch[0:1] = input[0:1]\ncopy scratch[7:1] = input[0:1]\n"
             "copy scratch[6:1] = input[0:1] after 3\ncopy scratch[0:1] = input[0:1] after 4\n") ==
        "hazard 1");
  // Within one step: an operand may be the result, but not shifted, and nothing is written twice.
  const std::string both = "copy scratch[0:1], scratch[1:1] = input[0:1], input[0:1]\n";
  CHECK(with(both + "fold scratch[0:2] = scratch[0:2] + scratch[0:2] after 2\n") == "");
  CHECK(with(both + "copy scratch[1:2] = scratch[0:2] after 2\n") == "hazard 1");
  CHECK(with(both + "copy scratch[0:1], scratch[1:1] = scratch[0:2] after 2\n") == "");
  CHECK(with(both + "copy scratch[1:1], scratch[0:1] = scratch[0:2] after 2\n") == "hazard 1");
  CHECK(with("copy scratch[0:1], scratch[0:1] = input[0:1], input[0:1]\n") == "hazard 1");
}

TEST_CASE("hazard: every deleted dependency is missed unless another path remains") {
  const Registry registry = Registry::builtin();
  int hazards = 0;
  for (const Algorithm& algorithm : registry.all()) {
    CAPTURE(algorithm.name);
    Problem p;
    p.collective = algorithm.collective;
    p.size = 4;
    p.count = p.collective == Collective::barrier ? 1 : 9;
    p.blocks = algorithm.pipelined ? 3 : 1;
    if (algorithm.hierarchical) p.hosts = host_grouping(std::vector{0, 0, 1, 1});
    std::vector<Problem> problems;
    std::vector<Schedule> schedules;
    for (int r = 0; r < p.size; ++r) {
      problems.push_back(p.at(r));
      schedules.push_back(algorithm.generate(problems.back()));
    }
    REQUIRE(verify(schedules, problems).holds());
    const Schedule whole = schedules[1];
    for (std::size_t i = 0; i < whole.steps().size(); ++i) {
      for (const std::uint32_t missing : whole.dependencies(i)) {
        Dependencies fewer;
        std::vector<bool> before_i(i + 1, false);
        before_i[i] = true;
        for (std::size_t j = 0; j < whole.steps().size(); ++j) {
          for (const std::uint32_t d : whole.dependencies(j)) {
            if (j != i || d != missing) fewer.list.push_back(d);
          }
          fewer.end_step();
        }
        for (std::size_t j = i + 1; j-- > 0;) {
          if (!before_i[j]) continue;
          for (const std::uint32_t d : fewer.of(j)) before_i[d] = true;
        }
        schedules[1] = Schedule(whole.header(), {whole.steps().begin(), whole.steps().end()},
                                {whole.regions().begin(), whole.regions().end()}, fewer);
        const std::string found = summary(verify(schedules, problems));
        CHECK(found == (before_i[missing] ? "" : "hazard 1"));
        hazards += !found.empty();
      }
    }
  }
  CHECK(hazards > 100);
}

TEST_CASE("bounds: regions outside their buffers, buffers of another size") {
  const std::string slots = replaced(exchange, "input 2\n", "input 2\nslots 2\nscratch 1\n");
  CHECK(flaws(slots) == "");
  CHECK(flaws(replaced(slots, "recv 1 slot[0:2]", "recv 1 slot[1:2]")) == "bounds 0");
  CHECK(flaws(slots + "copy scratch[1:1] = input[0:1]\n") == "bounds 1");
  CHECK(flaws(replaced(exchange, "send 1 input[0:2]", "send 1 input[1:2]")) == "bounds 0");
  CHECK(flaws(exchange + "copy output[2:1] = input[0:1]\n") == "bounds 1");
  CHECK(flaws(exchange + "copy output[0:1], output[1:1] = input[0:1 x2 /2]\n") == "bounds 1");
  // A large extent; one that no number holds is no schedule.
  std::vector<Schedule> schedules = parse(exchange);
  const std::vector<Problem> problems = problems_of(schedules);
  const auto with_stride = [&](std::int64_t stride) {
    std::vector<Region> regions(schedules[0].regions().begin(), schedules[0].regions().end());
    regions[0] = strided(Buffer::input, 0, 1, 2, stride);
    return Schedule(schedules[0].header(),
                    {schedules[0].steps().begin(), schedules[0].steps().end()}, regions,
                    schedules[0].dependencies());
  };
  CHECK_THROWS_AS(with_stride(std::numeric_limits<std::int64_t>::max()), Error);
  schedules[0] = with_stride(std::int64_t{1} << 47);
  CHECK(summary(verify(schedules, problems)) == "bounds 0");
  CHECK(flaws(exchange, [](Problem& p) { p.count = 3; }) == "bounds 0, bounds 1");
  CHECK(flaws(exchange, [](Problem& p) { p.in_place = true; }) == "bounds 0, bounds 1");
  CHECK(sentence(exchange, [](Problem& p) { p.count = 3; }) ==
        "expected input of 3 elements on rank 0, found 2");
}

TEST_CASE("computations of a collective may take time, but write nothing") {
  const auto with = [](const std::string& more) {
    return replaced(exchange, "rank 1\n", "compute 5 other x" + more + "\nrank 1\n");
  };
  CHECK(flaws(with("")) == "");
  CHECK(flaws(with(" reads output[0:2]")) == "");
  CHECK(flaws(with(" writes output[1:1]")) == "undefined 0");
  CHECK(sentence(with(" writes output[1:1]")) ==
        "step 3 of rank 0 (compute 5 other x writes output[1:1]) writes output[1]: expected a "
        "collective whose computations write "
        "nothing, found one");
}

TEST_CASE("programs: messages, order and hazards are checked, values are not") {
  const std::string good = support::two_stages;
  const auto without = [&](const std::string& line) {
    std::string text = good;
    const auto at = text.find(line + "\n");
    REQUIRE(at != std::string::npos);
    return text.erase(at, line.size() + 1);
  };
  const auto flaws_of = [](const std::string& text) {
    const auto schedules = parse(text);
    return summary(verify(schedules, problems_of(schedules)));
  };
  CHECK(flaws_of(good) == "");
  CHECK(flaws_of(without("send 1 scratch[4:4]")).find("unmatched") != std::string::npos);
  CHECK(flaws_of(without("recv 1 scratch[8:4] lane 1")).find("unmatched") != std::string::npos);

  // Each rank computes what the other one needs only after it has received: nobody begins.
  CHECK(flaws_of("baton-schedule 1\ncollective program\nsize 2\ninput 0\noutput 0\n"
                 "rank 0\nrecv 1 scratch[0:1]\ncompute 5 forward a reads scratch[0:1] writes "
                 "scratch[1:1]\nsend 1 scratch[1:1]\n"
                 "rank 1\nrecv 0 scratch[0:1]\ncompute 5 forward b reads scratch[0:1] writes "
                 "scratch[1:1]\nsend 0 scratch[1:1]\n")
            .find("deadlock") != std::string::npos);
  // A message is sent while a computation writes it.
  CHECK(flaws_of("baton-schedule 1\ncollective program\nsize 2\ninput 0\noutput 0\n"
                 "scratch 1\ndependencies listed\n"
                 "rank 0\ncompute 5 forward a writes scratch[0:1]\nsend 1 scratch[0:1]\n"
                 "rank 1\nrecv 0 scratch[0:1]\n")
            .find("hazard") != std::string::npos);
  CHECK(flaws_of("baton-schedule 1\ncollective program\nsize 1\ninput 0\noutput 0\nscratch 1\n"
                 "rank 0\ncompute 5 forward a writes scratch[0:2]\n")
            .find("bounds") != std::string::npos);
}
