#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <vector>

#include "svg_panel.hpp"
#include "text.hpp"

namespace baton::diagrams {
namespace {

/// Width of text in the labels' font, about.
double text_width(std::string_view text) { return 6.1 * static_cast<double>(text.size()) + 8; }

struct Line {
  double x0, y0, x1, y1;
};

struct Box {
  double left, top, right, bottom;
  bool meets(const Line& line) const {
    if (std::max(line.x0, line.x1) < left || std::min(line.x0, line.x1) > right ||
        std::max(line.y0, line.y1) < top || std::min(line.y0, line.y1) > bottom) {
      return false;
    }
    // Its corners do not all lie on one side of the line.
    const auto side = [&](double x, double y) {
      return (line.x1 - line.x0) * (y - line.y0) - (line.y1 - line.y0) * (x - line.x0) > 0;
    };
    const int above = side(left, top) + side(right, top) + side(left, bottom) + side(right, bottom);
    return above != 0 && above != 4;
  }
  bool meets(const Box& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
};

/// Boxes that must not overlap, found by the cell of a grid.
class Placed {
 public:
  bool free(const Box& box) const {
    bool none = true;
    for_each_cell(box, [&](std::pair<int, int> cell) {
      const auto boxes = cells_.find(cell);
      if (boxes == cells_.end()) return;
      for (const Box& other : boxes->second) none = none && !box.meets(other);
    });
    return none;
  }
  void add(const Box& box) {
    for_each_cell(box, [&](std::pair<int, int> cell) { cells_[cell].push_back(box); });
  }

 private:
  template <class Visit>
  static void for_each_cell(const Box& box, const Visit& visit) {
    constexpr double cell = 64;
    for (int x = static_cast<int>(box.left / cell); x <= static_cast<int>(box.right / cell); ++x) {
      for (int y = static_cast<int>(box.top / cell); y <= static_cast<int>(box.bottom / cell);
           ++y) {
        visit({x, y});
      }
    }
  }
  std::map<std::pair<int, int>, std::vector<Box>> cells_;
};

class Labels {
 public:
  Labels(const View& view, const Frame& frame, const Palette& palette)
      : view_(view), frame_(frame), palette_(palette) {}

  /// A label where there is room for it, on its own arrow and as few others as can be, near the
  /// middle.
  std::string draw() {
    std::vector<Line> lines;
    for (const TimedMessage& message : view_.messages) {
      const Event& send = view_.event(message.send);
      const Event& recv = view_.event(message.recv);
      lines.push_back({x(send.posted), frame_.y(row(send.rank)), x(recv.end),
                       frame_.edge(row(send.rank), row(recv.rank))});
    }
    Placed placed;
    const double high = frame_.pitch < 36 ? 12 : 15;
    std::string out = "<g class=\"labels\">\n";
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const Event& send = view_.event(view_.messages[i].send);
      const Event& recv = view_.event(view_.messages[i].recv);
      const std::string text = chunk_text(view_.timeline, send);
      if (text.empty() || recv.end <= view_.from || send.posted >= view_.to) continue;
      const double wide = text_width(text);
      const Line& line = lines[i];
      std::optional<Box> best;
      std::ptrdiff_t least = 0;
      for (const double t : {0.5, 0.42, 0.58, 0.34, 0.66, 0.27, 0.73, 0.2, 0.8}) {
        const double cx = line.x0 + t * (line.x1 - line.x0), cy = line.y0 + t * (line.y1 - line.y0);
        const Box box{cx - wide / 2, cy - high / 2, cx + wide / 2, cy + high / 2};
        if (on_lane(box) || box.left < frame_.left || box.right > frame_.right ||
            !placed.free(box)) {
          continue;
        }
        const auto covered = std::count_if(lines.begin(), lines.end(),
                                           [&](const Line& other) { return box.meets(other); });
        if (!best || covered < least) {
          best = box;
          least = covered;
        }
        if (least <= 1) break;  // its own
      }
      if (!best) continue;
      placed.add(*best);
      const Colour its = colour_of(view_.timeline, send, palette_);
      fmt::format_to(
          std::back_inserter(out),
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.0f}\" rx=\"{:.1f}\" "
          "stroke=\"{}\"/><text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"{}\">{}</text>\n",
          best->left, best->top, wide, high, high / 2, its.hex(), (best->left + best->right) / 2,
          (best->top + best->bottom) / 2 + 3.7, its.towards(black, 0.45).hex(), escaped(text));
    }
    return out + "</g>\n";
  }

 private:
  double x(std::int64_t ns) const { return std::clamp(frame_.x(ns), frame_.left, frame_.right); }
  int row(int rank) const { return view_.row_of[static_cast<std::size_t>(rank)]; }

  /// Bars are not to be covered.
  bool on_lane(const Box& box) const {
    const int row = static_cast<int>((0.5 * (box.top + box.bottom) - frame_.top) / frame_.pitch);
    for (int r = std::max(row - 1, 0); r <= std::min(row + 1, view_.rows() - 1); ++r) {
      const double middle = frame_.y(r);
      if (box.top < middle + frame_.bar / 2 && middle - frame_.bar / 2 < box.bottom) return true;
    }
    return false;
  }

  const View& view_;
  const Frame& frame_;
  const Palette& palette_;
};

}  // namespace

std::string labels_svg(const View& view, const Frame& frame, const Palette& palette) {
  return Labels(view, frame, palette).draw();
}

}  // namespace baton::diagrams
