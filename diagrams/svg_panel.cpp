#include "svg_panel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <optional>
#include <set>

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

class Panel {
 public:
  Panel(const View& view, const Frame& frame, const Palette& palette,
        const Differences& differences)
      : view_(view), frame_(frame), palette_(palette), differences_(differences) {}

  std::string draw() {
    for (int row = 0; row < view_.rows(); ++row) lane(row);
    critical();
    arrows();
    for (int row = 0; row < view_.rows(); ++row) bars(row);
    labels();
    return std::move(out_);
  }

 private:
  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  bool rounds() const { return view_.timeline.kind == TimelineKind::rounds; }
  const Colour& colour(const Event& event) const {
    return palette_[origin_of(view_.timeline, event)];
  }
  double x(std::int64_t ns) const { return std::clamp(frame_.x(ns), frame_.left, frame_.right); }
  int row(int rank) const { return view_.row_of[static_cast<std::size_t>(rank)]; }
  double y(int rank) const { return frame_.y(row(rank)); }
  /// Where an arrow ends: at the nearer side of the receiver's bar.
  double edge(int from, int to) const {
    return y(to) + (to > from ? -frame_.bar / 2 : frame_.bar / 2);
  }

  /// "3.20 µs", or "round 2".
  std::string when(std::int64_t ns) const {
    return rounds() ? fmt::format("round {}", ns / 1000) : time_text(ns);
  }
  std::string difference(std::uint32_t e) const {
    const auto found = differences_.find(e);
    if (found == differences_.end()) return "";
    return fmt::format("\nends {} {} than predicted", time_text(std::llabs(found->second)),
                       found->second < 0 ? "earlier" : "later");
  }

  void critical() {
    if (view_.critical.empty()) return;
    std::string line;
    const auto to = [&](std::int64_t ns, double height) {
      fmt::format_to(std::back_inserter(line), "{}{:.1f} {:.1f}", line.empty() ? 'M' : 'L', x(ns),
                     height);
    };
    const Event& first = view_.event(view_.critical.front());
    const Event* before = nullptr;
    for (const std::uint32_t e : view_.critical) {
      const Event& its = view_.event(e);
      if (row(its.rank) < 0) continue;
      if (before == nullptr) {
        to(its.message() ? first.posted : first.start, y(its.rank));
      } else if (its.rank != before->rank) {
        to(before->posted, y(before->rank));
        to(its.end, edge(before->rank, its.rank));
        to(its.end, y(its.rank));
      }
      if (!its.message()) to(its.end, y(its.rank));
      before = &its;
    }
    const Event& last = view_.event(view_.critical.back());
    if (row(last.rank) >= 0) to(last.end, y(last.rank));
    put("<path class=\"critical\" d=\"{}\"/>\n", line);
  }

  void lane(int row) {
    put("<rect class=\"lane\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/>\n",
        frame_.left, frame_.y(row) - frame_.bar / 2, frame_.right - frame_.left, frame_.bar);
  }

  void arrows() {
    std::set<std::pair<std::uint32_t, std::uint32_t>> critical;
    for (std::size_t i = 1; i < view_.critical.size(); ++i) {
      critical.insert({view_.critical[i - 1], view_.critical[i]});
    }
    for (const TimedMessage& message : view_.messages) {
      const Event& send = view_.event(message.send);
      const Event& recv = view_.event(message.recv);
      const bool on_path = critical.contains({message.send, message.recv}) ||
                           critical.contains({message.recv, message.send});
      const double x0 = x(send.posted), y0 = y(send.rank);
      const double x1 = x(recv.end), y1 = edge(send.rank, recv.rank);
      const double length = std::hypot(x1 - x0, y1 - y0);
      const double ux = (x1 - x0) / length, uy = (y1 - y0) / length;
      const double head = frame_.pitch < 36 ? 5.5 : 7.5, half = 0.42 * head;
      const double bx = x1 - ux * head, by = y1 - uy * head;
      put("<g class=\"arrow{}\" data-from=\"{}\" data-to=\"{}\" data-send=\"{}\" data-recv=\"{}\" "
          "data-start=\"{}\" data-end=\"{}\" style=\"--c:{}\" stroke=\"{}\" fill=\"{}\">",
          on_path ? " on-path" : "", send.rank, recv.rank, send.step, recv.step, send.posted,
          recv.end, colour(send).hex(), colour(send).hex(), colour(send).hex());
      put("<title>{}</title>", escaped(tip(message)));
      put("<path d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\"/>", x0, y0, bx, by);
      put("<path class=\"head\" d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}L{:.1f} {:.1f}z\"/>", x1, y1,
          bx - uy * half, by + ux * half, bx + uy * half, by - ux * half);
      if (frame_.pitch >= 36) {
        put("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.6\"/>", x0, y0);
      }
      out_ += "</g>\n";
    }
  }

  std::string tip(const TimedMessage& message) const {
    const Event& send = view_.event(message.send);
    const Event& recv = view_.event(message.recv);
    std::string text =
        fmt::format("{}: {} from rank {} to rank {}", chunk_text(view_.timeline, send),
                    bytes_text(send.bytes), send.rank, recv.rank);
    if (rounds()) {
      text += fmt::format("\n{}; steps {} and {}", when(send.posted), send.step, recv.step);
    } else {
      text +=
          fmt::format("\nsent {} (step {}), there {} (step {}), {} under way", when(send.posted),
                      send.step, when(recv.end), recv.step, time_text(recv.end - send.posted));
    }
    return text + difference(message.recv);
  }

  void bars(int row) {
    const double middle = frame_.y(row), half = frame_.bar / 2;
    if (!rounds()) {
      for (const Span& wait : view_.waiting(row)) {
        if (x(wait.to) - x(wait.from) < 0.3) continue;
        put("<rect class=\"wait\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"3\">"
            "<title>rank {} waits {} to {}, {}</title></rect>\n",
            x(wait.from), middle - 1.5, x(wait.to) - x(wait.from),
            view_.ranks[static_cast<std::size_t>(row)], time_text(wait.from), time_text(wait.to),
            time_text(wait.to - wait.from));
      }
    }
    for (const std::uint32_t e : view_.events[static_cast<std::size_t>(row)]) {
      const Event& event = view_.event(e);
      const Span work = work_of(event);
      if (work.to <= work.from) continue;
      const double left = x(work.from), width = std::max(x(work.to) - left, 0.6);
      const char* kind = event.message()                  ? "call"
                         : event.kind == StepKind::copy   ? "copy"
                         : event.kind == StepKind::finish ? "finish"
                                                          : "fold";
      const bool hollow = event.kind == StepKind::copy;
      const double h = event.message() ? half * 0.62 : hollow ? half - 1 : half;
      put("<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"", kind,
          left, middle - h, width, 2 * h);
      if (event.kind == StepKind::fold) put(" fill=\"{}\"", colour(event).hex());
      if (hollow) put(" stroke=\"{}\"", colour(event).hex());
      put("><title>{}</title></rect>\n", escaped(work_tip(e, work)));
    }
  }

  std::string work_tip(std::uint32_t e, const Span& work) const {
    const Event& event = view_.event(e);
    std::string what;
    if (event.message()) {
      what = fmt::format("rank {} {} {} {} {}", event.rank,
                         event.kind == StepKind::send ? "sends" : "expects",
                         chunk_text(view_.timeline, event),
                         event.kind == StepKind::send ? "to" : "from", event.peer);
    } else {
      what = fmt::format("rank {} {} {}", event.rank,
                         event.kind == StepKind::fold   ? "reduces"
                         : event.kind == StepKind::copy ? "copies"
                                                        : "divides",
                         chunk_text(view_.timeline, event));
    }
    what += fmt::format(": {} (step {})", bytes_text(event.bytes), event.step);
    what += rounds() ? "\n" + when(work.from)
                     : fmt::format("\n{} to {}, {}", time_text(work.from), time_text(work.to),
                                   time_text(work.to - work.from));
    return what + difference(e);
  }

  /// A label where there is room for it, on its own arrow and as few others as can be, near the
  /// middle.
  void labels() {
    std::vector<Line> lines;
    for (const TimedMessage& message : view_.messages) {
      const Event& send = view_.event(message.send);
      const Event& recv = view_.event(message.recv);
      lines.push_back({x(send.posted), y(send.rank), x(recv.end), edge(send.rank, recv.rank)});
    }
    Placed placed;
    const double high = frame_.pitch < 36 ? 12 : 15;
    out_ += "<g class=\"labels\">\n";
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
      const Colour its = colour(send);
      put("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.0f}\" rx=\"{:.1f}\" "
          "stroke=\"{}\"/><text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"{}\">{}</text>\n",
          best->left, best->top, wide, high, high / 2, its.hex(), (best->left + best->right) / 2,
          (best->top + best->bottom) / 2 + 3.7, its.towards(black, 0.45).hex(), escaped(text));
    }
    out_ += "</g>\n";
  }

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
  const Differences& differences_;
  std::string out_;
};

}  // namespace

std::string panel_svg(const View& view, const Frame& frame, const Palette& palette,
                      const Differences& differences) {
  return Panel(view, frame, palette, differences).draw();
}

}  // namespace baton::diagrams
