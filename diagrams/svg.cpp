#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <numeric>
#include <optional>

#include "diagrams.hpp"
#include "svg_panel.hpp"
#include "text.hpp"

namespace baton::diagrams {
namespace {

constexpr int most_rows = 32, most_messages = 200;  // of arrows, per rank
constexpr int most_heat_rows = 96;
constexpr int widest = 2600;
constexpr double right_margin = 30, header = 96;

constexpr const char* style = R"(<style>
text{font-family:"Helvetica Neue",Helvetica,Arial,"Liberation Sans","DejaVu Sans",sans-serif;fill:#1d2733}
.title{font-size:21px;font-weight:bold}
.what{font-size:13.5px;fill:#3d4a5a}
.source{font-size:12px;fill:#6a7686}
.right{text-anchor:end}
.rank{font-size:12.5px;text-anchor:end;fill:#2b3644}
.host{font-size:12px;text-anchor:middle;fill:#5b6878}
.panel{font-size:12.5px;font-weight:bold;fill:#3d4a5a}
.tick{font-size:11.5px;text-anchor:middle;fill:#5b6878}
.key{font-size:11.5px;fill:#3d4a5a}
.host0{fill:#f3f6fa}.host1{fill:#fbf6ee}
.round{fill:#5b7590;fill-opacity:.055}
.lane{fill:#dfe5ec}
.grid{stroke:#dde3ea;stroke-width:1;fill:none}
.axis{stroke:#9aa6b4;stroke-width:1;fill:none}
.wait{fill:#9eabba}
.call{fill:#4a5666}
.divide{fill:#1d2733}
.copy{fill:#fff;stroke-width:1.4}
.arrow path{stroke-width:1.6;fill:none}
.arrow .head{stroke:none;fill:inherit}
.arrow circle{stroke:#fff;stroke-width:.8}
.arrow:hover path{stroke-width:3.2}
.on-path path{stroke-width:2.4}
.critical{stroke:#ffb000;stroke-opacity:.62;stroke-width:8;fill:none;stroke-linejoin:round;stroke-linecap:round}
.labels rect{fill:#fff;fill-opacity:.94;stroke-width:.8}
.labels text{font-size:11px;text-anchor:middle}
.flight{fill:#c8d5e4;stroke:#7f95ad;stroke-width:.8}
</style>
)";
constexpr const char* style_of_work =
    "<style>.work{font-size:11px;text-anchor:middle;fill:#fff;pointer-events:none}"
    ".compute{stroke:#fff;stroke-width:.6}</style>\n";

class Page {
 public:
  Page(const Timeline& timeline, const Options& options)
      : timeline_(timeline), options_(options), view_(timeline, options) {
    std::vector<int> computations(static_cast<std::size_t>(timeline.ranks));
    for (const Event& event : timeline.events)
      computations[static_cast<std::size_t>(event.rank)] += event.kind == StepKind::compute ? 1 : 0;
    computations_ = computations.empty() ? 0 : std::ranges::max(computations);
    int most = most_ends(view_);
    if (view_.rows() <= most_rows && computations_ > 0 && most > 2 * most_messages)
      most = hide_messages(view_);
    heat_ = view_.rows() > most_rows || most > 2 * most_messages;
    if (options.prediction != nullptr && !heat_) {
      Options of_prediction = options;
      of_prediction.prediction = nullptr;
      prediction_.emplace(*options.prediction, of_prediction, true);
      if (computations_ > 0 && most_ends(*prediction_) > 2 * most_messages)
        hide_messages(*prediction_);
      compare();
    }
    size(most);
  }

  bool heat() const { return heat_; }
  std::string draw() {
    std::string body = heat_ ? map() : panels();
    const double height = bottom_ + 14;
    std::string out = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1:.0f}\" "
        "viewBox=\"0 0 {0} {1:.0f}\">\n",
        width_, height);
    out += fmt::format("<title>{}</title>\n", escaped(heading(timeline_)));
    out += style;
    if (computations_ > 0) out += style_of_work;
    out += fmt::format("<rect width=\"{}\" height=\"{:.0f}\" fill=\"#fff\"/>\n", width_, height);
    return out + head() + body + "</svg>\n";
  }

 private:
  /// Ends of shown messages on the rank that has the most.
  static int most_ends(const View& view) {
    std::vector<int> count(static_cast<std::size_t>(view.timeline.ranks));
    for (const TimedMessage& message : view.messages) {
      ++count[static_cast<std::size_t>(view.event(message.send).rank)];
      ++count[static_cast<std::size_t>(view.event(message.recv).rank)];
    }
    return count.empty() ? 0 : std::ranges::max(count);
  }
  static std::int64_t rounds_of(const Timeline& timeline) {
    std::int64_t end = 0;
    for (const Event& event : timeline.events) end = std::max(end, event.end);
    return (end + 999) / 1000;
  }
  /// Leaves computations. Returns the number of messages that are shown.
  static int hide_messages(View& view) {
    view.hidden += view.messages.size();
    view.messages.clear();
    return 0;
  }
  template <class... Args>
  static void put(std::string& out, fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
  }

  void size(int most) {
    const int rows = view_.rows();
    double wanted = options_.width;
    if (!heat_) {
      const double per_message = rows <= 8 ? 20 : 13;
      const double messages = timeline_.kind == TimelineKind::rounds
                                  ? 5.5 * static_cast<double>(view_.to - view_.from) / 1000
                                  : most;
      const double room = std::max(per_message * messages, 30.0 * computations_);
      wanted = std::clamp(left() + right_margin + room, wanted, std::max<double>(widest, wanted));
    }
    width_ = static_cast<int>(wanted);
    frame_.left = left();
    frame_.right = width_ - right_margin;
    frame_.from = view_.from;
    frame_.to = view_.to;
    if (prediction_) {
      frame_.from = std::min(view_.from, prediction_->from);
      frame_.to = std::max(view_.to, prediction_->to);
    }
    frame_.pitch = rows <= 4 ? 84 : rows <= 8 ? 62 : rows <= 16 ? 42 : 30;
    if (prediction_) frame_.pitch *= 0.8;
    frame_.bar = rows <= 8 ? 13 : rows <= 16 ? 10 : 8;
    if (computations_ > 0) frame_.bar = std::max(frame_.bar, std::min(0.44 * frame_.pitch, 30.0));
    frame_.top = header;
  }
  double left() const { return timeline_.hosts.empty() ? 78 : 98; }

  void compare() {
    std::vector<std::int64_t> sizes;
    for (const JoinedStep& step : joined_with_prediction(timeline_, options_)) {
      differences_[step.first] = step.difference;
      sizes.push_back(std::llabs(step.difference));
      if (!largest_ || std::llabs(step.difference) > std::llabs(largest_->difference)) {
        largest_ = step;
      }
    }
    std::sort(sizes.begin(), sizes.end());
    if (!sizes.empty()) median_ = sizes[sizes.size() / 2];
  }

  std::string head() const {
    std::string out;
    std::int64_t bytes = 0;
    const auto messages = messages_of(timeline_);
    for (const TimedMessage& m : messages) bytes += timeline_.events[m.send].bytes;
    put(out, "<text class=\"title\" x=\"20\" y=\"36\">{}</text>\n", escaped(heading(timeline_)));
    put(out, "<text class=\"what\" x=\"20\" y=\"58\">{}</text>\n", escaped(what_text(timeline_)));
    put(out, "<text class=\"source\" x=\"20\" y=\"77\">{}</text>\n",
        escaped(source_text(timeline_)));
    const double right = width_ - right_margin;
    const std::string length = timeline_.kind == TimelineKind::rounds
                                   ? counted(rounds_of(timeline_), "round")
                                   : time_text(timeline_.duration());
    put(out, "<text class=\"title right\" x=\"{:.1f}\" y=\"36\">{}</text>\n", right, length);
    put(out, "<text class=\"what right\" x=\"{:.1f}\" y=\"58\">{}, {} in all</text>\n", right,
        counted(static_cast<std::int64_t>(messages.size()), "message"), bytes_text(bytes));
    std::string note;
    const std::string hidden =
        view_.hidden == 0
            ? ""
            : fmt::format("{} not shown",
                          counted(static_cast<std::int64_t>(view_.hidden), "message"));
    if (largest_) {
      const Event& at = timeline_.events[largest_->first];
      note = fmt::format(
          "prediction and measurement differ by {} (median step), {} at most (rank {}, step {})",
          time_text(median_), time_text(std::llabs(largest_->difference)), at.rank, at.step);
    }
    if (!hidden.empty()) note += (note.empty() ? "" : "; ") + hidden;
    if (!note.empty()) {
      put(out, "<text class=\"source right\" x=\"{:.1f}\" y=\"77\">{}</text>\n", right,
          escaped(note));
    }
    return out;
  }

  static std::string names(const View& view, const Frame& frame) {
    std::string out;
    for (int row = 0; row < view.rows(); ++row) {
      put(out, "<text class=\"rank\" x=\"{:.1f}\" y=\"{:.1f}\">rank {}</text>\n", frame.left - 12,
          frame.y(row) + 4.3, view.ranks[static_cast<std::size_t>(row)]);
    }
    return out;
  }

  std::string panels() {
    std::string out;
    const Palette palette(std::max(view_.origins, prediction_ ? prediction_->origins : 1));
    const auto panel = [&](const View& view, const Differences& differences, const char* title) {
      if (title != nullptr) {
        put(out, "<text class=\"panel\" x=\"20\" y=\"{:.1f}\">{}</text>\n", frame_.top + 14, title);
        frame_.top += 20;
      }
      out += background_svg(view, frame_) + names(view, frame_);
      out += panel_svg(view, frame_, palette, differences);
      frame_.top = frame_.bottom(view.rows());
    };
    if (prediction_) {
      put(out, "<!-- one time axis for both -->\n");
      panel(*prediction_, {}, "predicted");
      frame_.top += 8;
      panel(view_, differences_, "measured");
    } else {
      panel(view_, {}, nullptr);
    }
    out += axis_svg(view_, frame_, frame_.top + 4);
    out += legend(palette, frame_.top + 52);
    return out;
  }

  std::string legend(const Palette& palette, double y) {
    std::string out = "<g class=\"legend\">\n";
    double x = 20;
    double middle = y - 4;
    const auto key = [&](const std::string& text) {
      put(out, "<text class=\"key\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", x + 32, y,
          escaped(text));
      x += 32 + 6.2 * static_cast<double>(text.size()) + 20;
    };
    const auto bar = [&](const char* kind, double h, const std::string& more,
                         const std::string& text) {
      if (x + 32 + 6.2 * static_cast<double>(text.size()) > width_ - right_margin) {
        x = 20;
        y += 20;
        middle += 20;
      }
      put(out, "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"24\" height=\"{:.1f}\"{}/>\n",
          kind, x, middle - h / 2, h, more);
      key(text);
    };
    bool works[6] = {};
    bool waits = false;
    for (int row = 0; row < view_.rows(); ++row) {
      for (const std::uint32_t e : view_.events[static_cast<std::size_t>(row)]) {
        const Span work = work_of(view_.event(e));
        if (work.to > work.from) works[static_cast<std::size_t>(view_.event(e).kind)] = true;
      }
      waits = waits || (timeline_.kind != TimelineKind::rounds && !view_.waiting(row).empty());
    }
    const auto kind = [&](StepKind k) { return works[static_cast<std::size_t>(k)]; };
    put(out,
        "<path d=\"M{0:.1f} {1:.1f}h24\" stroke=\"#5b6878\" stroke-width=\"1.6\"/>"
        "<path d=\"M{2:.1f} {1:.1f}l-7 -3.2v6.4z\" fill=\"#5b6878\"/>\n",
        x, middle, x + 26);
    const std::string by = computations_ > 0 ? "coloured by what computed it" : "coloured by chunk";
    key(timeline_.kind == TimelineKind::rounds ? "message, " + by
                                               : "message, sent to arrived, " + by);
    for (const ComputationKind its : classes_of(timeline_)) {
      bar("compute", 13, fmt::format(" fill=\"{}\"", colour_of(its).hex()),
          std::string(legend_of(its)));
    }
    const std::string sample = palette[0].hex();
    if (kind(StepKind::fold)) bar("fold", 11, fmt::format(" fill=\"{}\"", sample), "reducing");
    if (kind(StepKind::copy)) bar("copy", 9, fmt::format(" stroke=\"{}\"", sample), "copying");
    if (kind(StepKind::divide)) bar("divide", 11, "", "dividing");
    if (kind(StepKind::send) || kind(StepKind::recv)) bar("call", 7, "", "call of a message");
    if (waits) bar("wait", 3, "", "waiting");
    if (!view_.critical.empty()) {
      put(out, "<path class=\"critical\" d=\"M{:.1f} {:.1f}h20\"/>\n", x + 2, middle);
      key("critical path");
    }
    out += "</g>\n";
    bottom_ = y + 8;
    return out;
  }

  std::string map() {
    std::string out;
    const int rows = std::min(view_.rows(), most_heat_rows);
    frame_.top = header + 88;
    frame_.pitch = std::clamp(560.0 / rows, 5.0, 12.0);
    out += heat_svg(view_, frame_, rows);
    const int every = std::max(1, static_cast<int>(std::ceil(14 / frame_.pitch)));
    for (int row = 0; row < rows; row += every) {
      const auto rank = static_cast<std::size_t>(first_of_heat_row(row, view_.rows(), rows));
      put(out, "<text class=\"rank\" x=\"{:.1f}\" y=\"{:.1f}\">rank {}</text>\n", frame_.left - 8,
          frame_.y(row) + 4.3, view_.ranks[rank]);
    }
    const double end = frame_.bottom(rows);
    out += axis_svg(view_, frame_, end + 4);
    out += heat_legend_svg(view_, frame_.left, end + 52);
    std::string why =
        view_.rows() > most_rows
            ? fmt::format("a heat map, since there are more than {} ranks", most_rows)
            : fmt::format("a heat map, since ranks have more than {} messages each", most_messages);
    if (rows < view_.rows()) {
      const int least = view_.rows() / rows;
      why += view_.rows() % rows == 0
                 ? fmt::format("; a row is the mean of {} ranks", least)
                 : fmt::format("; a row is the mean of {} or {} ranks", least, least + 1);
    }
    put(out, "<text class=\"key right\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", frame_.right,
        end + 52, why);
    bottom_ = end + 60;
    return out;
  }

  const Timeline& timeline_;
  const Options& options_;
  View view_;
  std::optional<View> prediction_;
  Differences differences_;
  std::optional<JoinedStep> largest_;
  std::int64_t median_ = 0;
  int computations_ = 0;  // of the rank that has most
  bool heat_ = false;
  int width_ = 0;
  Frame frame_;
  double bottom_ = 0;
};

}  // namespace

bool is_heat_map(const Timeline& timeline, const Options& options) {
  return Page(timeline, options).heat();
}

std::string svg(const Timeline& timeline, const Options& options) {
  return Page(timeline, options).draw();
}

}  // namespace baton::diagrams
