#pragma once
/// Small random changes to schedules.

#include <algorithm>
#include <array>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "baton/error.hpp"
#include "baton/schedule.hpp"

/// A schedule that can be changed.
struct Draft {
  struct Line {
    baton::Step step;
    std::array<baton::Regions, 3> operands;
  };

  explicit Draft(const baton::Schedule& schedule) : header(schedule.header()) {
    for (const baton::Step& step : schedule.steps()) {
      Line line{step, {}};
      for (int k = 0; k < baton::operands(step.kind); ++k) {
        const auto regions = schedule.operand(step, k);
        line.operands[static_cast<std::size_t>(k)].assign(regions.begin(), regions.end());
      }
      lines.push_back(std::move(line));
    }
  }

  /// The schedule with dependencies inferred. Throws Error where it is none.
  baton::Schedule schedule() const {
    std::vector<baton::Step> steps;
    std::vector<baton::Region> regions;
    for (const auto& [from, operands] : lines) {
      baton::Step step = from;
      step.first = static_cast<std::uint32_t>(regions.size());
      for (std::size_t k = 0; k < 3; ++k) {
        step.parts[k] = static_cast<std::uint32_t>(operands[k].size());
        regions.insert(regions.end(), operands[k].begin(), operands[k].end());
      }
      steps.push_back(step);
    }
    return baton::Schedule(header, std::move(steps), std::move(regions));
  }

  baton::Schedule::Header header;
  std::vector<Line> lines;
};

/// Deletes one of the schedule's dependencies; returns whether there was one.
inline bool delete_dependency(baton::Schedule& schedule, std::mt19937& random) {
  const std::size_t total = schedule.dependencies().list.size();
  if (total == 0) return false;
  const std::size_t victim = random() % total;
  baton::Dependencies fewer;
  std::size_t next = 0;
  for (std::size_t i = 0; i < schedule.steps().size(); ++i) {
    for (const std::uint32_t d : schedule.dependencies(i)) {
      if (next++ != victim) fewer.list.push_back(d);
    }
    fewer.end_step();
  }
  schedule = baton::Schedule(schedule.header(), {schedule.steps().begin(), schedule.steps().end()},
                             {schedule.regions().begin(), schedule.regions().end()}, fewer);
  return true;
}

/// Changes one thing in one rank's schedule (or, for a message, on both sides). Returns what kind
/// of thing; empty if nothing came of it.
inline std::string mutate(std::vector<baton::Schedule>& schedules, std::mt19937& random) {
  using baton::StepKind;
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random()) % n; };
  baton::Schedule& schedule = schedules[below(schedules.size())];
  if (schedule.steps().empty()) return "";
  if (below(4) == 0) return delete_dependency(schedule, random) ? "dependency deleted" : "";

  Draft draft(schedule);
  auto& lines = draft.lines;
  const std::size_t at = below(lines.size()), other = below(lines.size());
  Draft::Line& line = lines[at];
  const auto operand = below(static_cast<std::size_t>(baton::operands(line.step.kind)));
  baton::Region& region = line.operands[operand][below(line.operands[operand].size())];
  std::string mutation;
  constexpr std::array kinds{0, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8, 8, 8, 8, 9, 10, 11, 12, 12};
  switch (kinds[below(kinds.size())]) {
    case 0:
      mutation = "step dropped";
      lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    case 1:
      mutation = "step duplicated";
      lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(std::max(at, other)),
                   Draft::Line(line));
      break;
    case 2:
      mutation = "neighbours swapped";
      if (at + 1 < lines.size()) std::swap(line, lines[at + 1]);
      break;
    case 3:
      mutation = "steps swapped";
      std::swap(line, lines[other]);
      break;
    case 4:
      mutation = "other peer";
      if (!line.step.message()) return "";
      line.step.peer = static_cast<std::int32_t>(below(schedules.size()));
      break;
    case 5:
      mutation = "other offset";
      region.offset += std::array<std::int64_t, 4>{-1, 1, -2, 2}[below(4)];
      break;
    case 6:
      mutation = "other buffer";
      region.buffer = std::array{baton::Buffer::input, baton::Buffer::output,
                                 baton::Buffer::scratch, baton::Buffer::slot}[below(4)];
      break;
    case 7:
      mutation = "fold is a copy";
      if (line.step.kind != StepKind::fold) return "";
      line.step.kind = StepKind::copy;
      line.operands[2].clear();
      break;
    case 8:
      mutation = "left and right exchanged";
      if (line.step.kind != StepKind::fold) return "";
      std::swap(line.operands[1], line.operands[2]);
      break;
    case 9:
      mutation = "send and recv exchanged";
      if (!line.step.message()) return "";
      line.step.kind = line.step.kind == StepKind::send ? StepKind::recv : StepKind::send;
      break;
    case 10:
      mutation = "other lane";
      line.step.lane = static_cast<std::uint8_t>(below(3));
      break;
    case 11:
      mutation = "divide added";
      line.step.kind = StepKind::divide;
      line.step.peer = -1;
      line.operands[1].clear();
      line.operands[2].clear();
      break;
    case 12: {
      mutation = "message dropped on both sides";
      if (line.step.kind != StepKind::send) return "";
      const auto same = [&](const Draft::Line& l, StepKind kind, int peer) {
        return l.step.kind == kind && l.step.peer == peer && l.step.lane == line.step.lane;
      };
      const auto k =
          std::count_if(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(at),
                        [&](const auto& l) { return same(l, StepKind::send, line.step.peer); });
      baton::Schedule& receiver = schedules[static_cast<std::size_t>(line.step.peer)];
      Draft theirs(receiver);
      auto recv = theirs.lines.begin();
      for (auto skipped = k; recv != theirs.lines.end(); ++recv) {
        if (same(*recv, StepKind::recv, schedule.rank()) && skipped-- == 0) break;
      }
      if (recv == theirs.lines.end()) return "";
      theirs.lines.erase(recv);
      lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(at));
      receiver = theirs.schedule();
      break;
    }
  }
  try {
    schedule = draft.schedule();
  } catch (const baton::Error&) {
    return "";  // no schedule at all
  }
  return mutation;
}

/// Gives a message and all that follow it in its fused group another number, so that fused groups
/// are cut or joined. Returns whether there was a message.
inline bool move_fused_group(std::vector<baton::Schedule>& schedules, std::mt19937& random) {
  baton::Schedule& schedule = schedules[random() % schedules.size()];
  Draft draft(schedule);
  if (draft.lines.empty()) return false;
  const std::size_t at = random() % draft.lines.size();
  const int round = draft.lines[at].step.round, other = round + (random() % 2 == 0 ? 1 : -1);
  if (!draft.lines[at].step.message() || other < 0) return false;
  for (std::size_t i = at; i < draft.lines.size() && draft.lines[i].step.round == round; ++i) {
    draft.lines[i].step.round = other;
  }
  schedule = draft.schedule();
  return true;
}
