#include "view.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "baton/error.hpp"
#include "text.hpp"

namespace baton::diagrams {

Span work_of(const Event& event) {
  return event.message() ? Span{event.posted, event.start} : Span{event.start, event.end};
}

Colour colour_of(const Timeline& timeline, const Event& event, const Palette& palette) {
  if (event.chunk >= timeline.chunks.size()) return palette[0];
  const ChunkName& chunk = timeline.chunks[event.chunk];
  return chunk.computation ? colour_of(*chunk.computation) : palette[chunk.origin];
}

std::string_view legend_of(ComputationKind kind) {
  switch (kind) {
    case ComputationKind::backward_input:
      return "backward by input";
    case ComputationKind::backward_weight:
      return "backward by weights";
    case ComputationKind::other:
      return "other work";
    default:
      return name(kind);
  }
}

std::vector<ComputationKind> classes_of(const Timeline& timeline) {
  std::vector<ComputationKind> classes;
  for (int k = 0; k < computation_kind_count; ++k) {
    const auto kind = static_cast<ComputationKind>(k);
    const auto its = [&](const ChunkName& chunk) { return chunk.computation == kind; };
    if (std::ranges::any_of(timeline.chunks, its)) classes.push_back(kind);
  }
  return classes;
}

View::View(const Timeline& shown, const Options& options, bool may_be_empty) : timeline(shown) {
  const auto size = static_cast<std::size_t>(timeline.ranks);
  row_of.assign(size, -1);
  ranks = options.ranks;
  if (ranks.empty()) {
    for (int r = 0; r < timeline.ranks; ++r) ranks.push_back(r);
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  for (std::size_t row = 0; row < ranks.size(); ++row) {
    if (ranks[row] < 0 || ranks[row] >= timeline.ranks) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("expected ranks from 0 to {} to show, found {}", timeline.ranks - 1,
                              ranks[row]));
    }
    row_of[static_cast<std::size_t>(ranks[row])] = static_cast<int>(row);
  }
  std::int64_t end = 1;
  for (const Event& event : timeline.events) end = std::max(end, event.end);
  if (timeline.kind == TimelineKind::rounds) end = (end + 999) / 1000 * 1000;
  from = std::max<std::int64_t>(options.from, 0);
  to = std::min(options.to, end);
  if (may_be_empty) to = std::max(from, to);
  if (from >= to && !may_be_empty) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("expected a stretch of time within 0 to {}, found {} to {}",
                            time_text(end), time_text(from), time_text(to)));
  }
  events.resize(ranks.size());
  for (std::uint32_t e = 0; e < timeline.events.size(); ++e) {
    const Event& its = event(e);
    const int row = row_of[static_cast<std::size_t>(its.rank)];
    if (row >= 0 && shows(its.posted, its.end)) events[static_cast<std::size_t>(row)].push_back(e);
  }
  for (const TimedMessage& message : messages_of(timeline)) {
    const Event& send = event(message.send);
    const Event& recv = event(message.recv);
    const bool both = row_of[static_cast<std::size_t>(send.rank)] >= 0 &&
                      row_of[static_cast<std::size_t>(recv.rank)] >= 0;
    if (both && shows(std::min(send.posted, recv.end), std::max(send.posted, recv.end))) {
      messages.push_back(message);
    } else {
      ++hidden;
    }
  }
  for (const ChunkName& chunk : timeline.chunks) origins = std::max(origins, chunk.origin + 1);
  if (options.critical_path) critical = critical_path(timeline);
}

std::vector<Span> View::waiting(int row) const {
  std::vector<Span> outstanding, work, waiting;
  for (const std::uint32_t e : events[static_cast<std::size_t>(row)]) {
    const Event& its = event(e);
    if (its.message() && its.end > its.start) outstanding.push_back({its.start, its.end});
    if (const Span at = work_of(its); at.to > at.from) work.push_back(at);
  }
  const auto earlier = [](const Span& a, const Span& b) { return a.from < b.from; };
  std::sort(outstanding.begin(), outstanding.end(), earlier);
  std::sort(work.begin(), work.end(), earlier);
  std::vector<Span> merged;
  for (const Span& span : outstanding) {
    if (!merged.empty() && span.from <= merged.back().to) {
      merged.back().to = std::max(merged.back().to, span.to);
    } else {
      merged.push_back(span);
    }
  }
  auto next = work.begin();
  for (const Span& span : merged) {
    std::int64_t at = span.from;
    while (next != work.end() && next->to <= at) ++next;
    for (auto during = next; during != work.end() && during->from < span.to; ++during) {
      if (during->from > at) waiting.push_back({at, during->from});
      at = std::max(at, during->to);
    }
    if (at < span.to) waiting.push_back({at, span.to});
  }
  return waiting;
}

std::vector<JoinedStep> joined_with_prediction(const Timeline& timeline, const Options& options) {
  if (!options.prediction) return {};
  return options.joined ? *options.joined : joined(timeline, 0, *options.prediction, 0);
}

}  // namespace baton::diagrams
