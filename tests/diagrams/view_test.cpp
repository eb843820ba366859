#include "diagrams/view.hpp"

#include <doctest/doctest.h>

#include <string>

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
