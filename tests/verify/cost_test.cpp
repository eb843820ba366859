#include "by_hand.hpp"

using namespace by_hand;

TEST_CASE("bytes and rounds: the algorithm's formulas are the schedule's") {
  const Registry registry = Registry::builtin();
  Algorithm ring = registry.find(Collective::all_reduce, "ring");
  const auto generate = ring.generate;
  const auto cost = ring.cost;
  std::vector<Problem> problems;
  const auto ask = [&](std::int64_t count) {
    Problem p;
    p.size = 4;
    p.count = count;
    problems.clear();
    for (int r = 0; r < p.size; ++r) problems.push_back(p.at(r));
  };
  const auto with_cost = [&](const std::function<void(Cost&, const Problem&)>& change) {
    ring.cost = [&, change](const Problem& p) {
      Cost c = cost(p);
      change(c, p);
      return c;
    };
    return summary(verify(ring, problems));
  };
  ask(8);
  CHECK(with_cost([](Cost&, const Problem&) {}) == "");
  CHECK(with_cost([](Cost& c, const Problem& p) { c.sent += p.rank == 2; }) == "bytes 2");
  CHECK(with_cost([](Cost& c, const Problem& p) { c.received -= p.rank == 1; }) == "bytes 1");
  CHECK(with_cost([](Cost& c, const Problem& p) { c.scratch += p.rank == 3; }) == "bytes 3");
  CHECK(with_cost([](Cost& c, const Problem& p) { c.folded += p.rank == 1; }) == "bytes 1");
  CHECK(with_cost([](Cost& c, const Problem&) { ++c.rounds; }) == "rounds 0");
  CHECK(with_cost([](Cost& c, const Problem&) { --c.rounds; }) == "rounds 0");
  CHECK(with_cost([](Cost& c, const Problem& p) { c.rounds += p.rank == 3; }) == "rounds 3");
  CHECK(with_cost([](Cost& c, const Problem&) { c.depth = 6; }) == "");
  CHECK(with_cost([](Cost& c, const Problem&) { c.depth = 5; }) == "rounds 0");
  CHECK(with_cost([](Cost& c, const Problem&) { c.depth = 7; }) == "rounds 0");
  ask(2);  // some messages are empty: an upper bound
  CHECK(with_cost([](Cost& c, const Problem&) { ++c.rounds; }) == "");
  CHECK(with_cost([](Cost& c, const Problem&) { c.rounds = 1; }) == "rounds 0");

  ask(8);
  ring.cost = cost;
  CHECK(verify(ring, problems).rounds == 6);
  const Proof cut = verify(ring, problems, 1);
  CHECK(cut.holds());
  CHECK(cut.messages == 48);
  ring.cost = [&](const Problem& p) {
    Cost c = cost(p);
    ++c.sent;
    return c;
  };
  CHECK(summary(verify(ring, problems, 1)) == "bytes 0, bytes 1, bytes 2, bytes 3");

  // Messages that need not wait for each other are one deep, however many rounds they take.
  ring.cost = cost;
  Algorithm linear = registry.find(Collective::all_gather, "linear");
  const auto plain = linear.cost;
  problems.clear();
  for (int r = 0; r < 4; ++r) {
    Problem p;
    p.collective = Collective::all_gather;
    p.size = 4;
    p.rank = r;
    p.count = 2;
    problems.push_back(p);
  }
  for (const std::int64_t depth : {0, 1, 2}) {
    linear.cost = [&](const Problem& p) {
      Cost c = plain(p);
      c.depth = depth;
      return c;
    };
    CHECK(summary(verify(linear, problems)) == (depth == 2 ? "rounds 0" : ""));
  }

  // Messages that one port cannot send in program order: no number of rounds is right, not even
  // where the formula is an upper bound.
  Algorithm lanes;
  lanes.collective = Collective::broadcast;
  lanes.name = "lanes";
  lanes.generate = [](const Problem& p) {
    return parse(head("broadcast", 2, "input 0\noutput 1\nin_place\nscratch 1") +
                 (p.rank == 0 ? "rank 0\nrecv 1 scratch[0:1]\nsend 1 scratch[0:1]\n"
                                "send 1 output[0:1] lane 1\n"
                              : "rank 1\nrecv 0 scratch[0:1]\nrecv 0 output[0:1] lane 1\n"
                                "send 0 output[0:1]\n"))[0];
  };
  lanes.cost = [](const Problem& p) {
    return Cost{.rounds = 3, .sent = 2 - p.rank, .received = 1 + p.rank, .scratch = 1};
  };
  Problem p;
  p.collective = Collective::broadcast;
  p.size = 2;
  p.count = 1;
  const std::vector<Problem> pair{p.at(0), p.at(1)};
  CHECK(summary(verify(lanes, pair)) == "rounds 0");
  CHECK(summary(verify(lanes, pair, 1)) == "");

  // What an algorithm does not serve is not generated.
  ask(8);
  for (Problem& q : problems) q.commutative = false;
  CHECK(refuses([&] { verify(ring, problems); }));
}

TEST_CASE("schedules and problems must belong together") {
  const std::vector<Schedule> schedules = parse(exchange);
  const std::vector<Problem> problems = problems_of(schedules);
  CHECK(refuses([&] { verify(schedules, std::span(problems).first(1)); }));
  CHECK(refuses([&] { verify(std::span(schedules).first(1), std::span(problems).first(1)); }));
  CHECK(refuses([&] { verify(std::span<const Schedule>(), std::span<const Problem>()); }));
  const auto refused = [&](const Change& change) {
    std::vector<Problem> changed = problems;
    change(changed[1]);
    return refuses([&] { verify(schedules, changed); });
  };
  CHECK(refused([](Problem& p) { p.rank = 0; }));
  CHECK(refused([](Problem& p) { p.size = 3; }));
  CHECK(refused([](Problem& p) { p.collective = Collective::scan; }));
  CHECK(refused([](Problem& p) { p.count = 1; }));
  CHECK(refused([](Problem& p) { p.average = true; }));
  CHECK(refused([](Problem& p) { p.commutative = false; }));
}

TEST_CASE("large counts are divided by what they have in common") {
  const Registry registry = Registry::builtin();
  const Algorithm& ring = registry.find(Collective::all_reduce, "ring");
  std::vector<Problem> problems;
  const auto ask = [&](std::int64_t count) {
    Problem p;
    p.size = 3;
    p.count = count;
    problems.assign({p.at(0), p.at(1), p.at(2)});
  };
  ask(std::int64_t{3} << 40);
  CHECK(verify(ring, problems).holds());
  ask((std::int64_t{3} << 40) + 1);
  CHECK(refuses([&] { verify(ring, problems); }));

  std::string large = exchange;
  for (const char* number : {"0:2]", "input 2", "output 2"}) {
    for (std::size_t at = 0; (at = large.find(number, at)) != std::string::npos;) {
      const std::size_t digit = at + std::string_view(number).size() - (number[1] == ':' ? 2 : 1);
      large.replace(digit, 1, "2000000000000");
      at = digit;
    }
  }
  CHECK(flaws(large) == "");
  CHECK(sentence(large +
                 "fold output[1000000000000:1000000000000] = output[1000000000000:1000000000000] + "
                 "input[1000000000000:1000000000000]\n") ==
        "output[1000000000000] of rank 1 should fold element 1000000000000 of ranks 0 to 1 once "
        "each, "
        "found (0 + 1) + 1");
}
