#include "sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <utility>

#include "baton/schedule/passes.hpp"
#include "verifier.hpp"

namespace baton {
namespace {

std::string describe(const Algorithm& algorithm, const Problem& p, std::int64_t segment) {
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
  if (segment > 0) text += fmt::format(", segment {}", segment);
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
  explicit Sweep(const Algorithm& algorithm) : algorithm_(algorithm) {}

  void prove(std::span<const Problem> problems) {
    std::int64_t segment = 0;
    try {
      schedules_.clear();
      for (const Problem& problem : problems) schedules_.push_back(algorithm_.generate(problem));
      record(problems, 0, schedules_);
      const std::int64_t longest = longest_message(schedules_);
      if (longest < 2) return;
      const std::int64_t halves = (longest + 1) / 2, thirds = (longest + 2) / 3;
      cut(problems, segment = halves);
      if (thirds < halves) cut(problems, segment = thirds);
    } catch (const std::exception& error) {
      result_.findings.push_back(
          {describe(algorithm_, problems[0], segment), "error", -1, -1, error.what()});
    }
  }
  SweepResult result() { return std::move(result_); }

 private:
  void cut(std::span<const Problem> problems, std::int64_t segment) {
    cut_.clear();
    for (const Schedule& schedule : schedules_) cut_.push_back(segmented(schedule, segment));
    record(problems, segment, cut_);
  }
  void record(std::span<const Problem> problems, std::int64_t segment,
              std::span<const Schedule> schedules) {
    Proof proof = verifier_.verify(algorithm_, schedules, problems, segment > 0);
    ++result_.proofs;
    result_.messages += proof.messages;
    for (const Schedule& schedule : schedules) {
      result_.steps += static_cast<std::int64_t>(schedule.steps().size());
    }
    for (Finding& finding : proof.findings) {
      result_.findings.push_back({describe(algorithm_, problems[0], segment),
                                  std::string(name(finding.flaw)), finding.rank, finding.step,
                                  std::move(finding.sentence)});
    }
  }

  const Algorithm& algorithm_;
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

SweepResult sweep(const Algorithm& algorithm, int size) {
  Sweep sweep(algorithm);
  for (const std::vector<Problem>& problems : sweep_problems(algorithm, size))
    sweep.prove(problems);
  return sweep.result();
}

}  // namespace baton
