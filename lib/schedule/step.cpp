#include "baton/schedule/step.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "baton/error.hpp"
#include "infer.hpp"
#include "slots.hpp"

namespace baton {
namespace {

[[noreturn]] void refuse(const Schedule::Header& header, std::size_t step, const std::string& why) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("schedule of rank {}, step {}: {}", header.rank, step, why));
}

void check_step(const Schedule& schedule, std::size_t i) {
  const Step& step = schedule.steps()[i];
  const Schedule::Header& header = schedule.header();
  std::size_t last = step.first;
  for (int k = 0; k < 3; ++k) {
    if ((step.parts[k] > 0) != (k < operands(step.kind))) {
      refuse(header, i,
             fmt::format("expected {} operands of a {}, found operand {} {}", operands(step.kind),
                         name(step.kind), k, step.parts[k] > 0 ? "present" : "missing"));
    }
    last += step.parts[k];
  }
  if (last > schedule.regions().size()) refuse(header, i, "its operands lie beyond the regions");
  for (int k = 0; k < operands(step.kind); ++k) {
    for (const Region& region : schedule.operand(step, k)) {
      if (region.buffer == Buffer::work || region.block <= 0 || region.count <= 0 ||
          region.offset < 0 ||
          (region.count == 1 ? region.stride != 0 : region.stride < region.block)) {
        refuse(header, i, fmt::format("operand {} has a region that is empty or malformed", k));
      }
    }
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

void check_header(const Schedule::Header& h) {
  if (h.size < 1 || h.rank < 0 || h.rank >= h.size || h.root < 0 || h.root >= h.size) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("expected a schedule whose rank and root lie below its size, found rank {}, "
                    "root {}, size {}",
                    h.rank, h.root, h.size));
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
  }
  return "?";
}

int operands(StepKind kind) {
  switch (kind) {
    case StepKind::fold:
      return 3;
    case StepKind::copy:
      return 2;
    default:
      return 1;
  }
}

Schedule::Schedule(Header header, std::vector<Step> steps, std::vector<Region> regions,
                   Dependencies dependencies)
    : header_(std::move(header)),
      steps_(std::move(steps)),
      regions_(std::move(regions)),
      dependencies_(std::move(dependencies)) {
  check_header(header_);
  if (dependencies_.size() != steps_.size()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("expected dependencies of {} steps, found those of {}", steps_.size(),
                            dependencies_.size()));
  }
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    check_step(*this, i);
    for (const std::uint32_t d : dependencies_.of(i)) {
      if (d >= i)
        refuse(header_, i, fmt::format("expected to wait for earlier steps, found {}", d));
    }
  }
}

Schedule::Schedule(Header header, std::vector<Step> steps, std::vector<Region> regions)
    : header_(std::move(header)), steps_(std::move(steps)), regions_(std::move(regions)) {
  check_header(header_);
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

}  // namespace baton
