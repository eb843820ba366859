#include "program.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "baton/error.hpp"
#include "baton/schedule/text.hpp"
#include "findings.hpp"
#include "together.hpp"

namespace baton::proving {
namespace {

constexpr std::int64_t most_elements = std::int64_t{1} << 27;
constexpr int buffers = 4;  // input, output, scratch, slot; in this order in memory

[[noreturn]] void refuse(const std::string& sentence) {
  throw Error(ErrorCode::invalid_argument, sentence);
}

std::int64_t extent(const Schedule::Header& header, Buffer buffer) {
  switch (buffer) {
    case Buffer::input:
      return header.input;
    case Buffer::output:
      return header.output;
    case Buffer::scratch:
      return header.scratch;
    case Buffer::slot:
      return header.slots;
    case Buffer::work:
      break;
  }
  return 0;
}

std::string_view name(Buffer buffer) {
  switch (buffer) {
    case Buffer::input:
      return "input";
    case Buffer::output:
      return "output";
    case Buffer::scratch:
      return "scratch";
    case Buffer::slot:
      return "slots";
    case Buffer::work:
      break;
  }
  return "work";
}

bool inside(const Region& region, std::int64_t extent) {
  if (region.buffer == Buffer::work || region.offset < 0 || region.offset > extent) return false;
  const std::int64_t room = extent - region.offset - region.block;
  if (region.contiguous()) return room >= 0;
  return room >= 0 && region.count - 1 <= room / region.stride;
}

/// Greatest common divisor of all added numbers.
class Divisor {
 public:
  bool one() const { return value_ == 1; }
  void add(std::int64_t x) {
    if (x != value_ && x != 0) value_ = std::gcd(value_, x);
  }
  void add(const Blocks& blocks) {
    for (const std::int64_t x : blocks.counts) add(x);
    for (const std::int64_t x : blocks.offsets) add(x);
  }
  std::int64_t value() const { return std::max<std::int64_t>(value_, 1); }

 private:
  std::int64_t value_ = 0;
};

}  // namespace

std::size_t Program::slot_of(int rank, Buffer buffer) {
  const int index = buffer == Buffer::slot      ? 3
                    : buffer == Buffer::scratch ? 2
                                                : buffer == Buffer::output;
  return static_cast<std::size_t>(rank) * buffers + static_cast<std::size_t>(index);
}

void Program::load(std::span<const Schedule> schedules, std::span<const Problem> problems,
                   Findings& findings) {
  check_together(schedules, problems);
  schedules_ = schedules;
  messages_ = 0;
  folded_ = 0;
  check_bounds(problems, findings);
  if (findings.any(Flaw::bounds)) return;
  find_unit(problems);
  place_buffers();
  flatten();
}

void Program::check_bounds(std::span<const Problem> problems, Findings& findings) const {
  for (int r = 0; r < size(); ++r) {
    const Schedule& schedule = schedules_[static_cast<std::size_t>(r)];
    const Problem& problem = problems[static_cast<std::size_t>(r)];
    const Schedule::Header& header = schedule.header();
    const std::int64_t expected[] = {problem.input_extent(), problem.output_extent()};
    for (const Buffer buffer : {Buffer::input, Buffer::output}) {
      const std::int64_t want = expected[buffer == Buffer::output], found = extent(header, buffer);
      if (want == found) continue;
      findings.add(Flaw::bounds, r, -1, [&] {
        return fmt::format("expected {} of {} elements on rank {}, found {}", name(buffer), want, r,
                           found);
      });
    }
    const bool input_is_result = problem.aliased() && scattering(problem.collective);
    const auto steps = schedule.steps();
    for (std::size_t i = 0; i < steps.size(); ++i) {
      for (int k = 0; k < operands(steps[i].kind); ++k) {
        const bool writes = k == 0 && steps[i].kind != StepKind::send;
        for (const Region& region : schedule.operand(steps[i], k)) {
          if (!inside(region, extent(header, region.buffer))) {
            findings.add(Flaw::bounds, r, static_cast<int>(i), [&] {
              return fmt::format("step {} of rank {} ({}) names {}, but {} ends at {}", i, r,
                                 print(schedule, i), print(region), name(region.buffer),
                                 extent(header, region.buffer));
            });
          }
          if (writes && region.buffer == Buffer::input && !input_is_result) {
            findings.add(Flaw::clobbered, r, static_cast<int>(i), [&] {
              return fmt::format(
                  "step {} of rank {} ({}) writes the input, which is not the output", i, r,
                  print(schedule, i));
            });
          }
        }
      }
    }
  }
}

void Program::find_unit(std::span<const Problem> problems) {
  Divisor divisor;
  for (std::size_t r = 0; r < problems.size() && !divisor.one(); ++r) {
    const Schedule::Header& header = schedules_[r].header();
    for (const std::int64_t x : {header.input, header.output, header.scratch, header.slots}) {
      divisor.add(x);
    }
    const Problem& problem = problems[r];
    divisor.add(problem.count / problem.input_rows);
    divisor.add(problem.count / problem.output_rows);
    if (problem.input_blocks) divisor.add(*problem.input_blocks);
    if (problem.output_blocks) divisor.add(*problem.output_blocks);
  }
  for (const Schedule& schedule : schedules_) {
    for (const Region& region : schedule.regions()) {
      if (divisor.one()) break;
      divisor.add(region.offset);
      divisor.add(region.block);
      if (!region.contiguous()) divisor.add(region.stride);
    }
  }
  unit_ = divisor.value();
}

void Program::place_buffers() {
  place_.clear();
  std::int64_t end = 0;
  std::int64_t steps = 0, regions = 0;
  base_.clear();
  for (const Schedule& schedule : schedules_) {
    base_.push_back(static_cast<std::uint32_t>(steps));
    steps += static_cast<std::int64_t>(schedule.steps().size());
    regions += static_cast<std::int64_t>(schedule.regions().size());
    for (const Buffer buffer : {Buffer::input, Buffer::output, Buffer::scratch, Buffer::slot}) {
      place_.push_back(static_cast<std::uint32_t>(end));
      end += extent(schedule.header(), buffer) / unit_;
      if (end > most_elements) {
        refuse(fmt::format(
            "expected at most {} elements (after division by {}, what all counts have in "
            "common), found more: verify with smaller counts",
            most_elements, unit_));
      }
    }
  }
  if (steps >= none || regions >= none) {
    refuse(fmt::format("expected fewer than {} steps and regions, found {} and {}", none, steps,
                       regions));
  }
  base_.push_back(static_cast<std::uint32_t>(steps));
  place_.push_back(static_cast<std::uint32_t>(end));
}

void Program::flatten() {
  steps_.clear();
  runs_.clear();
  const auto unit = static_cast<std::uint64_t>(unit_);
  const auto scaled = [unit](std::int64_t x) {
    return static_cast<std::uint32_t>(unit == 1 ? static_cast<std::uint64_t>(x)
                                                : static_cast<std::uint64_t>(x) / unit);
  };
  std::uint64_t folded = 0;
  for (std::uint32_t r = 0; r < schedules_.size(); ++r) {
    const Schedule& schedule = schedules_[r];
    const auto regions = schedule.regions();
    for (const Step& step : schedule.steps()) {
      FlatStep flat;
      flat.run = static_cast<std::uint32_t>(runs_.size());
      flat.rank = r;
      flat.kind = step.kind;
      flat.lane = step.lane;
      std::size_t region = step.first;
      for (int k = 0; k < 3; ++k) {
        flat.parts[k] = step.parts[k];
        for (std::uint32_t i = 0; i < step.parts[k]; ++i, ++region) {
          const Region& from = regions[region];
          const Run run{place(static_cast<int>(r), from.buffer) + scaled(from.offset),
                        scaled(from.block), static_cast<std::uint32_t>(from.count),
                        scaled(from.stride)};
          if (k == 0) flat.length += run.block * run.count;
          runs_.push_back(run);
        }
      }
      if (step.kind == StepKind::send) ++messages_;
      if (step.kind == StepKind::fold || step.kind == StepKind::divide) folded += flat.length;
      steps_.push_back(flat);
    }
  }
  runs_.push_back({0, 0, 1, 0});  // a cursor at its end reads one run further
  if (folded > most_elements * 16) {
    refuse(fmt::format(
        "expected at most {} elements to be folded, found {}: verify with smaller counts",
        most_elements * 16, folded));
  }
  folded_ = static_cast<std::uint32_t>(folded);
}

std::string Program::phrase(std::uint32_t s) const {
  const std::uint32_t rank = steps_[s].rank, i = s - base_[rank];
  return fmt::format("step {} of rank {} ({})", i, rank, print(schedules_[rank], i));
}

std::string Program::phrase_element(std::uint32_t e) const {
  const auto after = std::upper_bound(place_.begin(), place_.end() - 1, e);
  const std::size_t index = static_cast<std::size_t>(after - place_.begin()) - 1;
  constexpr std::string_view names[] = {"input", "output", "scratch", "slot"};
  return fmt::format("{}[{}]", names[index % buffers], (e - place_[index]) * unit_);
}

}  // namespace baton::proving
