#include "baton/schedule/step.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "baton/error.hpp"
#include "infer.hpp"
#include "slots.hpp"

namespace baton {
namespace {

[[noreturn]] void refuse(const Schedule::Header& header, std::size_t step, const std::string& why) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("schedule of rank {}, step {}: {}", header.rank, step, why));
}

/// Whether a region that is well-formed ends there; no sum overflows.
bool within_limits(const Region& region) {
  const std::int64_t before_last = scheduling::most_elements - region.block;
  return region.block <= scheduling::most_elements && region.offset <= before_last &&
         (region.count == 1 || region.count - 1 <= (before_last - region.offset) / region.stride);
}

void check_step(const Schedule& schedule, std::size_t i) {
  const Step& step = schedule.steps()[i];
  const Schedule::Header& header = schedule.header();
  std::size_t last = step.first;
  for (int k = 0; k < 3; ++k) {
    const bool optional = step.kind == StepKind::compute && k < operands(step.kind);
    if (!optional && (step.parts[k] > 0) != (k < operands(step.kind))) {
      refuse(header, i,
             fmt::format("expected {} operands of a {}, found operand {} {}", operands(step.kind),
                         name(step.kind), k, step.parts[k] > 0 ? "present" : "missing"));
    }
    last += step.parts[k];
  }
  if (last > schedule.regions().size()) refuse(header, i, "its operands lie beyond the regions");
  for (int k = 0; k < operands(step.kind); ++k) {
    std::int64_t length = 0;
    for (const Region& region : schedule.operand(step, k)) {
      if (region.buffer == Buffer::work || region.block <= 0 || region.count <= 0 ||
          region.offset < 0 ||
          (region.count == 1 ? region.stride != 0 : region.stride < region.block)) {
        refuse(header, i, fmt::format("operand {} has a region that is empty or malformed", k));
      }
      if (!within_limits(region) || (length += region.length()) > scheduling::most_elements)
        refuse(
            header, i,
            fmt::format("expected operands of the first {} elements of a buffer, found one beyond",
                        scheduling::most_elements));
      if (step.kind == StepKind::compute && region.buffer == Buffer::slot)
        refuse(header, i, "expected a computation that touches no slot, found one that does");
    }
    if (step.kind == StepKind::compute) continue;
    if (schedule.length(step, k) != schedule.length(step, 0)) {
      refuse(header, i,
             fmt::format("expected operands of equal length, found {} and {} elements",
                         schedule.length(step, 0), schedule.length(step, k)));
    }
  }
  if (step.message() && (step.peer < 0 || step.peer >= header.size || step.peer == header.rank)) {
    refuse(header, i,
           fmt::format("expected a peer other than {} below {}, found {}", header.rank, header.size,
                       step.peer));
  }
}

void check_computations(const Schedule::Header& header, std::span<const Step> steps,
                        std::span<const Computation> computations) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].kind != StepKind::compute) continue;
    const auto place = static_cast<std::size_t>(steps[i].peer);
    if (steps[i].peer < 0 || place >= computations.size()) {
      refuse(header, i,
             fmt::format("expected one of {} computations, found number {}", computations.size(),
                         steps[i].peer));
    }
    if (computations[place].ns < 0 || computations[place].ns > scheduling::most_ns) {
      refuse(header, i,
             fmt::format("expected a computation of 0 to {} ns, found {}", scheduling::most_ns,
                         computations[place].ns));
    }
  }
}

/// Each computation that is used once, in the order of their first steps, so that schedules that
/// do the same are equal.
void list_once(std::vector<Step>& steps, std::vector<Computation>& computations) {
  if (computations.empty()) return;
  std::map<std::tuple<std::string, ComputationKind, std::int64_t, bool>, std::int32_t> known;
  std::vector<std::int32_t> place(computations.size(), -1);
  std::vector<Computation> listed;
  for (Step& step : steps) {
    if (step.kind != StepKind::compute) continue;
    const auto old = static_cast<std::size_t>(step.peer);
    if (place[old] < 0) {
      const Computation& its = computations[old];
      const auto [found, added] =
          known.try_emplace(std::tuple(its.name, its.kind, its.ns, its.advances),
                            static_cast<std::int32_t>(listed.size()));
      if (added) listed.push_back(its);
      place[old] = found->second;
    }
    step.peer = place[old];
  }
  computations = std::move(listed);
}

void check_header(const Schedule::Header& h) {
  if (h.size < 1 || h.rank < 0 || h.rank >= h.size || h.root < 0 || h.root >= h.size) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("expected a schedule whose rank and root lie below its size, found rank {}, "
                    "root {}, size {}",
                    h.rank, h.root, h.size));
  }
  for (const std::int64_t elements : {h.input, h.output, h.scratch, h.slots}) {
    if (elements < 0) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("expected buffers of 0 elements or more, found {}", elements));
    }
  }
}

}  // namespace

std::string_view name(StepKind kind) {
  switch (kind) {
    case StepKind::send:
      return "send";
    case StepKind::recv:
      return "recv";
    case StepKind::fold:
      return "fold";
    case StepKind::copy:
      return "copy";
    case StepKind::divide:
      return "divide";
    case StepKind::compute:
      return "compute";
  }
  return "?";
}

int operands(StepKind kind) {
  switch (kind) {
    case StepKind::fold:
      return 3;
    case StepKind::copy:
    case StepKind::compute:
      return 2;
    default:
      return 1;
  }
}

Schedule::Schedule(Header header, std::vector<Step> steps, std::vector<Region> regions,
                   Dependencies dependencies, std::vector<Computation> computations,
                   std::int64_t assumed_overlaps)
    : header_(std::move(header)),
      steps_(std::move(steps)),
      regions_(std::move(regions)),
      dependencies_(std::move(dependencies)),
      computations_(std::move(computations)),
      assumed_(assumed_overlaps) {
  check_header(header_);
  check_computations(header_, steps_, computations_);
  list_once(steps_, computations_);
  if (dependencies_.size() != steps_.size()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("expected dependencies of {} steps, found those of {}", steps_.size(),
                            dependencies_.size()));
  }
  std::optional<std::size_t> computation;  // the last one
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    check_step(*this, i);
    const auto waits_for = dependencies_.of(i);
    for (const std::uint32_t d : waits_for) {
      if (d >= i)
        refuse(header_, i, fmt::format("expected to wait for earlier steps, found {}", d));
    }
    if (steps_[i].kind != StepKind::compute) continue;
    if (computation && std::ranges::find(waits_for, *computation) == waits_for.end()) {
      refuse(header_, i,
             fmt::format("expected a computation that waits for the one before it, step {}, found "
                         "one that does not",
                         *computation));
    }
    computation = i;
  }
}

Schedule::Schedule(Header header, std::vector<Step> steps, std::vector<Region> regions,
                   std::vector<Computation> computations)
    : header_(std::move(header)),
      steps_(std::move(steps)),
      regions_(std::move(regions)),
      computations_(std::move(computations)) {
  check_header(header_);
  check_computations(header_, steps_, computations_);
  list_once(steps_, computations_);
  for (std::size_t i = 0; i < steps_.size(); ++i) check_step(*this, i);
  dependencies_ = scheduling::infer_dependencies(steps_, regions_, assumed_);
}

std::span<const Region> Schedule::operand(const Step& step, int k) const {
  std::size_t first = step.first;
  for (int i = 0; i < k; ++i) first += step.parts[i];
  return std::span(regions_).subspan(first, step.parts[k]);
}

std::int64_t Schedule::length(const Step& step, int k) const {
  return scheduling::length_of(operand(step, k));
}

int Schedule::lanes() const {
  int lanes = 1;
  for (const Step& step : steps_) lanes = std::max(lanes, step.lane + 1);
  return lanes;
}

int Schedule::rounds() const {
  int rounds = 0;
  for (const Step& step : steps_) rounds = std::max(rounds, step.round + 1);
  return rounds;
}

std::int64_t Schedule::sent() const {
  std::int64_t sent = 0;
  for (const Step& step : steps_) sent += step.kind == StepKind::send ? length(step) : 0;
  return sent;
}

std::int64_t Schedule::received() const {
  std::int64_t received = 0;
  for (const Step& step : steps_) received += step.kind == StepKind::recv ? length(step) : 0;
  return received;
}

std::int64_t Schedule::messages() const {
  return std::count_if(steps_.begin(), steps_.end(),
                       [](const Step& step) { return step.kind == StepKind::send; });
}

std::int64_t Schedule::computed() const {
  std::int64_t ns = 0;
  for (const Step& step : steps_) ns += step.kind == StepKind::compute ? computation(step).ns : 0;
  return ns;
}

}  // namespace baton
