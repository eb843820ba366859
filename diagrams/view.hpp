#pragma once
/// The part of a timeline that a picture shows: some ranks as rows, and a stretch of time.

#include <cstdint>
#include <string_view>
#include <vector>

#include "diagrams.hpp"
#include "palette.hpp"

namespace baton::diagrams {

/// A stretch of time, ns.
struct Span {
  std::int64_t from = 0, to = 0;
};

struct View {
  /// Throws Error(invalid_argument) where ranks are not the timeline's, or times, unless it
  /// `may_be_empty`.
  View(const Timeline& timeline, const Options& options, bool may_be_empty = false);

  const Timeline& timeline;
  std::vector<int> ranks;              ///< of each row
  std::vector<int> row_of;             ///< of each rank; -1: not shown
  std::int64_t from = 0, to = 0;       ///< ns
  std::vector<TimedMessage> messages;  ///< that run between shown ranks in the time shown
  std::size_t hidden = 0;              ///< messages that are not shown
  std::vector<std::vector<std::uint32_t>> events;  ///< of each row, in the time shown
  std::vector<std::uint32_t> critical;             ///< the critical path, if it is wanted
  int origins = 1;                                 ///< 1 + the largest by which to colour

  int rows() const { return static_cast<int>(ranks.size()); }
  const Event& event(std::uint32_t e) const { return timeline.events[e]; }
  bool shows(std::int64_t first, std::int64_t last) const { return last >= from && first <= to; }
  /// When a row's rank has messages outstanding and is not at work.
  std::vector<Span> waiting(int row) const;
};

/// Of a computation, and of a message that carries its result, that of its class; otherwise by
/// where the data comes from.
Colour colour_of(const Timeline& timeline, const Event& event, const Palette& palette);
/// "forward", "backward by input" and so on, for legends.
std::string_view legend_of(ComputationKind kind);
/// The classes of computations that the timeline has, in the order of the enumeration.
std::vector<ComputationKind> classes_of(const Timeline& timeline);

/// The events of the timeline that are compared with events of its prediction; none without one.
std::vector<JoinedStep> joined_with_prediction(const Timeline& timeline, const Options& options);

/// When an event keeps its rank at work.
Span work_of(const Event& event);

}  // namespace baton::diagrams
