#include "select/select.hpp"

#include <doctest/doctest.h>

#include "baton/error.hpp"
#include "support/schedules.hpp"

using namespace baton;
using namespace baton::costs;
using namespace baton::selecting;
using support::problem;

namespace {

const Registry& registry() {
  static const Registry table = Registry::builtin();
  return table;
}

Selection chosen(const Problem& p, const Choice& call = {}, const Choice& option = {}) {
  return select(registry(), p, 4, call, option);
}

}  // namespace

TEST_CASE("the caller's choice comes first, then the option's") {
  const Problem p = problem(Collective::all_reduce, 5, 0, 1000);
  CHECK(chosen(p, {"ring", 64}, {"tree", 0}).algorithm->name == "ring");
  CHECK(chosen(p, {"ring", 64}, {"tree", 0}).segment == 64);
  CHECK(chosen(p, {}, {"tree", 32}).algorithm->name == "tree");
  CHECK(chosen(p, {}, {"tree", 32}).segment == 32);
  CHECK(chosen(p, {"", 128}, {"tree", 32}).segment == 128);
  CHECK(chosen(p, {}, {"", 4096}).segment == 4096);
  CHECK(chosen(p, {"ring"}).segment >= 0);
  CHECK_THROWS_WITH_AS(chosen(p, {"ring", -1}),
                       "all_reduce: expected a segment of at least 0 bytes, found -1", Error);
  CHECK(chosen(p, {"ring", 64}).reason.find("caller") != std::string::npos);
  CHECK(chosen(p, {}, {"tree", 32}).reason.find("options") != std::string::npos);
}

TEST_CASE("the choice is the same on all ranks, in place or not") {
  for (int c = 0; c < collective_count; ++c) {
    const auto collective = static_cast<Collective>(c);
    for (const int size : {2, 3, 5, 8, 16}) {
      for (const std::int64_t count : {0, 1, 10, 1000, 100'000, 10'000'000}) {
        Problem p = problem(collective, size, 0, collective == Collective::barrier ? 1 : count);
        p.root = size / 3;
        const Selection first = chosen(p);
        for (int rank = 0; rank < size; ++rank) {
          Problem other = p.at(rank);
          other.in_place = rank % 2 == 1;
          const Selection s = chosen(other);
          CHECK(s.algorithm == first.algorithm);
          CHECK(s.segment == first.segment);
        }
      }
    }
  }
}

TEST_CASE("uneven counts: the same on all ranks, and an algorithm that takes them") {
  const std::int64_t counts[] = {100'000, 0, 5, 1};
  for (const Collective collective : {Collective::gather, Collective::scatter,
                                      Collective::all_gather, Collective::reduce_scatter}) {
    Problem p = problem(collective, 4, 0, 0);
    p.input_blocks = p.output_blocks = Blocks::packed(counts);
    const Selection first = chosen(p.at(0));
    CHECK(first.algorithm->uneven);
    for (int rank = 1; rank < 4; ++rank) {
      CHECK(chosen(p.at(rank)).algorithm == first.algorithm);
      CHECK(chosen(p.at(rank)).segment == first.segment);
    }
  }
}

TEST_CASE("uneven all_to_all: each rank sees other counts, so they do not decide") {
  Registry two;
  Algorithm plain = registry().find(Collective::all_to_all, "spread_out");
  plain.name = "dearer the more there is";
  plain.cost = [](const Problem& p) { return Cost{.rounds = 1, .sent = p.input_blocks->total()}; };
  two.add(plain);
  plain.name = "always the same";
  plain.cost = [](const Problem&) { return Cost{.rounds = 1, .sent = 1'000}; };
  two.add(plain);
  for (const std::int64_t count : {0, 1, 100'000, 100'000'000}) {
    const std::int64_t counts[] = {count, 2, count, 1};
    Problem p = problem(Collective::all_to_all, 4, 3, 0);
    p.input_blocks = p.output_blocks = Blocks::packed(counts);
    const Selection s = select(two, p, 4, {}, {});
    CHECK(s.algorithm->name == "dearer the more there is");
    CHECK(s.segment == 0);
  }
}

TEST_CASE("an operation that does not commute gets an algorithm in rank order") {
  for (const Collective collective :
       {Collective::all_reduce, Collective::reduce, Collective::reduce_scatter, Collective::scan,
        Collective::exscan}) {
    for (const std::int64_t count : {1, 10'000, 10'000'000}) {
      Problem p = problem(collective, 7, 0, count);
      p.commutative = false;
      CHECK(chosen(p).algorithm->ordered);
    }
  }
}

TEST_CASE("small messages take few rounds, large ones little volume") {
  const auto cost = [](const Selection& s, const Problem& p) { return s.algorithm->cost(p); };
  const Problem small = problem(Collective::all_reduce, 8, 0, 1);
  CHECK(cost(chosen(small), small).rounds == 3);
  const Problem large = problem(Collective::all_reduce, 8, 0, 16'000'000);
  CHECK(cost(chosen(large), large).sent <= 2 * 16'000'000);
}

TEST_CASE("what cannot be served is refused in a sentence") {
  const auto says = [](const Problem& p, const Choice& choice,
                       const std::vector<std::string>& parts) {
    try {
      chosen(p, choice);
      FAIL_CHECK("expected an Error");
    } catch (const Error& error) {
      CHECK(error.code == ErrorCode::invalid_argument);
      for (const std::string& part : parts) {
        CHECK_MESSAGE(std::string(error.what()).find(part) != std::string::npos,
                      std::string(error.what()));
      }
    }
  };
  says(problem(Collective::all_gather, 5, 0, 1), {"neighbor_exchange", 0},
       {"all_gather", "neighbor_exchange", "found 5"});
  says(problem(Collective::scan, 5, 0, 1), {"ring", 0},
       {"scan", "recursive_doubling", "found \"ring\""});
  const Registry none;
  CHECK_THROWS_AS(select(none, problem(Collective::scan, 5, 0, 1), 4, {}, {}), Error);
}

TEST_CASE("scheduled: segments are bytes; what is pipelined by structure gets blocks") {
  const Problem p = problem(Collective::broadcast, 4, 1, 100);
  const Schedule cut = scheduled(chosen(p, {"chain", 40}), p, 4);
  for (const Step& step : cut.steps()) CHECK(cut.length(step) <= 10);
  const Schedule tiny = scheduled(chosen(p, {"chain", 1}), p, 8);
  for (const Step& step : tiny.steps()) CHECK(tiny.length(step) == 1);  // at least one element
  const Schedule blocks = scheduled(chosen(p, {"circulant", 40}), p, 4);
  for (const Step& step : blocks.steps()) CHECK(blocks.length(step) <= 10);
  CHECK(scheduled(chosen(p, {"chain", 0}), p, 4) == chosen(p, {"chain", 0}).algorithm->generate(p));
}

TEST_CASE("between hosts, latency counts once for messages that are under way together") {
  const std::vector<int> apart{0, 1, 2, 3, 4, 5, 6, 7};
  const auto on_hosts = [&](Collective collective, int size, std::int64_t count) {
    Problem p = problem(collective, size, 0, count);
    p.hosts = host_grouping(std::span(apart).first(static_cast<std::size_t>(size)));
    return p;
  };
  for (const Collective collective : {Collective::all_reduce, Collective::all_gather,
                                      Collective::reduce_scatter, Collective::all_to_all}) {
    for (const int size : {3, 5, 8}) {
      const Problem p = on_hosts(collective, size, 1);
      CAPTURE(name(collective));
      CHECK(chosen(p).algorithm->cost(p).depth <= 1 + (size == 8));
    }
  }
  // Of much data, all that the links can carry, in pieces that make a pipeline of a chain.
  const Problem large = on_hosts(Collective::broadcast, 8, 4 << 20);
  const Selection s = chosen(large);
  CHECK(s.segment > 0);
  CHECK(estimate(*s.algorithm, large, 4, s.segment, {}) < 1.1 * (16 << 20) * gigabit_tcp.per_byte);
  const Problem sum = on_hosts(Collective::all_reduce, 8, 4 << 20);
  CHECK(chosen(sum).algorithm->cost(sum).sent <= 2 * (4 << 20) * 7 / 8 + 8);
}

TEST_CASE("between hosts, much data goes around a ring in pieces that need no handshake") {
  const std::vector<int> apart{0, 1, 2, 3, 4, 5, 6, 7};
  for (const Collective collective :
       {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter}) {
    Problem p = problem(collective, 8, 0, collective == Collective::all_reduce ? 1 << 21 : 1 << 18);
    p.hosts = host_grouping(apart);
    const Selection s = chosen(p);
    CAPTURE(name(collective));
    CHECK(s.algorithm->neighbors);
    CHECK(s.segment > 0);
    CHECK(static_cast<double>(s.segment) <= gigabit_tcp.eager);
    for (const Algorithm* other : registry().of(collective)) {
      if (other->neighbors || !refusal(*other, p).empty()) continue;
      CHECK(estimate(*other, p, 4, s.segment, {}) > estimate(*s.algorithm, p, 4, s.segment, {}));
    }
  }
}

TEST_CASE("where ranks share cores, few messages that move few bytes are chosen") {
  const auto of = [&](Collective collective, int cores) {
    const Problem p = problem(collective, 8, 3, 1 << 20);
    const costs::NetworkParameters network{.cores = cores};
    const Selection all = select(registry(), p, 4, {}, {}, nullptr, network);
    for (int rank = 0; rank < p.size; ++rank)
      CHECK(select(registry(), p.at(rank), 4, {}, {}, nullptr, network).algorithm == all.algorithm);
    return all;
  };
  const auto moved = [&](const Selection& s, Collective collective) {
    std::int64_t elements = 0;
    const Problem p = problem(collective, 8, 3, 1 << 20);
    for (int rank = 0; rank < p.size; ++rank) elements += s.algorithm->cost(p.at(rank)).sent;
    return elements;
  };
  for (const Collective collective : {Collective::broadcast, Collective::all_reduce,
                                      Collective::reduce_scatter, Collective::all_gather}) {
    CAPTURE(name(collective));
    const Selection alone = of(collective, 0), crowded = of(collective, 2);
    CHECK(of(collective, 8).algorithm == alone.algorithm);  // each rank has a core
    CHECK(of(collective, 8).segment == alone.segment);
    CHECK(moved(crowded, collective) <= moved(alone, collective));
  }
  CHECK(of(Collective::broadcast, 2).algorithm->name == "binomial");
  CHECK(of(Collective::broadcast, 2).segment == 0);
  CHECK(of(Collective::broadcast, 0).algorithm->name != "binomial");
  // Folds read pieces from a core's cache.
  for (const Collective collective : {Collective::all_reduce, Collective::reduce_scatter}) {
    const Problem large = problem(collective, 4, 0, 4 << 20);
    CHECK(select(registry(), large, 4, {}, {}, nullptr, {.cores = 2}).segment == 1 << 20);
    CHECK(select(registry(), large, 4, {}, {}, nullptr, {.cores = 4}).segment == 0);
  }
  // Trees differ in the sums of their ranks: all count.
  for (const int size : {5, 32, 64}) {
    for (const int root : {0, 1, 2, 3}) {
      const Problem tree = problem(Collective::broadcast, size, root, 1000);
      const Algorithm& binomial = registry().find(Collective::broadcast, "binomial");
      CHECK(work_of(binomial, tree, {.cores = 4}).moved == 2 * 1000.0 * (size - 1) / 4);
      CHECK(work_of(binomial, tree, {.cores = size}).moved == 0);
    }
  }
  const Algorithm& ring = registry().find(Collective::all_reduce, "ring");
  const Problem p = problem(Collective::all_reduce, 8, 0, 1 << 20);
  CHECK(estimate(ring, p, 4, 0, {.cores = 1}) > 1.9 * estimate(ring, p, 4, 0, {.cores = 2}));
}

TEST_CASE("between hosts, bytes decide between estimates that are hardly told apart") {
  const std::vector<int> apart = {0, 1, 2, 3};
  Problem p = problem(Collective::all_reduce, 4, 0, 4096);
  p.hosts = host_grouping(apart);
  const auto estimated = [&](const char* name) {
    return estimate(registry().find(p.collective, name), p, 4, 0, {}, {});
  };
  // Half as many rounds, a third more bytes.
  CHECK(estimated("recursive_doubling") < estimated("rabenseifner"));
  CHECK(estimated("recursive_doubling") * 1.12 > estimated("rabenseifner"));
  CHECK(chosen(p).algorithm->name == "rabenseifner");
  CHECK(chosen(p).reason.starts_with("fewest bytes"));
  p.count = 1024;
  CHECK(estimated("recursive_doubling") * 1.12 < estimated("rabenseifner"));
  CHECK(chosen(p).algorithm->name == "recursive_doubling");
  CHECK(chosen(p).reason.starts_with("least estimate"));
}

TEST_CASE("where ranks share hosts, what crosses between hosts decides") {
  const auto on = [&](Collective collective, const char* hosts, std::int64_t count) {
    const Hosts grouping = parse_hosts(hosts);
    Problem p = problem(collective, grouping.size(), 0, count);
    p.hosts = host_grouping(grouping.of());
    return p;
  };
  for (const Collective collective :
       {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather}) {
    for (const char* hosts : {"4x4", "0,1,2,3,0,1,2,3", "0,0,0,1,1,2"}) {
      const Problem p = on(collective, hosts, 1'000'000);
      CAPTURE(name(collective));
      CAPTURE(std::string(hosts));
      CHECK((chosen(p).algorithm->hierarchical || chosen(p).algorithm->neighbors));
    }
    CHECK(chosen(on(collective, "4x4", 1)).algorithm->hierarchical);
  }
  CHECK(chosen(on(Collective::barrier, "8x4", 1)).algorithm->hierarchical);
  CHECK(chosen(on(Collective::all_to_all, "4x4", 1)).algorithm->hierarchical);
  // The ring of ranks in the order of their hosts uses each link once, in either order of
  // magnitude.
  const Problem ring = on(Collective::all_reduce, "4x4", 1'000'000);
  const Problem mixed = on(Collective::all_reduce, "0,1,2,3,0,1,2,3", 1'000'000);
  const Algorithm& algorithm = registry().find(Collective::all_reduce, "ring");
  CHECK(estimate(algorithm, ring, 4, 0, {}) < 0.7 * estimate(algorithm, mixed, 4, 0, {}));
}
