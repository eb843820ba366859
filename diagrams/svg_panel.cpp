#include "svg_panel.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "text.hpp"

namespace baton::diagrams {
namespace {

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
    out_ += labels_svg(view_, frame_, palette_);
    return std::move(out_);
  }

 private:
  template <class... Args>
  void put(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  bool rounds() const { return view_.timeline.kind == TimelineKind::rounds; }
  Colour colour(const Event& event) const { return colour_of(view_.timeline, event, palette_); }
  double x(std::int64_t ns) const { return std::clamp(frame_.x(ns), frame_.left, frame_.right); }
  int row(int rank) const { return view_.row_of[static_cast<std::size_t>(rank)]; }
  double y(int rank) const { return frame_.y(row(rank)); }
  double edge(int from, int to) const { return frame_.edge(row(from), row(to)); }

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
    const auto go = [&](char how, std::int64_t ns, double height) {
      fmt::format_to(std::back_inserter(line), "{}{:.1f} {:.1f}", how, x(ns), height);
    };
    const auto to = [&](std::int64_t ns, double height) { go('L', ns, height); };
    const Event* before = nullptr;  // on the path; null if it is the first or its rank is hidden
    for (const std::uint32_t e : view_.critical) {
      const Event& its = view_.event(e);
      const bool first = e == view_.critical.front(), shown = row(its.rank) >= 0;
      const bool comes = before != nullptr && its.rank != before->rank;  // by a message
      if (comes) to(before->posted, y(before->rank));
      if (comes && shown) {
        to(its.end, edge(before->rank, its.rank));
        to(its.end, y(its.rank));
      } else if (before == nullptr && shown) {
        go('M', !first ? its.end : its.message() ? its.posted : its.start, y(its.rank));
      }
      if (shown && !its.message()) to(its.end, y(its.rank));
      before = shown ? &its : nullptr;
    }
    if (before != nullptr) to(before->end, y(before->rank));
    if (line.empty()) return;
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
      const char* kind = event.message()                   ? "call"
                         : event.kind == StepKind::copy    ? "copy"
                         : event.kind == StepKind::divide  ? "divide"
                         : event.kind == StepKind::compute ? "compute"
                                                           : "fold";
      const bool hollow = event.kind == StepKind::copy;
      const double h = event.message() ? half * 0.62 : hollow ? half - 1 : half;
      put("<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"", kind,
          left, middle - h, width, 2 * h);
      if (event.kind == StepKind::fold || event.kind == StepKind::compute)
        put(" fill=\"{}\"", colour(event).hex());
      if (hollow) put(" stroke=\"{}\"", colour(event).hex());
      put("><title>{}</title></rect>\n", escaped(work_tip(e, work)));
      const std::string text = chunk_text(view_.timeline, event);
      if (event.kind == StepKind::compute && width >= 6.4 * static_cast<double>(text.size()) + 3) {
        put("<text class=\"work\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", left + width / 2,
            middle + 3.8, escaped(text));
      }
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
                         event.kind == StepKind::fold      ? "reduces"
                         : event.kind == StepKind::copy    ? "copies"
                         : event.kind == StepKind::compute ? "computes"
                                                           : "divides",
                         chunk_text(view_.timeline, event));
    }
    if (event.kind != StepKind::compute) what += ": " + bytes_text(event.bytes);
    what += fmt::format(" (step {})", event.step);
    what += rounds() ? "\n" + when(work.from)
                     : fmt::format("\n{} to {}, {}", time_text(work.from), time_text(work.to),
                                   time_text(work.to - work.from));
    return what + difference(e);
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
