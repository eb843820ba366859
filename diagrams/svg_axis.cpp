#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "svg_panel.hpp"
#include "text.hpp"

namespace baton::diagrams {

std::int64_t tick_step(std::int64_t duration, int wanted) {
  const std::int64_t least = std::max<std::int64_t>(duration / std::max(wanted, 1), 1);
  for (std::int64_t ten = 1;; ten *= 10) {
    for (const int digit : {1, 2, 5}) {
      if (digit * ten >= least) return digit * ten;
    }
  }
}

std::string background_svg(const View& view, const Frame& frame) {
  std::string out;
  const auto put = [&]<class... Args>(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
  };
  const Timeline& timeline = view.timeline;
  const double bottom = frame.bottom(view.rows());
  // A band for each host: rows of the same one that follow each other.
  for (int row = 0, end = 0; row < view.rows(); row = end) {
    const int host = timeline.host_of(view.ranks[static_cast<std::size_t>(row)]);
    while (end < view.rows() &&
           timeline.host_of(view.ranks[static_cast<std::size_t>(end)]) == host) {
      ++end;
    }
    if (timeline.hosts.empty()) break;
    const double top = frame.top + row * frame.pitch;
    const std::string name = static_cast<std::size_t>(host) < timeline.host_names.size()
                                 ? timeline.host_names[static_cast<std::size_t>(host)]
                                 : fmt::format("host {}", host);
    put("<rect class=\"host{}\" x=\"14\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" "
        "rx=\"6\"/>\n",
        host % 2, top + 1.5, frame.right - 14 + 8, (end - row) * frame.pitch - 3);
    const double high = (end - row) * frame.pitch;
    const std::string shown = host_text(name, high - 3);
    put("<text class=\"host\" transform=\"translate(28 {:.1f}) rotate(-90)\">", top + high / 2);
    if (shown != name) put("<title>{}</title>", escaped(name));
    put("{}</text>\n", escaped(shown));
  }
  if (timeline.kind == TimelineKind::rounds) {
    for (std::int64_t k = frame.from / 1000; k * 1000 < frame.to; ++k) {
      const double left = std::max(frame.x(k * 1000), frame.left);
      const double right = std::min(frame.x((k + 1) * 1000), frame.right);
      if (k % 2 == 0) {
        put("<rect class=\"round\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
            "height=\"{:.1f}\"/>\n",
            left, frame.top, right - left, bottom - frame.top);
      }
    }
  } else {
    const std::int64_t step = tick_step(frame.to - frame.from, 10);
    out += "<path class=\"grid\" d=\"";
    for (std::int64_t t = (frame.from + step - 1) / step * step; t <= frame.to; t += step) {
      put("M{:.1f} {:.1f}V{:.1f}", frame.x(t), frame.top, bottom);
    }
    out += "\"/>\n";
  }
  return out;
}

std::string axis_svg(const View& view, const Frame& frame, double y) {
  std::string out;
  const auto put = [&]<class... Args>(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
  };
  if (view.timeline.kind == TimelineKind::rounds) {
    const std::int64_t rounds = (frame.to - frame.from + 999) / 1000;
    const double wide = (frame.right - frame.left) / static_cast<double>(rounds);
    const std::int64_t every = std::max<std::int64_t>(1, static_cast<std::int64_t>(26 / wide) + 1);
    for (std::int64_t k = frame.from / 1000; k * 1000 < frame.to; k += every) {
      const double x = frame.x(k * 1000 + 500);
      if (x < frame.left || x > frame.right) continue;
      put("<text class=\"tick\" x=\"{:.1f}\" y=\"{:.1f}\">{}{}</text>\n", x, y + 17,
          wide > 60 ? "round " : "", k);
    }
    return out;
  }
  const std::int64_t step = tick_step(frame.to - frame.from, 10);
  struct Unit {
    const char* name;
    std::int64_t ns;
  };
  Unit unit{"ns", 1};
  for (const Unit& larger : {Unit{"µs", 1'000}, Unit{"ms", 1'000'000}, Unit{"s", 1'000'000'000}}) {
    if (frame.to >= 2 * larger.ns) unit = larger;
  }
  int decimals = 0;
  for (std::int64_t part = unit.ns; step % part != 0 && part > 1; part /= 10) ++decimals;
  put("<path class=\"axis\" d=\"M{:.1f} {:.1f}H{:.1f}", frame.left, y, frame.right);
  for (std::int64_t t = (frame.from + step - 1) / step * step; t <= frame.to; t += step) {
    put("M{:.1f} {:.1f}v5", frame.x(t), y);
  }
  out += "\"/>\n";
  for (std::int64_t t = (frame.from + step - 1) / step * step; t <= frame.to; t += step) {
    put("<text class=\"tick\" x=\"{:.1f}\" y=\"{:.1f}\">{:.{}f}{}</text>\n", frame.x(t), y + 18,
        static_cast<double>(t) / static_cast<double>(unit.ns), decimals,
        t + step > frame.to ? fmt::format(" {}", unit.name) : "");
  }
  return out;
}

}  // namespace baton::diagrams
