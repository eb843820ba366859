#include "sweep.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <utility>

#include "baton/schedule/passes.hpp"
#include "verifier.hpp"

namespace baton::proving {
namespace {

/// Passes applied to generated schedules.
struct Passes {
  std::int64_t segment = 0;
  int window = -1;  // for fused groups; -1: not fused
};

std::string describe(const Algorithm& algorithm, const Problem& p, const Passes& passes) {
  std::string text = fmt::format("{} {}, {} ranks, ", name(p.collective), algorithm.name, p.size);
  if (p.uneven()) {
    const Blocks& blocks = p.input_blocks ? *p.input_blocks : *p.output_blocks;
    text += fmt::format("uneven counts {} …", blocks.counts[0]);
    if (blocks.extent() != blocks.total()) text += " with gaps";
  } else {
    text += fmt::format("count {}", p.count);
  }
  if (rooted(p.collective)) text += fmt::format(", root {}", p.root);
  if (p.blocks > 1) text += fmt::format(", {} blocks", p.blocks);
  if (p.input_rows > 1 || p.output_rows > 1) {
    text += fmt::format(", {} rows to {}", p.input_rows, p.output_rows);
  }
  if (p.hosts) text += ", hosts " + print(*p.hosts);
  if (p.in_place) text += ", in place";
  if (!p.commutative) text += ", in rank order";
  if (p.average) text += ", average";
  if (passes.segment > 0) text += fmt::format(", segment {}", passes.segment);
  if (passes.window >= 0) text += fmt::format(", in fused groups, window {}", passes.window);
  return text;
}

std::int64_t longest_message(std::span<const Schedule> schedules) {
  std::int64_t longest = 0;
  for (const Schedule& schedule : schedules) {
    for (const Step& step : schedule.steps()) {
      if (step.kind == StepKind::send) longest = std::max(longest, schedule.length(step));
    }
  }
  return longest;
}

/// One algorithm's sweep.
class Sweep {
 public:
  Sweep(const Algorithm& algorithm, Form form) : algorithm_(algorithm), form_(form) {}

  void prove(std::span<const Problem> problems) {
    passes_ = {};
    try {
      schedules_.clear();
      for (const Problem& problem : problems) schedules_.push_back(algorithm_.generate(problem));
      prove(problems, schedules_);
      const std::int64_t longest = longest_message(schedules_);
      if (longest < 2) return;
      const std::int64_t halves = (longest + 1) / 2, thirds = (longest + 2) / 3;
      cut(problems, halves);
      if (thirds < halves) cut(problems, thirds);
    } catch (const std::exception& error) {
      result_.findings.push_back(
          {describe(algorithm_, problems[0], passes_), "error", -1, -1, error.what()});
    }
  }
  SweepResult result() { return std::move(result_); }

 private:
  void cut(std::span<const Problem> problems, std::int64_t segment) {
    passes_ = {segment};
    cut_.clear();
    for (const Schedule& schedule : schedules_) cut_.push_back(segmented(schedule, segment));
    prove(problems, cut_);
  }
  void prove(std::span<const Problem> problems, std::span<const Schedule> schedules) {
    if (form_ == Form::plain) {
      record(problems, schedules,
             verifier_.verify(algorithm_, schedules, problems, passes_.segment > 0));
      return;
    }
    for (const int window : {0, 1}) {
      passes_.window = window;
      const std::vector<Schedule> cut = fused(schedules, window);
      record(problems, cut, verifier_.verify_fused(algorithm_, cut, problems));
    }
  }
  void record(std::span<const Problem> problems, std::span<const Schedule> schedules, Proof proof) {
    ++result_.proofs;
    result_.messages += proof.messages;
    for (const Schedule& schedule : schedules) {
      result_.steps += static_cast<std::int64_t>(schedule.steps().size());
    }
    for (Finding& finding : proof.findings) {
      result_.findings.push_back({describe(algorithm_, problems[0], passes_),
                                  std::string(name(finding.flaw)), finding.rank, finding.step,
                                  std::move(finding.sentence)});
    }
  }

  const Algorithm& algorithm_;
  Form form_;
  Passes passes_;  // applied to the schedules being proved
  Verifier verifier_;
  std::vector<Schedule> schedules_, cut_;
  SweepResult result_;
};

}  // namespace

SweepResult& SweepResult::operator+=(SweepResult other) {
  proofs += other.proofs;
  steps += other.steps;
  messages += other.messages;
  std::move(other.findings.begin(), other.findings.end(), std::back_inserter(findings));
  return *this;
}

SweepResult sweep(const Algorithm& algorithm, int size, Form form) {
  Sweep sweep(algorithm, form);
  for (const std::vector<Problem>& problems : sweep_problems(algorithm, size))
    sweep.prove(problems);
  return sweep.result();
}

}  // namespace baton::proving
