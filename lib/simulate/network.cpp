#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <utility>

#include "base/line_reader.hpp"
#include "base/raise.hpp"
#include "baton/error.hpp"
#include "baton/simulate.hpp"
#include "shipped_networks.hpp"

namespace baton {
namespace {

constexpr std::string_view the_end = "the end of the text";
constexpr std::size_t most_points = 1000;  // of a table

class NetworkReader : base::LineReader {
 public:
  using LineReader::LineReader;

  Network read() {
    while (next_line()) {
      read_line(next_word());
      end_line();
    }
    if (!begun_) refuse("\"baton-network 1\"", the_end);
    if (!within_ && !across_) refuse("\"within\" or \"across\"", the_end);
    if (network_.name.empty()) refuse("\"name\"", the_end);
    if (!within_) network_.within = network_.across;
    if (!across_) network_.across = network_.within;
    return std::move(network_);
  }

 private:
  void read_line(std::string_view word) {
    if (!begun_) {
      if (word != "baton-network") fail("\"baton-network 1\"", word);
      if (const std::string_view version = next_word(); version != "1")
        fail("version 1 of the form", version);
      begun_ = true;
    } else if (word == "within" || word == "across") {
      level_ = word == "within" ? &network_.within : &network_.across;
      bool& seen = word == "within" ? within_ : across_;
      if (seen) refuse(fmt::format("\"{}\" once", word), "it again");
      seen = true;
    } else if (level_) {
      read_level(word);
    } else {
      read_common(word);
    }
  }

  /// A word that is a number from 0 to `most`.
  template <class Number>
  Number number(std::string_view expected, Number most) {
    const std::string_view word = next_word();
    Number value = -1;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size() || !(value >= 0 && value <= most))
      fail(expected, word);
    return value;
  }
  std::int64_t whole(std::string_view what, std::int64_t most) {
    return number(fmt::format("{} from 0 to {}", what, most), most);
  }
  std::int64_t time() { return whole("whole nanoseconds", 1'000'000'000'000); }
  double real(std::string_view what) {
    return number(fmt::format("{} of at least 0", what), std::numeric_limits<double>::max());
  }
  std::int64_t bytes() {
    return here([&] { return parse_bytes(next_word()); });
  }

  void add_point(TimeTable& table) {
    std::vector<TimeTable::Point> points(table.points().begin(), table.points().end());
    if (points.size() == most_points)
      refuse(fmt::format("at most {} of these", most_points), "more");
    const std::int64_t at = bytes();
    points.push_back({at, real("nanoseconds")});
    table = here([&] { return TimeTable(std::move(points)); });
  }

  void read_common(std::string_view word) {
    if (word == "name") {
      network_.name = rest();
    } else if (word == "source") {
      if (!network_.source.empty()) network_.source += '\n';
      network_.source += rest();
    } else if (word == "ranks-per-host") {
      network_.ranks_per_host = static_cast<int>(whole("ranks", 1 << 20));
    } else if (word == "processors") {
      network_.processors = static_cast<int>(whole("processors", 1 << 20));
    } else if (word == "call") {
      network_.call = time();
    } else if (word == "fold") {
      add_point(network_.fold);
    } else if (word == "copy") {
      add_point(network_.copy);
    } else {
      fail("name, source, ranks-per-host, processors, call, fold, copy, within or across", word);
    }
  }

  void read_level(std::string_view word) {
    if (word == "latency") {
      level_->latency = time();
    } else if (word == "post") {
      level_->post = time();
    } else if (word == "handshake") {
      level_->handshake = time();
    } else if (word == "send") {
      add_point(level_->send);
    } else if (word == "receive") {
      add_point(level_->receive);
    } else if (word == "wire") {
      add_point(level_->wire);
    } else if (word == "eager") {
      level_->eager = bytes();
    } else if (word == "packet") {
      level_->packet = bytes();
    } else if (word == "burst") {
      level_->burst = bytes();
      level_->burst_per_byte = real("nanoseconds per byte");
      if (level_->burst == 0) level_->burst_per_byte = 0;
    } else {
      fail("latency, post, handshake, send, receive, wire, eager, packet, burst, within or across",
           word);
    }
  }

  bool begun_ = false, within_ = false, across_ = false;
  NetworkLevel* level_ = nullptr;
  Network network_;
};

void append(std::string& text, std::string_view word, const TimeTable& table) {
  for (const auto& [bytes, ns] : table.points()) {
    text += fmt::format("{:<9} {:>10} {:>12}\n", word, bytes, ns);
  }
}

void append(std::string& text, std::string_view name, const NetworkLevel& level) {
  text += fmt::format("\n{}\nlatency {}\npost {}\nhandshake {}\n", name, level.latency, level.post,
                      level.handshake);
  if (level.eager != NetworkLevel().eager) text += fmt::format("eager {}\n", level.eager);
  if (level.packet > 0) text += fmt::format("packet {}\n", level.packet);
  if (level.burst > 0) text += fmt::format("burst {} {}\n", level.burst, level.burst_per_byte);
  append(text, "send", level.send);
  append(text, "receive", level.receive);
  append(text, "wire", level.wire);
}

/// Throws unless the text is read back as the network.
void check_read_back(const Network& network, std::string_view text) {
  const auto refuse = [](std::string_view what, std::string_view found) {
    base::refuse("expected a network's {} without # and blanks at its ends, found \"{}\"", what,
                 found);
  };
  if (network.name.empty()) refuse("name", network.name);
  const Network read = parse_network(text, "the network's text");
  if (read.name != network.name) refuse("name", network.name);
  if (read.source != network.source) refuse("source", network.source);
  if (read != network) base::refuse("expected a network of numbers of 0 or more, found others");
}

/// At most 31 years: sums of a few fit 64 bits.
std::int64_t rounded(double ns) { return std::llround(std::min(ns, 1e18)); }

/// The rate of long messages, in bytes per ns (GB/s).
double rate(const NetworkLevel& level) {
  constexpr std::int64_t large = 1 << 24;
  const auto cost = [](const TimeTable& table) {
    return static_cast<double>(table.of(2 * large) - table.of(large));
  };
  return static_cast<double>(large) /
         std::max({cost(level.wire), cost(level.send), cost(level.receive), 1.0});
}

}  // namespace

TimeTable::TimeTable(std::vector<Point> points) : points_(std::move(points)) {
  Point before{-1, 0};
  for (const Point& point : points_) {
    if (point.bytes <= before.bytes || !(point.ns >= before.ns) || !std::isfinite(point.ns)) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("expected more than {} bytes and at least {} ns, found {} and {}",
                              before.bytes, before.ns, point.bytes, point.ns));
    }
    before = point;
  }
}

TimeTable TimeTable::line(double start, double per_byte) {
  constexpr std::int64_t far = 1 << 30;
  return TimeTable({{0, start}, {far, start + per_byte * static_cast<double>(far)}});
}

std::int64_t TimeTable::of(std::int64_t bytes) const {
  if (points_.empty()) return 0;
  Point from{}, to = points_.front();
  for (std::size_t i = 1; i < points_.size() && to.bytes < bytes; ++i) {
    from = to;
    to = points_[i];
  }
  if (to.bytes == 0) return rounded(to.ns);  // the only point, or 0 bytes
  const double share =
      static_cast<double>(bytes - from.bytes) / static_cast<double>(to.bytes - from.bytes);
  return rounded(from.ns + share * (to.ns - from.ns));
}

Network parse_network(std::string_view text, const std::string& origin) {
  return NetworkReader(text, origin).read();
}

std::string print(const Network& network) {
  std::string text = fmt::format("baton-network 1\nname {}\n", network.name);
  // Each line of it, the last one too if it is empty.
  for (std::size_t at = 0; !network.source.empty() && at <= network.source.size();) {
    const std::size_t end = std::min(network.source.find('\n', at), network.source.size());
    text += fmt::format("source {}\n", network.source.substr(at, end - at));
    at = end + 1;
  }
  text += fmt::format("ranks-per-host {}\nprocessors {}\ncall {}\n", network.ranks_per_host,
                      network.processors, network.call);
  append(text, "fold", network.fold);
  append(text, "copy", network.copy);
  append(text, "within", network.within);
  append(text, "across", network.across);
  check_read_back(network, text);
  return text;
}

std::string summary(const Network& network) {
  const auto level = [](const NetworkLevel& l) {
    return fmt::format("{:.3g} us, {:.3g} GB/s",
                       static_cast<double>(l.latency + l.send.of(0) + l.receive.of(0)) * 1e-3,
                       rate(l));
  };
  return fmt::format("{}: within a host {}, across {}", network.name, level(network.within),
                     level(network.across));
}

Network network_named(const std::string& file) {
  if (std::ifstream in(file); in) {
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    if (!in.bad() && !text.empty()) return parse_network(text, file);
  }
  std::string names;
  for (const simulating::ShippedNetwork& shipped : simulating::shipped_network_texts()) {
    if (shipped.name == file) return parse_network(shipped.text, file);
    names += fmt::format("{}{}", names.empty() ? "" : ", ", shipped.name);
  }
  throw Error(ErrorCode::invalid_argument,
              fmt::format("network: expected a file or one of {}, found \"{}\"", names, file));
}

std::vector<std::string> shipped_networks() {
  std::vector<std::string> names;
  for (const simulating::ShippedNetwork& shipped : simulating::shipped_network_texts())
    names.emplace_back(shipped.name);
  return names;
}

}  // namespace baton
