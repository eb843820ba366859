#include "by_hand.hpp"

using namespace by_hand;

namespace {

/// The problems of all ranks, generated and read back from the schedules' headers.
void check_read_back(const Algorithm& algorithm, const Problem& problem) {
  if (!refusal(algorithm, problem).empty()) return;
  CAPTURE(name(algorithm.collective));
  CAPTURE(algorithm.name);
  std::vector<Schedule> schedules;
  for (int r = 0; r < problem.size; ++r) schedules.push_back(algorithm.generate(problem.at(r)));
  const std::vector<Problem> read = problems_of(schedules);
  REQUIRE(read.size() == schedules.size());
  for (int r = 0; r < problem.size; ++r) {
    const Problem& p = read[static_cast<std::size_t>(r)];
    const Problem expected = problem.at(r);
    CHECK(p.collective == expected.collective);
    CHECK(p.size == expected.size);
    CHECK(p.rank == r);
    if (rooted(p.collective)) CHECK(p.root == expected.root);
    CHECK(p.count == expected.count);
    CHECK(p.aliased() == expected.aliased());
    CHECK(p.average == expected.average);
    CHECK(p.uneven() == expected.uneven());
    if (p.uneven()) CHECK(*p.input_blocks == *expected.input_blocks);
  }
  CHECK(verify(schedules, read).holds());
}

}  // namespace

TEST_CASE("the problem is read back from the headers") {
  const Registry registry = Registry::builtin();
  for (const Algorithm& algorithm : registry.all()) {
    for (const bool in_place : {false, true}) {
      Problem p;
      p.collective = algorithm.collective;
      p.size = 4;
      p.root = rooted(p.collective) ? 2 : 0;
      p.count = p.collective == Collective::barrier ? 1 : 5;
      p.in_place = in_place;
      check_read_back(algorithm, p);
      p.average = reducing(p.collective);
      check_read_back(algorithm, p);
      p.average = false;
      p.size = 1;
      p.root = 0;
      check_read_back(algorithm, p);
    }
    const bool blocks = algorithm.uneven && algorithm.collective != Collective::all_to_all;
    if (!blocks) continue;
    Problem p;
    p.collective = algorithm.collective;
    p.size = 4;
    p.input_blocks = p.output_blocks = Blocks::packed(std::vector<std::int64_t>{2, 0, 3, 1});
    check_read_back(algorithm, p);
    if (!rooted(p.collective)) continue;
    p.in_place = true;  // the root's own block is what the others leave
    p.root = 3;
    check_read_back(algorithm, p);
  }
}

TEST_CASE("headers that contradict each other are refused") {
  const auto refused = [](const std::string& text) {
    return refuses([&] { problems_of(parse(text)); });
  };
  CHECK(!refused(exchange));
  CHECK(refuses([] { problems_of({}); }));
  CHECK(refused(replaced(exchange, "rank 1\n", "rank 1\ninput 3\n")));
  CHECK(refused(replaced(exchange, "size 2", "size 3")));
  CHECK(refused(replaced(exchange, "rank 1\n", "rank 1\ncollective scan\n")));
  CHECK(refused(head("broadcast", 2, "input 0\noutput 1\nin_place") + "rank 0\nrank 1\nroot 1\n"));
  CHECK(refused(head("gather", 2) + "rank 0\ninput 1\noutput 3\nrank 1\ninput 1\noutput 0\n"));
  CHECK(refused(head("all_gather", 2, "input 1") + "rank 0\noutput 2\nrank 1\noutput 3\n"));
  CHECK(refused(head("all_gather", 2, "input 0\noutput 3\nin_place") + "rank 0\nrank 1\n"));
  CHECK(refused(head("all_to_all", 2, "input 3\noutput 3") + "rank 0\nrank 1\n"));
}
