#include "verify/sweep.hpp"

#include <set>
#include <stdexcept>

#include "by_hand.hpp"
#include "support/sanitizer.hpp"

using namespace by_hand;
using namespace baton::proving;

TEST_CASE("every algorithm is proved for small numbers of ranks") {
  const Registry registry = Registry::builtin();
  SweepResult all;
  for (const Algorithm& algorithm : registry.all()) {
    for (const int size : {1, 2, 3, 4, 5, 8}) {
      if (support::under_sanitizer && size == 8) continue;
      SweepResult result = sweep(algorithm, size);
      Problem p;
      p.collective = algorithm.collective;
      p.size = size;
      CHECK((result.proofs > 0 || !refusal(algorithm, p).empty()));
      for (const SweepFinding& f : result.findings) {
        MESSAGE(f.problem << ": " << f.flaw << ": " << f.sentence);
      }
      all += std::move(result);
    }
  }
  CHECK(all.holds());
  CHECK(all.proofs > 5000);
  CHECK(all.messages > 10000);
}

TEST_CASE("every algorithm is proved in fused groups for small numbers of ranks") {
  const Registry registry = Registry::builtin();
  SweepResult plain, fused;
  for (const Algorithm& algorithm : registry.all()) {
    for (const int size : {1, 2, 3, 5, 8}) {
      if (support::under_sanitizer && size == 8) continue;
      plain += sweep(algorithm, size);
      fused += sweep(algorithm, size, Form::fused);
    }
  }
  for (const SweepFinding& f : fused.findings) {
    MESSAGE(f.problem << ": " << f.flaw << ": " << f.sentence);
  }
  CHECK(fused.holds());
  CHECK(fused.proofs == 2 * plain.proofs);  // with a window and without
  CHECK(fused.messages == 2 * plain.messages);
}

TEST_CASE("the grid has every kind of problem, for few ranks and for many") {
  const Registry registry = Registry::builtin();
  for (const int size : {3, 24}) {
    CAPTURE(size);
    const auto sets = sweep_problems(registry.find(Collective::reduce, "binomial"), size);
    std::set<std::int64_t> counts, roots;
    std::set<std::pair<bool, bool>> variants, places;
    for (const auto& set : sets) {
      REQUIRE(set.size() == static_cast<std::size_t>(size));
      counts.insert(set[0].count);
      roots.insert(set[0].root);
      variants.insert({set[0].commutative, set[0].average});
      places.insert({set[0].in_place, set[0].root > 0});
    }
    CHECK(counts == std::set<std::int64_t>{0, 1, size - 1, size, size + 1, 2 * size + 3});
    CHECK(roots == std::set<std::int64_t>{0, size / 2, size - 1});
    CHECK(variants.size() == 3);
    CHECK(places.size() == 4);

    int gaps = 0, empty = 0, in_place = 0, even = 0;
    for (const auto& set : sweep_problems(registry.find(Collective::all_gather, "ring"), size)) {
      const Problem& p = set[0];
      even += !p.uneven();
      if (!p.uneven()) continue;
      gaps += p.output_blocks->extent() > p.output_blocks->total();
      for (int i = 0; i < size; ++i) empty += p.block_count(i) == 0;
      in_place += p.in_place;
    }
    CHECK(gaps > 0);
    CHECK(empty > 0);
    CHECK(in_place > 0);
    CHECK(even > 0);

    std::set<std::pair<std::int64_t, std::int64_t>> rows, rows_in_place;
    for (const auto& set : sweep_problems(registry.find(Collective::all_to_all, "bruck"), size)) {
      auto& found = set[0].in_place ? rows_in_place : rows;
      found.insert({set[0].input_rows, set[0].output_rows});
    }
    CHECK(rows.size() == 6);
    CHECK(rows_in_place == rows);
  }
}

TEST_CASE("hierarchical algorithms are proved on every kind of hosts") {
  const Registry registry = Registry::builtin();
  for (const Algorithm& algorithm : registry.all()) {
    CAPTURE(algorithm.name);
    for (const int size : {6, 24}) {
      std::set<std::string> even, uneven;
      bool in_turn = false, interleaved = false;
      for (const auto& set : sweep_problems(algorithm, size)) {
        CHECK((set[0].hosts != nullptr) == algorithm.hierarchical);
        if (!set[0].hosts) continue;
        const auto of = set[0].hosts->of();
        (std::ranges::is_sorted(of) ? in_turn : interleaved) = true;
        (set[0].hosts->even() ? even : uneven).insert(print(*set[0].hosts));
      }
      if (!algorithm.hierarchical) continue;
      CHECK(in_turn);
      CHECK(interleaved);
      CHECK(even.size() >= 4);
      const auto takes_uneven = [&] {
        Problem p;
        p.collective = algorithm.collective;
        p.size = size;
        p.hosts = host_grouping(std::vector{0, 0, 0, 0, 0, 1});
        return refusal(algorithm, p).empty();
      };
      CHECK(uneven.size() >= (takes_uneven() ? 2u : 0u));
    }
  }
}

TEST_CASE("a hierarchical algorithm is refused where there is no hierarchy") {
  const Registry registry = Registry::builtin();
  const Algorithm& shares = registry.find(Collective::all_reduce, "hierarchical");
  Problem p;
  p.size = 4;
  CHECK(refusal(shares, p) == "needs ranks on several hosts, found one host");
  p.hosts = host_grouping(std::vector{0, 1, 2, 3});
  CHECK(refusal(shares, p) == "needs ranks that share a host, found none");
  p.hosts = host_grouping(std::vector{0, 0, 0, 3});
  CHECK(refusal(shares, p) == "needs as many ranks on each host, found 0,0,0,1");
  CHECK(refusal(registry.find(Collective::all_reduce, "leaders"), p).empty());
}

TEST_CASE("a sweep names the problem that shows a flaw") {
  const Registry registry = Registry::builtin();
  Algorithm wrong = registry.find(Collective::all_reduce, "ring");
  const auto generate = wrong.generate;
  wrong.generate = [&](const Problem& p) {
    const Schedule s = generate(p);
    std::vector<Step> steps(s.steps().begin(), s.steps().end());
    for (Step& step : steps) {
      if (p.count == 3 && p.in_place && step.kind == StepKind::fold) step.kind = StepKind::copy;
      if (step.kind == StepKind::copy) step.parts[2] = 0;
    }
    return Schedule(s.header(), steps, {s.regions().begin(), s.regions().end()}, s.dependencies());
  };
  const SweepResult result = sweep(wrong, 3);
  REQUIRE(!result.holds());
  std::set<std::string> flaws;
  for (const SweepFinding& f : result.findings) {
    flaws.insert(std::string(f.flaw));
    CHECK(f.problem.starts_with("all_reduce ring, 3 ranks, count 3, in place"));
  }
  CHECK(flaws ==
        std::set<std::string>{"bytes", "contribution"});  // too few folds, so too few terms
  const SweepResult fused = sweep(wrong, 3, Form::fused);
  REQUIRE(!fused.holds());
  for (const SweepFinding& f : fused.findings) {
    CHECK(f.problem.starts_with("all_reduce ring, 3 ranks, count 3, in place"));
    CHECK(f.problem.find(", in fused groups, window ") != std::string::npos);
  }
  wrong.generate = [](const Problem&) -> Schedule { throw std::runtime_error("out of ideas"); };
  const SweepResult thrown = sweep(wrong, 2);
  REQUIRE(!thrown.holds());
  CHECK(thrown.findings[0].flaw == "error");
  CHECK(thrown.findings[0].sentence == "out of ideas");
}
