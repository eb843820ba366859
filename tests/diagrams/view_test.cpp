#include "diagrams/view.hpp"

#include <doctest/doctest.h>

#include <regex>
#include <string>

#include "base/utf8.hpp"
#include "baton/error.hpp"
#include "diagrams/palette.hpp"
#include "diagrams/svg_panel.hpp"
#include "diagrams/text.hpp"
#include "samples.hpp"

using namespace baton;
using namespace baton::diagrams;

namespace {

/// "10-20 30-40"
std::string text(const std::vector<Span>& spans) {
  std::string out;
  for (const Span& span : spans) {
    out += (out.empty() ? "" : " ") + std::to_string(span.from) + "-" + std::to_string(span.to);
  }
  return out;
}

Timeline one_rank(std::initializer_list<Event> events) {
  Timeline timeline;
  timeline.kind = TimelineKind::measured;
  timeline.events = events;
  return timeline;
}

Event at(StepKind kind, std::int64_t posted, std::int64_t start, std::int64_t end) {
  Event event;
  event.kind = kind;
  event.posted = posted;
  event.start = start;
  event.end = end;
  return event;
}

/// The names of hosts beside rows: as shown, and the whole name that goes with it ("": the same).
std::vector<std::pair<std::string, std::string>> hosts_shown(const Timeline& timeline,
                                                             double pitch) {
  Frame frame;
  frame.right = 1000;
  frame.pitch = pitch;
  const std::string svg = background_svg(View(timeline, {}), frame);
  const std::regex text("<text class=\"host\"[^>]*>(?:<title>([^<]*)</title>)?([^<]*)</text>");
  std::vector<std::pair<std::string, std::string>> shown;
  for (std::sregex_iterator at(svg.begin(), svg.end(), text), end; at != end; ++at)
    shown.emplace_back((*at)[2], (*at)[1]);
  return shown;
}

}  // namespace

TEST_CASE("a rank waits while messages are outstanding and it is not at work") {
  const Timeline timeline = one_rank({
      at(StepKind::send, 0, 10, 30),   // at work to 10
      at(StepKind::recv, 10, 15, 50),  // at work to 15
      at(StepKind::fold, 20, 25, 35),  // at work while both are outstanding
      at(StepKind::copy, 60, 60, 70),  // nothing is outstanding
      at(StepKind::recv, 80, 85, 90),  // and once more
  });
  CHECK(text(View(timeline, {}).waiting(0)) == "15-25 35-50 85-90");
}

TEST_CASE("a view shows what lies in it, and refuses what does not exist") {
  const Timeline ring = support::timed(support::rounds(Collective::all_reduce, "ring", 4, 4096),
                                       TimelineKind::predicted);
  const View all(ring, {});
  CHECK(all.messages.size() == 24);
  CHECK(all.hidden == 0);
  CHECK(all.origins == 4);
  const View part(ring, {.ranks = {2, 1, 2}, .to = ring.duration() / 2});
  CHECK(part.ranks == std::vector<int>{1, 2});
  CHECK(part.row_of == std::vector<int>{-1, 0, 1, -1});
  CHECK(part.messages.size() + part.hidden == 24);
  for (const TimedMessage& m : part.messages) {
    CHECK(part.event(m.send).rank == 1);
    CHECK(part.event(m.recv).rank == 2);
    CHECK(part.event(m.send).posted <= part.to);
  }
  CHECK_THROWS_AS(View(ring, {.ranks = {4}}), Error);
  CHECK_THROWS_AS(View(ring, {.from = ring.duration()}), Error);
  const View empty(ring, {.from = ring.duration() + 1}, true);
  CHECK(empty.messages.empty());
  CHECK(empty.to >= empty.from);
}

TEST_CASE("names of hosts stay in their bands; what is cut is a title") {
  Timeline ring = support::rounds(Collective::all_reduce, "ring", 4, 4);
  ring.hosts = {0, 1, 2, 3};
  ring.host_names = {"ip-172-31-22-101.ec2.internal", "ip-172-31-22-102.ec2.internal",
                     "größter-möglicher-wirt", "10.0.0.14"};
  for (const double pitch : {300.0, 120.0, 84.0, 42.0, 24.0}) {
    CAPTURE(pitch);
    const auto shown = hosts_shown(ring, pitch);
    REQUIRE(shown.size() == 4);
    for (std::size_t host = 0; host < 4; ++host) {
      const std::string &text = shown[host].first, &title = shown[host].second;
      CAPTURE(text);
      const auto characters =
          std::ranges::count_if(text, [](char byte) { return !base::continues_character(byte); });
      CHECK(6.1 * static_cast<double>(characters) <= pitch);
      CHECK((text == ring.host_names[host] ? "" : ring.host_names[host]) == title);
    }
    CHECK(shown[0].first != shown[1].first);
  }
  CHECK(hosts_shown(ring, 300)[0].first == "ip-172-31-22-101.ec2.internal");
  CHECK(hosts_shown(ring, 120)[0].first == "ip-172-31-22-101");
  CHECK(hosts_shown(ring, 84)[0].first == "…2-31-22-101");
  CHECK(hosts_shown(ring, 84)[2].first == "…licher-wirt");
  CHECK(hosts_shown(ring, 42)[3].first == "…0.14");
}

TEST_CASE("numbers as people read them") {
  CHECK(time_text(999) == "999 ns");
  CHECK(time_text(1000) == "1.00 µs");
  CHECK(time_text(9'996) == "10.0 µs");
  CHECK(time_text(123'456) == "123 µs");
  CHECK(time_text(999'600) == "1.00 ms");
  CHECK(time_text(-2'500'000'000) == "-2.50 s");
  CHECK(bytes_text(1023) == "1023 B");
  CHECK(bytes_text(1536) == "1.5 KiB");
  CHECK(escaped("1>4 & \"x\"\x01") == "1&gt;4 &amp; &quot;x&quot; ");
  CHECK(tick_step(21'600, 10) == 5000);
  CHECK(tick_step(1, 10) == 1);
  CHECK(tick_step(100, 10) == 10);
}

TEST_CASE("bytes that are no characters of XML are replaced, each") {
  const std::string instead = "\ufffd";
  CHECK(escaped("größe · €, 𝄞") == "größe · €, 𝄞");
  CHECK(escaped("a\xff"
                "b\x80"
                "c") == "a" + instead + "b" + instead + "c");
  CHECK(escaped("end\xe2\x82") == "end" + instead + instead);
  CHECK(escaped("\xf0\x9d\x84<") == instead + instead + instead + "&lt;");
  for (const char* wrong : {"\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80",
                            "\xef\xbf\xbe", "\xef\xbf\xbf"}) {
    std::string text = escaped(wrong);  // too long, half a pair, too large, no character
    while (text.starts_with(instead)) text.erase(0, instead.size());
    CHECK(text == "");
  }
}

TEST_CASE("JSON in a page neither ends its script nor begins a comment") {
  CHECK(json_text("a <!-- b <script> c </script>") ==
        R"("a \u003c!-- b \u003cscript> c \u003c/script>")");
  CHECK(json_text("\xff") == "\"\ufffd\"");
}

TEST_CASE("what is known of a recording's quality is said") {
  Timeline timeline;
  timeline.kind = TimelineKind::measured;
  CHECK(source_text(timeline) == "measured; one clock");
  timeline.clock_error = 3100;
  timeline.early_arrivals = 2;
  timeline.dropped = {0, 7};
  CHECK(source_text(timeline) ==
        "measured; clocks of hosts within 3.10 µs of rank 0's; 2 messages arrive before they were "
        "sent; "
        "7 events not recorded");
  timeline.kind = TimelineKind::predicted;
  timeline.parameters = "1 Gbit/s";
  CHECK(source_text(timeline) == "predicted: 1 Gbit/s");
}

TEST_CASE("colours differ") {
  for (const int n : {1, 8, 9, 16, 32, 96}) {
    const Palette palette(n);
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < i; ++j) CHECK(palette[i].hex() != palette[j].hex());
    }
  }
  CHECK(Palette(4)[-1].hex() == Palette(4)[7].hex());
}
