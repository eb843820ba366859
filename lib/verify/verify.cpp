#include "baton/verify.hpp"

#include <fmt/core.h>

#include <vector>

#include "baton/error.hpp"
#include "baton/schedule/passes.hpp"
#include "buffered_order.hpp"
#include "findings.hpp"
#include "fused_groups.hpp"
#include "hazards.hpp"
#include "order.hpp"
#include "program.hpp"
#include "promise.hpp"
#include "values.hpp"
#include "verifier.hpp"

namespace baton::proving {

struct Verifier::Workspace {
  Findings findings;
  Program program;
  Hazards hazards;
  Order order;
  BufferedOrder buffered;
  FusedGroups fused;
  Values values;
  Knowledge knowledge;
  std::int64_t rounds = 0, depth = 0;

  enum class Run : std::uint8_t { steps, buffered, fused };

  /// Each question assumes that earlier ones found no flaw: a finding is a cause, never a
  /// consequence of another.
  void prove(std::span<const Schedule> schedules, std::span<const Problem> problems,
             Run run = Run::steps, int slots = 0) {
    using By = Program::By;
    findings.reset(static_cast<int>(schedules.size()));
    rounds = depth = -1;
    program.load(schedules, problems, findings);
    if (findings.any(Flaw::bounds)) return;
    const bool matched = program.match(run == Run::fused ? By::order : By::lane, findings);
    hazards.find(program, findings);
    if (!matched) return;
    if (run == Run::fused) {
      if (!fused.sort(program, findings)) return;
      rounds = fused.rounds();
      check_values(problems, fused.sequence());
    } else if (run == Run::buffered) {
      if (!buffered.sort(program, slots, findings)) return;
      rounds = buffered.rounds();
      check_values(problems, buffered.sequence());
    } else {
      if (!order.sort(program, findings)) return;
      rounds = order.rounds();
      depth = order.depth();
      check_values(problems, order.sequence());
    }
  }

  void check_values(std::span<const Problem> problems, std::span<const std::uint32_t> sequence) {
    if (findings.any(Flaw::hazard)) return;  // values would depend on timing
    if (problems[0].collective == Collective::program) return;
    const Promise promise(program, problems);
    values.check(program, promise, sequence, findings);
    if (problems[0].collective == Collective::barrier) {
      knowledge.check(program, sequence, findings);
    }
  }
  Proof proof() { return {findings.take(), rounds, program.messages()}; }

  enum class Compare : std::uint8_t { all, elements };
  void check_cost(const Algorithm& algorithm, std::span<const Schedule> schedules,
                  std::span<const Problem> problems, Compare compared);
};

Verifier::Verifier() : workspace_(std::make_unique<Workspace>()) {}
Verifier::Verifier(Verifier&&) noexcept = default;
Verifier& Verifier::operator=(Verifier&&) noexcept = default;
Verifier::~Verifier() = default;

namespace {

/// Whether the counts are large enough that no message of the algorithm can be empty.
bool no_message_is_empty(const Problem& p) {
  if (p.uneven()) {
    for (int i = 0; i < p.size; ++i) {
      if (p.block_count(i) < p.blocks) return false;
    }
    return true;
  }
  const bool cut = p.collective == Collective::broadcast || p.collective == Collective::reduce ||
                   p.collective == Collective::all_reduce || p.collective == Collective::scan ||
                   p.collective == Collective::exscan;
  return p.collective == Collective::barrier ||
         p.count >= std::max<std::int64_t>(cut ? p.size : 1, p.blocks);
}

std::int64_t folded(const Schedule& schedule) {
  std::int64_t elements = 0;
  for (const Step& step : schedule.steps()) {
    if (step.kind == StepKind::fold) elements += schedule.length(step);
  }
  return elements;
}

}  // namespace

void Verifier::Workspace::check_cost(const Algorithm& algorithm,
                                     std::span<const Schedule> schedules,
                                     std::span<const Problem> problems, Compare compared) {
  bool all_messages = true;
  for (const Problem& p : problems) all_messages = all_messages && no_message_is_empty(p);
  std::int64_t first_rounds = 0;
  for (std::size_t r = 0; r < schedules.size(); ++r) {
    const int rank = static_cast<int>(r);
    const Schedule& schedule = schedules[r];
    const Cost cost = algorithm.cost(problems[r]);
    const auto compare = [&](std::string_view what, std::int64_t expected, std::int64_t found) {
      if (expected == found) return;
      findings.add(Flaw::bytes, rank, -1, [&] {
        return fmt::format("expected rank {} to {} {} elements by the formula of {}, found {}",
                           rank, what, expected, algorithm.name, found);
      });
    };
    compare("send", cost.sent, schedule.sent());
    compare("receive", cost.received, schedule.received());
    compare("need scratch of", cost.scratch, schedule.header().scratch);
    compare("fold", cost.folded, folded(schedule));

    if (r == 0) first_rounds = cost.rounds;
    if (cost.rounds != first_rounds) {
      findings.add(Flaw::rounds, rank, -1, [&] {
        return fmt::format(
            "expected the formula of {} to give all ranks the same rounds, found {} on "
            "rank 0 and {} on rank {}",
            algorithm.name, first_rounds, cost.rounds, rank);
      });
    }
  }
  if (compared == Compare::elements || findings.any(Flaw::unmatched) ||
      findings.any(Flaw::deadlock)) {
    return;
  }
  if (rounds < 0) {
    findings.add(Flaw::rounds, 0, -1, [&] {
      return fmt::format(
          "expected {} rounds by the formula of {}, found an order that one port per rank "
          "cannot keep",
          first_rounds, algorithm.name);
    });
    return;
  }
  const auto compare = [&](std::string_view what, std::int64_t expected, std::int64_t found,
                           bool exactly) {
    if (exactly ? found == expected : found <= expected) return;
    findings.add(Flaw::rounds, 0, -1, [&] {
      return fmt::format("expected {}{} {} by the formula of {}, found {}",
                         exactly ? "" : "at most ", expected, what, algorithm.name, found);
    });
  };
  compare("rounds", first_rounds, rounds, all_messages);
  const std::int64_t first_depth = algorithm.cost(problems[0]).depth;
  compare("messages on the longest path", first_depth > 0 ? first_depth : first_rounds, depth,
          all_messages && first_depth > 0 && !algorithm.hierarchical);
}

Proof Verifier::verify(std::span<const Schedule> schedules, std::span<const Problem> problems,
                       const VerifyOptions& options) {
  if (options.buffered < 0) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("expected at least 0 buffered messages, found {}", options.buffered));
  }
  using Run = Workspace::Run;
  workspace_->prove(schedules, problems, options.buffered > 0 ? Run::buffered : Run::steps,
                    options.buffered);
  return workspace_->proof();
}

Proof Verifier::verify(const Algorithm& algorithm, std::span<const Schedule> schedules,
                       std::span<const Problem> problems, bool segmented) {
  using Compare = Workspace::Compare;
  workspace_->prove(schedules, problems);
  if (!workspace_->findings.any(Flaw::bounds)) {
    workspace_->check_cost(algorithm, schedules, problems,
                           segmented ? Compare::elements : Compare::all);
  }
  return workspace_->proof();
}

Proof Verifier::verify_fused(std::span<const Schedule> schedules,
                             std::span<const Problem> problems) {
  workspace_->prove(schedules, problems, Workspace::Run::fused);
  return workspace_->proof();
}

Proof Verifier::verify_fused(const Algorithm& algorithm, std::span<const Schedule> schedules,
                             std::span<const Problem> problems) {
  workspace_->prove(schedules, problems, Workspace::Run::fused);
  if (!workspace_->findings.any(Flaw::bounds)) {
    workspace_->check_cost(algorithm, schedules, problems, Workspace::Compare::elements);
  }
  return workspace_->proof();
}

Proof Verifier::verify(const Algorithm& algorithm, std::span<const Problem> problems,
                       std::int64_t segment) {
  std::vector<Schedule> schedules;
  schedules.reserve(problems.size());
  for (const Problem& problem : problems) {
    if (const std::string why = refusal(algorithm, problem); !why.empty()) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} {} {}", name(algorithm.collective), algorithm.name, why));
    }
    schedules.push_back(algorithm.generate(problem));
    if (segment > 0) schedules.back() = baton::segmented(schedules.back(), segment);
  }
  return verify(algorithm, schedules, problems, segment > 0);
}

}  // namespace baton::proving

namespace baton {

Proof verify(std::span<const Schedule> schedules, std::span<const Problem> problems,
             const VerifyOptions& options) {
  return proving::Verifier().verify(schedules, problems, options);
}

Proof verify_fused(std::span<const Schedule> schedules, std::span<const Problem> problems) {
  return proving::Verifier().verify_fused(schedules, problems);
}

Proof verify(const Algorithm& algorithm, std::span<const Problem> problems, std::int64_t segment) {
  return proving::Verifier().verify(algorithm, problems, segment);
}

std::string_view name(Flaw flaw) {
  switch (flaw) {
    case Flaw::unmatched:
      return "unmatched";
    case Flaw::deadlock:
      return "deadlock";
    case Flaw::hazard:
      return "hazard";
    case Flaw::bounds:
      return "bounds";
    case Flaw::undefined:
      return "undefined";
    case Flaw::contribution:
      return "contribution";
    case Flaw::order:
      return "order";
    case Flaw::clobbered:
      return "clobbered";
    case Flaw::bytes:
      return "bytes";
    case Flaw::rounds:
      return "rounds";
    case Flaw::disagree:
      return "disagree";
    case Flaw::fused_group:
      return "fused_group";
  }
  return "?";
}

}  // namespace baton
