#include "by_hand.hpp"

using namespace by_hand;

TEST_CASE("undefined: reads of what nothing has written") {
  CHECK(flaws(exchange + "copy scratch[0:1] = scratch[1:1]\n") == "undefined 1");
  CHECK(flaws(exchange + "fold scratch[0:1] = input[0:1] + scratch[1:1]\n") == "undefined 1");
  CHECK(flaws(exchange + "fold scratch[0:1] = scratch[1:1] + input[0:1]\n") == "undefined 1");
  CHECK(flaws(replaced(exchange, "send 1 input[0:2]", "send 1 output[0:2]")) == "undefined 0");
  const auto not_average = [](Problem& p) { p.average = false; };
  CHECK(flaws(exchange + "divide scratch[0:1]\n", not_average) == "undefined 1");
  CHECK(sentence(exchange + "copy scratch[0:1] = scratch[1:1]\n") ==
        "step 3 of rank 1 (copy scratch[0:1] = scratch[1:1]) reads scratch[1], which nothing has "
        "written");
  // The result of a broadcast that did not reach a rank.
  CHECK(flaws(head("broadcast", 2, "input 0\noutput 1\nin_place") + "rank 0\nrank 1\n") ==
        "contribution 1");
}

TEST_CASE("contribution: each rank's exactly once, of the right element") {
  CHECK(flaws(replaced(exchange, "fold output[0:2] = slot[0:2] + input[0:2]",
                       "copy output[0:2] = slot[0:2]")) == "contribution 1");
  CHECK(flaws(exchange + "fold output[0:1] = output[0:1] + input[0:1]\n") == "contribution 1");
  CHECK(flaws(exchange + "fold output[0:1] = output[0:1] + output[0:1]\n") == "contribution 1");
  CHECK(flaws(replaced(exchange, "send 1 input[0:2]", "send 1 input[1:1], input[0:1]")) ==
        "contribution 1");
  CHECK(sentence(exchange + "fold output[0:1] = output[0:1] + input[0:1]\n") ==
        "output[0] of rank 1 should fold element 0 of ranks 0 to 1 once each, found (0 + 1) + 1");

  const std::string gather = head("all_gather", 2, "input 1\noutput 2") +
                             "rank 0\nsend 1 input[0:1]\nrecv 1 output[1:1]\n"
                             "copy output[0:1] = input[0:1]\n"
                             "rank 1\nsend 0 input[0:1]\n";
  CHECK(flaws(gather + "recv 0 output[0:1]\ncopy output[1:1] = input[0:1]\n") == "");
  CHECK(flaws(gather + "recv 0 output[1:1]\ncopy output[0:1] = input[0:1]\n") == "contribution 1");
  CHECK(flaws(gather + "recv 0 output[0:1]\n") == "contribution 1");

  // A scan folds what stands before, no more.
  CHECK(flaws(head("scan", 2, "input 1\noutput 1") +
              "rank 0\nsend 1 input[0:1]\nrecv_reduce 1 output[0:1] = input[0:1]\n"
              "rank 1\nsend 0 input[0:1]\nrecv_reduce 0 output[0:1] = input[0:1]\n") ==
        "contribution 0");
  CHECK(flaws(head("exscan", 2, "input 1\noutput 1") +
              "rank 0\nsend 1 input[0:1]\n"
              "rank 1\nrecv_reduce 0 output[0:1] = input[0:1]\n") == "contribution 1");
  CHECK(flaws(head("reduce_scatter", 2, "input 2\noutput 1") +
              "rank 0\nsend 1 input[1:1]\nrecv_reduce 1 output[0:1] = input[1:1]\n"
              "rank 1\nsend 0 input[0:1]\nrecv_reduce 0 output[0:1] = input[1:1]\n") ==
        "contribution 0");
  CHECK(flaws(head("scatter", 2) +
              "rank 0\ninput 2\noutput 1\nsend 1 input[0:1]\ncopy output[0:1] = input[0:1]\n"
              "rank 1\ninput 0\noutput 1\nrecv 0 output[0:1]\n") == "contribution 1");
  // The own input instead of a lower rank's: as many contributions as asked for, but not those.
  CHECK(flaws(head("exscan", 2, "input 1\noutput 1") +
              "rank 0\nrank 1\ncopy output[0:1] = input[0:1]\n") == "contribution 1");
  const std::string reduce = head("reduce", 3, "input 1") +
                             "rank 1\noutput 0\nsend 0 input[0:1]\n"
                             "rank 2\noutput 0\nsend 0 input[0:1]\n"
                             "rank 0\noutput 1\nrecv 1 slot[0:1]\nrecv 2 slot[1:1]\n"
                             "fold output[0:1] = input[0:1] + slot[0:1]\n";
  CHECK(flaws(reduce + "fold output[0:1] = output[0:1] + slot[1:1]\n") == "");
  CHECK(flaws(reduce + "fold output[0:1] = output[0:1] + slot[0:1]\n") == "contribution 0");
  std::string doubled = reduce;
  for (int i = 0; i < 64; ++i) doubled += "fold output[0:1] = output[0:1] + output[0:1]\n";
  CHECK(flaws(doubled) == "contribution 0");
}

TEST_CASE("contribution: an average is divided once, at the end") {
  const std::string average = replaced(exchange, "rank 1\n", "divide output[0:2]\nrank 1\n");
  CHECK(flaws(average + "divide output[0:2]\n") == "");
  CHECK(flaws(average) == "contribution 1");
  CHECK(flaws(average + "divide output[0:1]\n") == "contribution 1");
  CHECK(flaws(average + "divide output[0:2]\ndivide output[0:1]\n") == "contribution 1");
  CHECK(flaws(average + "divide slot[0:2] after 1\n") == "contribution 1");
  const auto sum_only = [](Problem& p) { p.average = false; };
  CHECK(flaws(average + "divide output[0:2]\n", sum_only) == "contribution 0, contribution 1");
  CHECK(flaws(exchange, [](Problem& p) { p.average = true; }) == "contribution 0, contribution 1");
}

TEST_CASE("contribution: nobody leaves a barrier before all have entered") {
  const std::string barrier = head("barrier", 3, "input 1\noutput 0") +
                              "rank 1\nrecv 0 slot[0:1]\nsend 2 slot[0:1]\n"
                              "rank 2\nrecv 1 slot[0:1]\nsend 0 slot[0:1]\n"
                              "rank 0\nsend 1 input[0:1]\nrecv 2 slot[0:1]\n";
  CHECK(flaws(barrier) == "contribution 1");  // rank 1 never hears of rank 2
  CHECK(sentence(barrier) == "rank 1 may leave the barrier before rank 2 has entered it");
  const std::string round = replaced(barrier + "send 1 slot[0:1]\n", "send 2 slot[0:1]\n",
                                     "send 2 slot[0:1]\nrecv 0 slot[0:1]\n");
  CHECK(flaws(round) == "");
  // A message that was sent before the others were heard of carries no news.
  CHECK(flaws(replaced(round, "send 1 slot[0:1]", "send 1 input[0:1]")) == "contribution 1");
}

TEST_CASE("order: of contributions, where the operation does not commute") {
  std::string swapped = replaced(exchange, "input[0:2] + slot[0:2]", "slot[0:2] + input[0:2]");
  swapped = replaced(swapped,
                     "rank 1\nsend 0 input[0:2]\nrecv 0 slot[0:2]\n"
                     "fold output[0:2] = slot[0:2] + input[0:2]",
                     "rank 1\nsend 0 input[0:2]\nrecv 0 slot[0:2]\n"
                     "fold output[0:2] = input[0:2] + slot[0:2]");
  CHECK(flaws(swapped, not_commutative) == "order 0, order 1");
  const std::string scan = head("scan", 2, "input 1\noutput 1") +
                           "rank 0\nsend 1 input[0:1]\ncopy output[0:1] = input[0:1]\n"
                           "rank 1\nrecv_reduce 0 output[0:1] = input[0:1] right\n";
  CHECK(flaws(scan) == "");
  CHECK(flaws(scan, not_commutative) == "order 1");
  CHECK(sentence(scan, not_commutative) ==
        "output[0] of rank 1 should fold ranks 0 to 1 in order, found 1 + 0");
}

TEST_CASE("disagree: folds that differ from rank to rank") {
  const std::string swapped =
      replaced(exchange, "slot[0:2] + input[0:2]", "input[0:2] + slot[0:2]");
  CHECK(flaws(swapped) == "disagree 1");
  CHECK(sentence(swapped) ==
        "output[0] is 1 + 0 on rank 1 and 0 + 1 on lower ranks: not bit for bit equal");
  // The same sequence, associated otherwise.
  const std::string all = "send 0 input[0:1]\nsend 1 input[0:1]\nsend 2 input[0:1]\n";
  const std::string others = head("all_reduce", 3, "input 1\noutput 1") +
                             "rank 0\nsend 1 input[0:1]\nsend 2 input[0:1]\nrecv 1 scratch[1:1]\n"
                             "recv 2 scratch[2:1]\n"
                             "fold output[0:1] = input[0:1] + scratch[1:1]\n"
                             "fold output[0:1] = output[0:1] + scratch[2:1]\n"
                             "rank 1\nsend 0 input[0:1]\nsend 2 input[0:1]\nrecv 0 scratch[1:1]\n"
                             "recv 2 scratch[2:1]\n"
                             "fold output[0:1] = scratch[1:1] + input[0:1]\n"
                             "fold output[0:1] = output[0:1] + scratch[2:1]\n"
                             "rank 2\nsend 0 input[0:1]\nsend 1 input[0:1]\nrecv 0 scratch[1:1]\n"
                             "recv 1 scratch[2:1]\n";
  CHECK(flaws(others + "fold output[0:1] = scratch[1:1] + scratch[2:1]\n"
                       "fold output[0:1] = output[0:1] + input[0:1]\n",
              not_commutative) == "");
  CHECK(flaws(others + "fold output[0:1] = scratch[2:1] + input[0:1]\n"
                       "fold output[0:1] = scratch[1:1] + output[0:1]\n",
              not_commutative) == "disagree 2");
}

TEST_CASE("clobbered: inputs, and what holds no result") {
  CHECK(flaws(exchange + "copy input[0:1] = output[0:1]\n") == "clobbered 1");
  // Not even for a while: it may be memory that cannot be written.
  CHECK(flaws(exchange + "copy scratch[0:1] = input[0:1]\ncopy input[0:1] = output[0:1]\n"
                         "copy input[0:1] = scratch[0:1]\n") == "clobbered 1");
  CHECK(flaws(head("exscan", 2, "input 1\noutput 1") +
              "rank 0\nsend 1 input[0:1]\ncopy output[0:1] = input[0:1]\n"
              "rank 1\nrecv 0 output[0:1]\n") == "clobbered 0");
  CHECK(flaws(head("reduce_scatter", 2, "input 2\noutput 0\nin_place") +
              "rank 0\nsend 1 input[1:1]\nrecv_reduce 1 input[0:1]\n"
              "rank 1\nsend 0 input[0:1]\nrecv_reduce 0 input[1:1]\n"
              "copy input[0:1] = input[1:1]\n") == "clobbered 1");
  // The gap between two blocks belongs to the caller.
  const std::string gather = head("all_gather", 2, "input 1\noutput 3") +
                             "rank 0\nsend 1 input[0:1]\nrecv 1 output[2:1]\n"
                             "copy output[0:1] = input[0:1]\n"
                             "rank 1\nsend 0 input[0:1]\nrecv 0 output[0:1]\n"
                             "copy output[2:1] = input[0:1]\n";
  const auto placed = [](const std::string& text) {
    const std::vector<Schedule> schedules = parse(text);
    std::vector<Problem> problems(2);
    for (int r = 0; r < 2; ++r) {
      Problem& p = problems[static_cast<std::size_t>(r)];
      p.collective = Collective::all_gather;
      p.size = 2;
      p.rank = r;
      p.count = 1;
      p.input_blocks = p.output_blocks =
          Blocks::placed(std::vector<std::int64_t>{1, 1}, std::vector<std::int64_t>{0, 2});
    }
    return summary(verify(schedules, problems));
  };
  CHECK(placed(gather) == "");
  CHECK(placed(gather + "copy output[1:1] = input[0:1]\n") == "clobbered 1");
}
