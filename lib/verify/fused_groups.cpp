#include "fused_groups.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "findings.hpp"

namespace baton::proving {

namespace {

/// One past the last message of the fused group that begins with message `begin`.
std::uint32_t end_of_fused_group(const Program& program, std::uint32_t begin) {
  const std::uint32_t last = program.first_step(static_cast<int>(program.step(begin).rank) + 1);
  std::uint32_t s = begin + 1;
  while (s < last && program.step(s).message() && program.round(s) == program.round(begin)) ++s;
  return s;
}

void find_waits_within_fused_groups(const Program& program, int rank, Findings& findings) {
  const std::uint32_t first = program.first_step(rank), last = program.first_step(rank + 1);
  for (std::uint32_t begin = first, end = first; begin < last; begin = end) {
    end = program.step(begin).message() ? end_of_fused_group(program, begin) : begin + 1;
    for (std::uint32_t s = begin; s < end; ++s) {
      for (const std::uint32_t d : program.dependencies(s)) {
        if (first + d < begin) continue;
        findings.add(Flaw::fused_group, rank, program.step_in_rank(s), [&] {
          return fmt::format("{} waits for {}, but both are in fused group {}", program.phrase(s),
                             program.phrase(first + d), program.round(s));
        });
      }
    }
  }
}

}  // namespace

bool FusedGroups::sort(const Program& program, Findings& findings) {
  const auto size = static_cast<std::uint32_t>(program.size());
  ranks_.assign(size, {});
  posted_.assign(program.step_count(), false);
  sequence_.clear();
  ready_.clear();
  for (int r = 0; r < program.size(); ++r) find_waits_within_fused_groups(program, r, findings);
  for (std::uint32_t r = size; r-- > 0;) {
    ranks_[r].end = program.first_step(static_cast<int>(r));
    ready_.push_back(r);
  }
  while (!ready_.empty()) {
    const std::uint32_t rank = ready_.back();
    ready_.pop_back();
    advance(program, rank);
  }
  rounds_ = 0;
  for (const Rank& rank : ranks_) rounds_ = std::max(rounds_, rank.complete);
  const auto stuck = std::ranges::find_if(ranks_, [](const Rank& rank) { return rank.open > 0; });
  if (stuck != ranks_.end()) {
    report_circle(program, static_cast<std::uint32_t>(stuck - ranks_.begin()), findings);
  }
  return stuck == ranks_.end() && !findings.any(Flaw::fused_group);
}

/// Passes the steps before a rank's next fused group, and posts the group.
void FusedGroups::advance(const Program& program, std::uint32_t r) {
  Rank& rank = ranks_[r];
  const std::uint32_t last = program.first_step(static_cast<int>(r) + 1);
  std::uint32_t s = rank.end;
  for (; s < last && !program.step(s).message(); ++s) sequence_.push_back(s);
  rank.begin = s;
  rank.end = s < last ? end_of_fused_group(program, s) : s;
  rank.open = rank.end - rank.begin;
  rank.posted = rank.complete;
  for (std::uint32_t m = rank.begin; m < rank.end; ++m) posted_[m] = true;
  for (std::uint32_t m = rank.begin; m < rank.end; ++m) {
    if (posted_[program.step(m).partner]) complete(program, m);
  }
}

void FusedGroups::complete(const Program& program, std::uint32_t message) {
  const FlatStep& step = program.step(message);
  sequence_.push_back(step.kind == StepKind::send ? message : step.partner);
  const std::uint32_t ends[] = {step.rank, program.step(step.partner).rank};
  const std::int64_t time = 1 + std::max(ranks_[ends[0]].posted, ranks_[ends[1]].posted);
  for (const std::uint32_t r : ends) {
    ranks_[r].complete = std::max(ranks_[r].complete, time);
    if (--ranks_[r].open == 0) ready_.push_back(r);
  }
}

/// A message of the rank's fused group whose other end is not posted.
std::uint32_t FusedGroups::open_message(const Program& program, std::uint32_t rank) const {
  std::uint32_t m = ranks_[rank].begin;
  while (posted_[program.step(m).partner]) ++m;
  return m;
}

/// Each blocked rank waits for a later fused group of another blocked rank, so this path ends in a
/// circle.
void FusedGroups::report_circle(const Program& program, std::uint32_t rank,
                                Findings& findings) const {
  std::vector<std::uint32_t> circle;  // the message that each rank waits for
  std::vector<bool> met(ranks_.size(), false);
  while (!met[rank]) {
    met[rank] = true;
    circle.push_back(open_message(program, rank));
    rank = program.step(program.step(circle.back()).partner).rank;
  }
  circle.erase(circle.begin(), std::ranges::find(circle, open_message(program, rank)));
  findings.add(Flaw::deadlock, static_cast<int>(rank), program.step_in_rank(circle[0]), [&] {
    constexpr std::size_t most = 6;
    const auto phrase = [&](std::uint32_t m) {
      return fmt::format("{} in fused group {}", program.phrase(m), program.round(m));
    };
    std::string text = phrase(circle[0]);
    for (std::size_t i = 0; i < circle.size(); ++i) {
      text +=
          fmt::format(" waits for {}, which comes after ", phrase(program.step(circle[i]).partner));
      if (i + 1 == circle.size()) {
        text += "the first";
      } else if (i + 1 == most) {
        text += fmt::format("… {} more ranks that wait, the last after the first",
                            circle.size() - most);
        break;
      } else {
        text += phrase(circle[i + 1]) + ", which";
      }
    }
    return text;
  });
}

}  // namespace baton::proving
