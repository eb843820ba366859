#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "svg_panel.hpp"
#include "text.hpp"

namespace baton::diagrams {
namespace {

constexpr int levels = 12, most_columns = 160;
constexpr double strip = 54;  // height of the curve above the map

/// How much of each column of time the given spans cover, as ns, added to `cells`.
class Columns {
 public:
  /// As many as there are rounds, or a multiple of it; where there are too many or none, the most.
  explicit Columns(const View& view, const Frame& frame)
      : from_(frame.from), to_(frame.to), count_(most_columns) {
    const std::int64_t rounds = (to_ - from_ + 999) / 1000;
    if (view.timeline.kind == TimelineKind::rounds && rounds <= most_columns) {
      count_ = static_cast<int>(rounds * std::max<std::int64_t>(1, most_columns / rounds));
    }
  }
  int count() const { return count_; }
  void add(std::vector<double>& cells, Span span, double weight) const {
    const double per = width();
    const double first = std::max(static_cast<double>(span.from - from_), 0.0);
    const double last = std::min<double>(static_cast<double>(span.to - from_), width() * count_);
    for (int c = static_cast<int>(first / per); c < count_ && c * per < last; ++c) {
      const double covered = std::min(last, (c + 1) * per) - std::max(first, c * per);
      if (covered > 0) cells[static_cast<std::size_t>(c)] += weight * covered;
    }
  }
  double width() const { return static_cast<double>(to_ - from_) / count_; }

 private:
  std::int64_t from_, to_;
  int count_;
};

bool anybody_works(const View& view) {
  return view.timeline.kind != TimelineKind::rounds &&
         std::any_of(view.timeline.events.begin(), view.timeline.events.end(),
                     [](const Event& event) { return work_of(event).to > work_of(event).from; });
}

}  // namespace

std::string heat_legend_svg(const View& view, double x, double y) {
  std::string out;
  const auto put = [&]<class... Args>(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
  };
  for (int level = 0; level < levels; ++level) {
    put("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"14\" height=\"12\" fill=\"{}\"/>\n",
        x + 14 * level, y - 10, heat(static_cast<double>(level) / (levels - 1)).hex());
  }
  put("<text class=\"key\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", x + 14 * levels + 10, y,
      anybody_works(view) ? "share of time at work, 0 to 100 %"
                          : "messages under way from or to the rank, none to most");
  return out;
}

std::string heat_svg(const View& view, const Frame& frame, int rows) {
  const Columns time(view, frame);
  const auto cells = static_cast<std::size_t>(time.count());
  std::vector<std::vector<double>> shares(static_cast<std::size_t>(rows),
                                          std::vector<double>(cells));
  const int ranks = view.rows();
  const auto row_of = [&](int row) {
    return static_cast<std::size_t>(heat_row_of(row, ranks, rows));
  };
  std::vector<int> of_row(static_cast<std::size_t>(rows));  // ranks
  for (int row = 0; row < ranks; ++row) ++of_row[row_of(row)];
  const bool works = anybody_works(view);
  for (int row = 0; row < ranks && works; ++row) {
    for (const std::uint32_t e : view.events[static_cast<std::size_t>(row)]) {
      time.add(shares[row_of(row)], work_of(view.event(e)),
               1 / (of_row[row_of(row)] * time.width()));
    }
  }
  std::vector<double> bytes(cells);
  double most = 0;
  for (const TimedMessage& message : view.messages) {
    const Event& send = view.event(message.send);
    const Event& recv = view.event(message.recv);
    const Span flight{send.posted, recv.end};
    time.add(bytes, flight, static_cast<double>(send.bytes) / time.width());
    if (works) continue;
    for (const int rank : {send.rank, recv.rank}) {
      const std::size_t row = row_of(view.row_of[static_cast<std::size_t>(rank)]);
      time.add(shares[row], flight, 1.0 / of_row[row]);
    }
  }
  if (!works) {
    for (const auto& row : shares) most = std::max(most, *std::max_element(row.begin(), row.end()));
    for (auto& row : shares) {
      for (double& share : row) share /= std::max(most, 1e-9);
    }
  }

  std::string out;
  const auto put = [&]<class... Args>(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
  };
  const double wide = (frame.right - frame.left) / time.count();
  const double top = frame.top - strip - 12, floor = frame.top - 12;
  const double peak = *std::max_element(bytes.begin(), bytes.end());
  put("<path class=\"flight\" d=\"M{:.1f} {:.1f}", frame.left, floor);
  for (std::size_t c = 0; c < cells; ++c) {
    put("V{:.1f}H{:.1f}", floor - strip * bytes[c] / std::max(peak, 1e-9),
        frame.left + static_cast<double>(c + 1) * wide);
  }
  put("V{:.1f}z\"/>\n", floor);
  put("<text class=\"key\" x=\"{:.1f}\" y=\"{:.1f}\">bytes under way, up to {}</text>\n",
      frame.left, top - 6, bytes_text(static_cast<std::int64_t>(std::llround(peak))));

  // One path per level: stretches of a row as thick as the row is high.
  std::array<std::string, levels> paths;
  for (std::size_t row = 0; row < shares.size(); ++row) {
    const auto level = [&](std::size_t c) {
      return static_cast<std::size_t>(
          std::lround(std::clamp(shares[row][c], 0.0, 1.0) * (levels - 1)));
    };
    for (std::size_t c = 0, end = 0; c < cells; c = end) {
      while (end < cells && level(end) == level(c)) ++end;
      fmt::format_to(std::back_inserter(paths[level(c)]), "M{:.1f} {:.1f}H{:.1f}",
                     frame.left + static_cast<double>(c) * wide, frame.y(static_cast<int>(row)),
                     frame.left + static_cast<double>(end) * wide);
    }
  }
  put("<g class=\"heat\" fill=\"none\" stroke-width=\"{:.2f}\">\n", frame.pitch + 0.2);
  for (std::size_t level = 0; level < paths.size(); ++level) {
    if (paths[level].empty()) continue;
    put("<path stroke=\"{}\" d=\"{}\"/>\n", heat(static_cast<double>(level) / (levels - 1)).hex(),
        paths[level]);
  }
  out += "</g>\n";
  return out;
}

}  // namespace baton::diagrams
