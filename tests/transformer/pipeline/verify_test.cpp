#include "transformer/pipeline/verify.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "baton/error.hpp"
#include "transformer/pipeline/steps.hpp"

using namespace baton;
using namespace baton::transformer;

namespace {

constexpr int most_ranks = 9, most_micro_batches = 16, most_stages = 4;

/// use(algorithm, problem) for each problem of the grid that the algorithm serves.
template <class Use>
void for_the_grid(Use use) {
  for (const PipelineAlgorithm& algorithm : pipeline_algorithms()) {
    for (int p = 1; p <= most_ranks; ++p) {
      for (int m = 1; m <= most_micro_batches; ++m) {
        for (int v = 1; v <= most_stages; ++v) {
          const PipelineProblem problem{p, m, v};
          if (refusal(algorithm, problem).empty()) use(algorithm, problem);
        }
      }
    }
  }
}

std::string flaws(const PipelineProof& proof) {
  std::string all;
  for (const PipelineFlaw& flaw : proof.flaws) all += flaw.text + "\n";
  return all;
}

bool has(const PipelineProof& proof, PipelineFlawKind kind) {
  return std::any_of(proof.flaws.begin(), proof.flaws.end(),
                     [&](const PipelineFlaw& flaw) { return flaw.kind == kind; });
}

}  // namespace

TEST_CASE("every algorithm is proved with its documented cost") {
  int proved = 0;
  for_the_grid([&](const PipelineAlgorithm& algorithm, const PipelineProblem& problem) {
    INFO(algorithm.name, " ", problem.ranks, " ", problem.micro_batches, " ",
         problem.stages_per_rank);
    const PipelineProof proof = verify(algorithm.generate(problem), algorithm.cost(problem));
    CHECK_MESSAGE(proof.right(), flaws(proof));
    ++proved;
  });
  CHECK(proved > 4 * most_ranks * most_micro_batches);
}

TEST_CASE("bubbles are those of the papers") {
  const auto bubble = [](const char* name, PipelineProblem problem) {
    return verify(pipeline_schedule(name, problem)).cost.bubble;
  };
  for (int p = 1; p <= most_ranks; ++p) {
    for (int m = p; m <= most_micro_batches; ++m) {
      const double pipe = static_cast<double>(p - 1) / (m + p - 1);
      CHECK(bubble("gpipe", {p, m, 1}) == doctest::Approx(pipe));
      CHECK(bubble("1f1b", {p, m, 1}) == doctest::Approx(pipe));
      CHECK(bubble("naive", {p, m, 1}) == doctest::Approx((p - 1.0) / p));
      CHECK(bubble("zb_h1", {p, m, 1}) == doctest::Approx((p - 1.0) / (3 * m + p - 1)));
      if (m % p == 0)
        CHECK(bubble("interleaved_1f1b", {p, m, 3}) ==
              doctest::Approx((p - 1.0) / (3 * m + p - 1)));
    }
  }
}

TEST_CASE("a wrong documented cost is noticed") {
  const PipelineProblem problem{4, 8, 1};
  const PipelineSchedule schedule = pipeline_schedule("1f1b", problem);
  const PipelineCost right = pipeline_algorithm("1f1b").cost(problem);
  PipelineCost cost = right;
  cost.bubble += 1e-6;
  CHECK(has(verify(schedule, cost), PipelineFlawKind::bubble));
  cost = right, ++cost.peak[3];
  CHECK(flaws(verify(schedule, cost)) ==
        "rank 3: expected activations of at most 2 micro-batches at once as documented, found 1\n");
  cost = right, --cost.messages;
  CHECK(has(verify(schedule, cost), PipelineFlawKind::messages));
}

TEST_CASE("mutants are rejected") {
  int mutants = 0;
  for_the_grid([&](const PipelineAlgorithm& algorithm, const PipelineProblem& problem) {
    if (problem.ranks > 4 || problem.micro_batches > 6 || problem.stages_per_rank > 2) return;
    const PipelineSchedule schedule = algorithm.generate(problem);
    for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
      const std::size_t n = schedule.ranks[rank].size();
      for (std::size_t k = 0; k < n; ++k) {
        INFO(algorithm.name, " ", problem.ranks, " ", problem.micro_batches, " rank ", rank,
             " action ", k, " ", print(schedule.ranks[rank][k]));
        const PipelineAction action = schedule.ranks[rank][k];
        const auto mutated = [&](auto change) {
          PipelineSchedule mutant = schedule;
          change(mutant.ranks[rank]);
          ++mutants;
          return verify(mutant);
        };
        const auto at = static_cast<std::ptrdiff_t>(k);
        CHECK(has(mutated([&](auto& own) { own.erase(own.begin() + at); }),
                  PipelineFlawKind::missing));
        CHECK(has(mutated([&](auto& own) { own.insert(own.begin() + at, action); }),
                  PipelineFlawKind::twice));
        CHECK(has(mutated([&](auto& own) { own[k].stage = schedule.stages; }),
                  PipelineFlawKind::bounds));
        CHECK(has(mutated([&](auto& own) { own[k].micro_batch = -1; }), PipelineFlawKind::bounds));
        if (action.work == PipelineWork::backward) {  // a part of it is forgotten
          CHECK(has(mutated([&](auto& own) { own[k].work = PipelineWork::backward_input; }),
                    PipelineFlawKind::missing));
        }
        if (action.work != PipelineWork::forward) {  // before the forward that it needs
          CHECK(has(mutated([&](auto& own) {
                      own.erase(own.begin() + at);
                      own.insert(own.begin(), action);
                    }),
                    PipelineFlawKind::order));
        }
        if (problem.ranks > 1) {
          PipelineSchedule mutant = schedule;
          mutant.ranks[rank].erase(mutant.ranks[rank].begin() + at);
          mutant.ranks[(rank + 1) % schedule.ranks.size()].push_back(action);
          CHECK(has(verify(mutant), PipelineFlawKind::place));
        }
      }
    }
  });
  CHECK(mutants > 1000);
}

TEST_CASE(
    "a swap of two actions is rejected, or leaves a right schedule of another cost or order") {
  // Whether a swap is right is decided here by another way than the proof's: by its dependencies
  // alone, tried out action by action.
  const auto runs = [](const PipelineSchedule& s) {
    std::vector<PipelineAction> done;
    const auto is_done = [&](PipelineWork work, int stage, int i) {
      return std::find(done.begin(), done.end(), PipelineAction{work, stage, i}) != done.end();
    };
    const auto may = [&](const PipelineAction& a) {
      const auto gradient = [&](int stage) {
        return is_done(PipelineWork::backward, stage, a.micro_batch) ||
               is_done(PipelineWork::backward_input, stage, a.micro_batch);
      };
      if (a.work == PipelineWork::forward)
        return a.stage == 0 || is_done(PipelineWork::forward, a.stage - 1, a.micro_batch);
      if (a.work == PipelineWork::backward_weight) return gradient(a.stage);
      return is_done(PipelineWork::forward, a.stage, a.micro_batch) &&
             (a.stage + 1 == s.stages || gradient(a.stage + 1));
    };
    std::vector<std::size_t> at(s.ranks.size(), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t r = 0; r < at.size(); ++r) {
        for (; at[r] < s.ranks[r].size() && may(s.ranks[r][at[r]]); ++at[r], moved = true)
          done.push_back(s.ranks[r][at[r]]);
      }
    }
    for (std::size_t r = 0; r < at.size(); ++r)
      if (at[r] < s.ranks[r].size()) return false;
    return true;
  };
  int right = 0, wrong = 0;
  for_the_grid([&](const PipelineAlgorithm& algorithm, const PipelineProblem& problem) {
    if (problem.ranks > 3 || problem.micro_batches > 4 || problem.stages_per_rank > 2) return;
    const PipelineSchedule schedule = algorithm.generate(problem);
    for (std::size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
      for (std::size_t k = 0; k < schedule.ranks[rank].size(); ++k) {
        for (std::size_t j = k + 1; j < schedule.ranks[rank].size(); ++j) {
          PipelineSchedule mutant = schedule;
          std::swap(mutant.ranks[rank][k], mutant.ranks[rank][j]);
          INFO(print(mutant));
          const PipelineProof proof = verify(mutant);
          CHECK_MESSAGE(proof.right() == runs(mutant), flaws(proof));
          (proof.right() ? right : wrong) += 1;
        }
      }
    }
  });
  CHECK(right > 50);
  CHECK(wrong > 500);
}

TEST_CASE("ranks that wait for each other are named") {
  // Rank 0 wants the gradient of micro-batch 0 before it sends micro-batch 1, which rank 1 wants
  // before it goes back.
  const PipelineSchedule schedule =
      parse_pipeline("0F0,0B0,0F1,0B1\n1F0,1F1,1B0,1B1\n", "crossed.csv");
  const PipelineProof proof = verify(schedule);
  REQUIRE(proof.flaws.size() == 1);
  CHECK(proof.flaws[0].kind == PipelineFlawKind::deadlock);
  CHECK(
      proof.flaws[0].text ==
      "ranks wait for each other: rank 0 waits for rank 1 to compute 1B0; rank 1 waits for rank 0 "
        "to compute 0F1");
  CHECK_THROWS_WITH_AS(expect_right(schedule),
                       ("pipeline crossed.csv: " + proof.flaws[0].text).c_str(), Error);
}

TEST_CASE("the order of messages counts where they wait for their receivers") {
  // Stages 0 and 2 lie on rank 0, 1 and 3 on rank 1; every stage has all micro-batches in a row.
  const PipelineSchedule waves = parse_pipeline(
      "0F0,0F1,0F2,0F3,2F0,2F1,2F2,2F3,2B0,2B1,2B2,2B3,0B0,0B1,0B2,0B3\n"
      "1F0,1F1,1F2,1F3,3F0,3F1,3F2,3F3,3B0,3B1,3B2,3B3,1B0,1B1,1B2,1B3\n",
      "waves.csv");
  CHECK(verify(waves).right());
  // Rank 1 wants micro-batches in turn, and rank 0 has them: they wait in its hands.
  PipelineSchedule turned = waves;
  std::swap(turned.ranks[1][0], turned.ranks[1][3]);
  CHECK(verify(turned).right());
  // Stage 3 before the last micro-batch of stage 1, whose result stage 2 needs first.
  PipelineSchedule early = waves;
  std::swap(early.ranks[0][4], early.ranks[0][7]);  // 2F3 first
  std::swap(early.ranks[1][3], early.ranks[1][4]);  // 3F0 before 1F3
  const PipelineProof proof = verify(early);
  REQUIRE(proof.flaws.size() == 1);
  CHECK(
      proof.flaws[0].text ==
      "ranks wait for each other: rank 0 waits for rank 1 to compute 1F3; rank 1 waits for rank 0 "
      "to compute 2F3");
}

TEST_CASE("a file with numbers beyond all actions is rejected at once") {
  const PipelineSchedule schedule = parse_pipeline("1000000F1000000\n", "far.csv");
  const PipelineProof proof = verify(schedule);
  CHECK(has(proof, PipelineFlawKind::missing));
  CHECK(proof.flaws[0].text == "no rank computes the output of stage 0 for micro-batch 0");
}

TEST_CASE("messages of steps are those that the proof counts, and match") {
  for_the_grid([&](const PipelineAlgorithm& algorithm, const PipelineProblem& problem) {
    if (problem.ranks > 4 || problem.micro_batches > 8) return;
    const PipelineSchedule schedule = algorithm.generate(problem);
    std::vector<PipelineStep> sent, received;
    for (int rank = 0; rank < schedule.size(); ++rank) {
      for (PipelineStep step : steps_of(schedule, rank)) {
        if (step.kind == PipelineStepKind::compute) continue;
        const bool sends = step.kind == PipelineStepKind::send;
        CHECK(step.peer != rank);
        step.kind = PipelineStepKind::send, step.peer = sends ? step.peer : rank;
        (sends ? sent : received).push_back(step);
      }
    }
    CHECK(static_cast<std::int64_t>(sent.size()) == algorithm.cost(problem).messages);
    CHECK(std::is_permutation(sent.begin(), sent.end(), received.begin(), received.end()));
  });
}
