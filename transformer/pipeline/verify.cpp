#include "verify.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "baton/error.hpp"
#include "results.hpp"
#include "steps.hpp"

namespace baton::transformer {

using pipeline::needed;
using pipeline::Result;
using pipeline::ResultKind;

std::string_view name(PipelineFlawKind kind) {
  constexpr std::string_view names[] = {"bounds",   "place",  "missing", "twice",   "order",
                                        "deadlock", "bubble", "peak",    "messages"};
  return names[static_cast<std::size_t>(kind)];
}

namespace {

constexpr std::size_t most_flaws = 16;  // more of them tell a reader nothing

std::string_view name(ResultKind kind) {
  constexpr std::string_view names[] = {"output", "gradient by the input",
                                        "gradient by the weights"};
  return names[static_cast<std::size_t>(kind)];
}

/// One proof of one schedule.
class Proof {
 public:
  explicit Proof(const PipelineSchedule& schedule) : schedule_(schedule) {}

  PipelineProof run() {
    if (!well_formed() || !complete()) return std::move(proof_);
    check_order();
    if (!proof_.right()) return std::move(proof_);
    check_deadlock();
    if (!proof_.right()) return std::move(proof_);
    count();
    return std::move(proof_);
  }

 private:
  struct Place {
    int rank = 0;
    std::size_t index = 0;
  };

  void flaw(PipelineFlawKind kind, int rank, const PipelineAction& of, std::string text) {
    if (proof_.flaws.size() < most_flaws)
      proof_.flaws.push_back({kind, rank, of.stage, of.micro_batch, std::move(text)});
  }
  template <class Use>
  void for_each_action(Use use) const {
    for (int rank = 0; rank < schedule_.size(); ++rank) {
      const auto& actions = schedule_.ranks[static_cast<std::size_t>(rank)];
      for (std::size_t k = 0; k < actions.size(); ++k) use(rank, k, actions[k]);
    }
  }

  /// Stages and micro-batches exist, and a stage lies on one rank.
  bool well_formed() {
    std::map<int, int> place;
    for_each_action([&](int rank, std::size_t, const PipelineAction& a) {
      if (a.stage < 0 || a.stage >= schedule_.stages || a.micro_batch < 0 ||
          a.micro_batch >= schedule_.micro_batches) {
        flaw(PipelineFlawKind::bounds, rank, a,
             fmt::format("rank {}: {}: expected a stage below {} and a micro-batch below {}", rank,
                         print(a), schedule_.stages, schedule_.micro_batches));
        return;
      }
      const int first = place.emplace(a.stage, rank).first->second;
      if (first != rank) {
        flaw(PipelineFlawKind::place, rank, a,
             fmt::format("rank {}: {}: expected stage {} on rank {} only, which computes it too",
                         rank, print(a), a.stage, first));
      }
    });
    return proof_.right();
  }

  /// Every result is made once.
  bool complete() {
    for_each_action([&](int rank, std::size_t k, const PipelineAction& a) {
      for (const Result& result : pipeline::made(a)) {
        if (made_.emplace(result, Place{rank, k}).second) continue;
        flaw(PipelineFlawKind::twice, rank, a,
             fmt::format("rank {}: {} computes the {} of stage {} for micro-batch {} once more",
                         rank, print(a), name(result.kind), a.stage, a.micro_batch));
      }
    });
    for (int stage = 0; stage < schedule_.stages; ++stage) {
      for (int i = 0; i < schedule_.micro_batches; ++i) {
        for (const ResultKind kind :
             {ResultKind::output, ResultKind::input_gradient, ResultKind::weight_gradient}) {
          if (made_.contains({kind, stage, i})) continue;
          flaw(PipelineFlawKind::missing, -1, {PipelineWork::forward, stage, i},
               fmt::format("no rank computes the {} of stage {} for micro-batch {}", name(kind),
                           stage, i));
          if (proof_.flaws.size() == most_flaws) return false;
        }
      }
    }
    return proof_.right();
  }

  /// No rank needs a result that it makes later itself.
  void check_order() {
    for_each_action([&](int rank, std::size_t k, const PipelineAction& a) {
      for (const Result& need : needed(a, schedule_.stages)) {
        const Place& place = made_.at(need);
        if (place.rank != rank || place.index < k) continue;
        flaw(PipelineFlawKind::order, rank, a,
             fmt::format("rank {}: {} needs the {} of stage {} for micro-batch {}, which the rank "
                         "computes later",
                         rank, print(a), name(need.kind), need.stage, need.micro_batch));
      }
    });
  }

  void check_deadlock();
  void count();

  const PipelineSchedule& schedule_;
  std::map<Result, Place> made_;
  PipelineProof proof_;
};

/// Runs all ranks as the runner does: a rank posts a send and goes on, the message leaves when its
/// receiver asks for it, messages of a channel in their order; a receive waits.
class SynchronousRun {
 public:
  explicit SynchronousRun(const PipelineSchedule& schedule) {
    for (int rank = 0; rank < schedule.size(); ++rank) steps_.push_back(steps_of(schedule, rank));
    at_.resize(steps_.size(), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (int rank = 0; rank < schedule.size(); ++rank)
        while (advance(rank)) moved = true;
    }
  }
  /// The step that a rank waits in; null: it has ended.
  const PipelineStep* waits_in(int rank) const {
    const auto r = static_cast<std::size_t>(rank);
    return at_[r] < steps_[r].size() ? &steps_[r][at_[r]] : nullptr;
  }

 private:
  struct Channel {
    std::int64_t sent = 0, received = 0;
  };
  Channel& channel(int from, int to, const PipelineStep& step) {
    return channels_[{from, to, step.action.work == PipelineWork::forward}];
  }
  bool advance(int rank) {
    const PipelineStep* const step = waits_in(rank);
    if (step == nullptr) return false;
    if (step->kind == PipelineStepKind::send) {
      ++channel(rank, step->peer, *step).sent;
    } else if (step->kind == PipelineStepKind::recv) {
      Channel& from = channel(step->peer, rank, *step);
      if (from.sent == from.received) return false;
      ++from.received;
    }
    ++at_[static_cast<std::size_t>(rank)];
    return true;
  }
  std::vector<std::vector<PipelineStep>> steps_;
  std::vector<std::size_t> at_;
  std::map<std::tuple<int, int, bool>, Channel> channels_;
};

void Proof::check_deadlock() {
  const SynchronousRun run(schedule_);
  int rank = 0;
  while (rank < schedule_.size() && run.waits_in(rank) == nullptr) ++rank;
  if (rank == schedule_.size()) return;
  std::set<int> seen;
  while (seen.insert(rank).second) rank = run.waits_in(rank)->peer;  // to a rank of the cycle
  std::string text = "ranks wait for each other:";
  const int first = rank;
  do {
    const PipelineStep& step = *run.waits_in(rank);
    text += fmt::format("{} rank {} waits for rank {} to compute {}", rank == first ? "" : ";",
                        rank, step.peer, print(step.action));
    rank = step.peer;
  } while (rank != first);
  flaw(PipelineFlawKind::deadlock, first, run.waits_in(first)->action, std::move(text));
}

void Proof::count() {
  proof_.times = unit_times(schedule_);
  std::int64_t busy = 0;
  for (int rank = 0; rank < schedule_.size(); ++rank) {
    int held = 0, most = 0;
    for (const PipelineAction& a : schedule_.ranks[static_cast<std::size_t>(rank)]) {
      busy += units(a.work);
      if (a.work == PipelineWork::forward) most = std::max(most, ++held);
      if (a.work == PipelineWork::backward || a.work == PipelineWork::backward_weight) --held;
    }
    proof_.cost.peak.push_back(most);
    for (const PipelineStep& step : steps_of(schedule_, rank))
      proof_.cost.messages += step.kind == PipelineStepKind::send;
  }
  proof_.cost.bubble = 1 - static_cast<double>(busy) / (static_cast<double>(proof_.times.span) *
                                                        static_cast<double>(schedule_.size()));
}

}  // namespace

PipelineProof verify(const PipelineSchedule& schedule) { return Proof(schedule).run(); }

PipelineProof verify(const PipelineSchedule& schedule, const PipelineCost& documented) {
  PipelineProof proof = verify(schedule);
  if (!proof.right()) return proof;
  const PipelineCost& found = proof.cost;
  if (std::abs(found.bubble - documented.bubble) > 1e-12) {
    proof.flaws.push_back({PipelineFlawKind::bubble, -1, -1, -1,
                           fmt::format("expected a bubble of {:.6f} as documented, found {:.6f}",
                                       documented.bubble, found.bubble)});
  }
  for (std::size_t rank = 0; rank < found.peak.size(); ++rank) {
    const int expected = rank < documented.peak.size() ? documented.peak[rank] : 0;
    if (found.peak[rank] == expected) continue;
    proof.flaws.push_back({PipelineFlawKind::peak, static_cast<int>(rank), -1, -1,
                           fmt::format("rank {}: expected activations of at most {} micro-batches "
                                       "at once as documented, found {}",
                                       rank, expected, found.peak[rank])});
  }
  if (found.messages != documented.messages) {
    proof.flaws.push_back({PipelineFlawKind::messages, -1, -1, -1,
                           fmt::format("expected {} messages as documented, found {}",
                                       documented.messages, found.messages)});
  }
  return proof;
}

void expect_right(const PipelineSchedule& schedule) {
  const PipelineProof proof = verify(schedule);
  if (!proof.right()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("pipeline {}: {}", schedule.name, proof.flaws.front().text));
  }
}

}  // namespace baton::transformer
