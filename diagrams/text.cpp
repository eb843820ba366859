#include "text.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/utf8.hpp"

namespace baton::diagrams {
namespace {

/// The bytes of the character at the begin of a text; 0 if there is none that XML may have.
std::size_t character_at(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < bytes) return 0;
  std::uint32_t code = first & (0x7fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if (!base::continues_character(text[i])) return 0;
    code = code << 6 | (byte(i) & 0x3fu);
  }
  constexpr std::uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool half = code >= 0xd800 && code < 0xe000;  // of a pair of UTF-16
  return code < least[bytes] || code > 0x10ffff || half || code == 0xfffe || code == 0xffff ? 0
                                                                                            : bytes;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (std::size_t bytes = 0; !text.empty(); text.remove_prefix(std::max<std::size_t>(bytes, 1))) {
    bytes = character_at(text);
    const char c = text[0];
    if (bytes != 1) {
      out += bytes == 0 ? "\ufffd" : text.substr(0, bytes);
      continue;
    }
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\n':
        out += "&#10;";
        break;
      default:
        // XML has no other control characters.
        out += static_cast<unsigned char>(c) < 0x20 && c != '\t' ? ' ' : c;
    }
  }
  return out;
}

std::string json_text(const std::string& text) {
  std::string out =
      nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  for (std::size_t at = 0; (at = out.find('<', at)) != std::string::npos;)
    out.replace(at, 1, "\\u003c");
  return out;
}

std::string time_text(std::int64_t ns) {
  const auto size = static_cast<double>(std::llabs(ns));
  const auto value = static_cast<double>(ns);
  const auto scaled = [&](double unit, std::string_view name) {
    const double in = value / unit;
    const double digits = size / unit;
    return digits < 9.995   ? fmt::format("{:.2f} {}", in, name)
           : digits < 99.95 ? fmt::format("{:.1f} {}", in, name)
                            : fmt::format("{:.0f} {}", in, name);
  };
  if (size < 1e3) return fmt::format("{} ns", ns);
  if (size < 999.5e3) return scaled(1e3, "µs");
  if (size < 999.5e6) return scaled(1e6, "ms");
  return scaled(1e9, "s");
}

std::string bytes_text(std::int64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  const char* unit = "B";
  for (const char* next : {"KiB", "MiB", "GiB", "TiB"}) {
    if (value < 1024) break;
    value /= 1024;
    unit = next;
  }
  return fmt::format("{:.1f} {}", value, unit);
}

std::string counted(std::int64_t n, std::string_view what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

std::string heading(const Timeline& timeline) {
  if (!timeline.title.empty()) return timeline.title;
  if (timeline.operations.empty()) return "nothing happened";
  const TimedOperation& first = timeline.operations[0];
  std::string text = first.name;
  if (!first.choice.algorithm.empty()) text += " by " + first.choice.algorithm;
  if (timeline.operations.size() > 1) {
    text += fmt::format(
        " and {} more",
        counted(static_cast<std::int64_t>(timeline.operations.size()) - 1, "operation"));
  }
  return text;
}

std::string what_text(const Timeline& timeline) {
  std::string text = counted(timeline.ranks, "rank");
  if (!timeline.hosts.empty()) {
    const int hosts = 1 + *std::max_element(timeline.hosts.begin(), timeline.hosts.end());
    if (hosts > 1) text += fmt::format(" on {} hosts", hosts);
  }
  if (timeline.operations.size() != 1) return text;
  const TimedOperation& operation = timeline.operations[0];
  if (operation.name != name(Collective::program)) text += " · " + bytes_text(operation.bytes);
  if (!operation.type.empty() || !operation.op.empty()) {
    text += " · " + operation.type + (operation.op.empty() ? "" : " " + operation.op);
  }
  if (const std::int64_t segment = operation.choice.segment.value_or(0); segment > 0) {
    text += " · pieces of " + bytes_text(segment);
  }
  return text;
}

std::string source_text(const Timeline& timeline) {
  switch (timeline.kind) {
    case TimelineKind::rounds:
      return "rounds of its schedule, not times";
    case TimelineKind::predicted:
      return "predicted" + (timeline.parameters.empty() ? "" : ": " + timeline.parameters);
    case TimelineKind::measured:
      break;
  }
  std::string text = "measured; ";
  text += timeline.clock_error > 0 ? fmt::format("clocks of hosts within {} of rank 0's",
                                                 time_text(timeline.clock_error))
                                   : "one clock";
  if (timeline.early_arrivals > 0) {
    text += fmt::format("; {} before they were sent",
                        timeline.early_arrivals == 1
                            ? "1 message arrives"
                            : fmt::format("{} messages arrive", timeline.early_arrivals));
  }
  const auto dropped =
      std::accumulate(timeline.dropped.begin(), timeline.dropped.end(), std::uint64_t{0});
  if (dropped > 0) {
    text += fmt::format("; {} not recorded", counted(static_cast<std::int64_t>(dropped), "event"));
  }
  return text;
}

std::string chunk_text(const Timeline& timeline, const Event& event) {
  if (event.chunk >= timeline.chunks.size()) return "";
  const ChunkName& chunk = timeline.chunks[event.chunk];
  return chunk.reduced ? chunk.text + " +=" : chunk.text;
}

std::string host_text(const std::string& name, double room) {
  constexpr double character = 6.7;  // on average, at 12 px
  const auto most = std::max<std::ptrdiff_t>(1, static_cast<std::ptrdiff_t>(room / character));
  const auto characters = [](std::string_view text) {
    return std::ranges::count_if(text, [](char c) { return !base::continues_character(c); });
  };
  if (characters(name) <= most) return name;
  std::string_view shown = std::string_view(name).substr(0, name.find('.'));
  const bool address = shown.find_first_not_of("0123456789") == std::string_view::npos;
  if (address) shown = name;
  const auto more = characters(shown) - most;
  if (more <= 0) return std::string(shown);
  for (std::ptrdiff_t i = 0; i <= more; ++i) shown = base::end_of(shown, shown.size() - 1);
  return fmt::format("…{}", shown);
}

int origin_of(const Timeline& timeline, const Event& event) {
  return event.chunk < timeline.chunks.size() ? timeline.chunks[event.chunk].origin : 0;
}

}  // namespace baton::diagrams
