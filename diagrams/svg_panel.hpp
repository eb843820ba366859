#pragma once
/// Parts of an SVG: a panel of rows and arrows, a heat map, and what stands around them.

#include <map>
#include <string>

#include "palette.hpp"
#include "view.hpp"

namespace baton::diagrams {

/// Where a panel lies, in pixels, and what its width stands for.
struct Frame {
  double left = 0, right = 0, top = 0;
  double pitch = 0;  ///< from row to row
  double bar = 0;    ///< height of a bar
  std::int64_t from = 0, to = 1;

  double x(std::int64_t ns) const {
    return left + (right - left) * static_cast<double>(ns - from) / static_cast<double>(to - from);
  }
  /// The middle of a row.
  double y(int row) const { return top + (row + 0.5) * pitch; }
  double bottom(int rows) const { return top + rows * pitch; }
  /// Where an arrow ends: at the nearer side of the receiver's bar.
  double edge(int from, int to) const { return y(to) + (to > from ? -bar / 2 : bar / 2); }
};

/// By event: how much later it ended than predicted, ns.
using Differences = std::map<std::uint32_t, std::int64_t>;

/// Bands of hosts, names of ranks, and lines or bands of time, behind everything else.
std::string background_svg(const View& view, const Frame& frame);
/// The axis below a panel.
std::string axis_svg(const View& view, const Frame& frame, double y);
/// Bars, arrows and their labels.
std::string panel_svg(const View& view, const Frame& frame, const Palette& palette,
                      const Differences& differences);
/// The labels of arrows, as many as there is room for; none on another, none on a bar.
std::string labels_svg(const View& view, const Frame& frame, const Palette& palette);
/// A row per rank, or per few ranks, coloured by the share of time at work, or by messages under
/// way where nobody works; above it a curve of bytes under way. Its rows are `frame.pitch` high.
std::string heat_svg(const View& view, const Frame& frame, int rows);
/// The row of a heat map that shows rank `shown` of `ranks` shown ones.
inline int heat_row_of(int shown, int ranks, int rows) {
  return static_cast<int>(std::int64_t{shown} * rows / ranks);
}
/// The first of the shown ranks that are in a row of a heat map.
inline int first_of_heat_row(int row, int ranks, int rows) {
  return static_cast<int>((std::int64_t{row} * ranks + rows - 1) / rows);
}
/// The legend of a heat map's colours.
std::string heat_legend_svg(const View& view, double x, double y);

/// Round numbers of time, ns, about `wanted` of them.
std::int64_t tick_step(std::int64_t duration, int wanted);

}  // namespace baton::diagrams
