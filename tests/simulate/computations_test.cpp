// Every number here is worked out from the rules in lib/simulate/README.md, none by the simulator.

#include <doctest/doctest.h>

#include "simulate/support.hpp"
#include "support/programs.hpp"

using namespace baton;
using simulate_support::by_hand;
using Times = std::vector<std::int64_t>;

namespace {

using Schedules = std::shared_ptr<const std::vector<Schedule>>;

Schedules read(const std::string& text) {
  return std::make_shared<const std::vector<Schedule>>(parse(text));
}

/// Rank 1 passes a message on while it computes.
constexpr const char* relay = R"(baton-schedule 1
collective program
size 3
input 0
output 0
rank 0
compute 0 other a writes scratch[0:25]
send 1 scratch[0:25]
rank 1
compute 10000 other b
recv 0 scratch[0:25]
send 2 scratch[0:25]
rank 2
recv 1 scratch[0:25]
)";

/// When the step of this name ends.
std::int64_t end_of(const Prediction& prediction, const std::string& name) {
  for (const Event& event : prediction.timeline->events) {
    if (event.kind != StepKind::compute) continue;
    const auto& schedule =
        (*prediction.timeline->operations[0].schedules)[static_cast<std::size_t>(event.rank)];
    if (schedule.computation(schedule.steps()[event.step]).name == name) return event.end;
  }
  return -1;
}

}  // namespace

TEST_CASE("computations and nothing else take their time") {
  const Schedules one = read(
      "baton-schedule 1\ncollective program\nsize 1\ninput 0\noutput 0\nrank 0\n"
      "compute 30 forward a\ncompute 12 backward b\ncompute 0 other c\n");
  CHECK(simulate(one, 4, Network{}).total == 42);
  SimulateOptions twice;
  twice.calls = 2;
  Network network;
  network.call = 5;
  CHECK(simulate(one, 4, network, twice).total == 94);
}

TEST_CASE("two stages without messages' times") {
  const Prediction p = simulate(read(support::two_stages), 4, Network{});
  CHECK(p.finish == Times{9000, 7000});
}

TEST_CASE("two stages with messages of 16 bytes") {
  // Rank 0: posts until 100, 0F0 until 1100, sends, 0F1 from 1200 to 2200, sends until 2300. The
  // messages take 26 on the wire and 1000. Rank 1: 1F0 from 2426 to 3426, takes the second message,
  // which came at 3326, 1F1 until 4626, 1B0 until 6626, 1B1 from 6726 to 8726. Rank 0: takes until
  // 7952, 0B0 until 9952, takes, 0B1 until 12152.
  SimulateOptions options;
  options.timeline = true;
  const Prediction p = simulate(read(support::two_stages), 4, by_hand(), options);
  CHECK(p.finish == Times{12152, 8826});
  CHECK(p.messages == 4);
  CHECK(end_of(p, "1F0") == 3426);
  // With panels of 300, it takes the second message at 2426 + 3 * 300.
  options.panel = 300;
  const Prediction panels = simulate(read(support::two_stages), 4, by_hand(), options);
  CHECK(panels.finish == Times{12152, 8826});
  CHECK(end_of(panels, "1F0") == 3626);
}

TEST_CASE("a message passes a rank that computes at the end of a panel") {
  // There at 1210 (0 for the computation of rank 0). Without panels taken at 10050.
  CHECK(simulate(read(relay), 4, by_hand()).finish == Times{100, 10350, 11660});
  SimulateOptions options;
  options.panel = 1000;  // at 50 + 2 * 1000
  CHECK(simulate(read(relay), 4, by_hand(), options).finish == Times{100, 10350, 3660});
  options.panel = 20000;
  CHECK(simulate(read(relay), 4, by_hand(), options).finish == Times{100, 10350, 11660});
}

TEST_CASE("a message does not pass a rank that computes alone") {
  std::string text = relay;
  const std::string computation = "compute 10000 other b";
  text.replace(text.find(computation), computation.size(), computation + " alone");
  SimulateOptions options;
  options.panel = 1000;
  CHECK(simulate(read(text), 4, by_hand(), options).finish == Times{100, 10350, 11660});
}

namespace {

/// Three messages of 16 bytes, of which two are under way at once, beside a computation.
Prediction three_messages(const std::string& computations, std::int64_t panel) {
  SimulateOptions options;
  options.panel = panel;
  return simulate(read("baton-schedule 1\ncollective program\nsize 2\ninput 0\noutput 0\nrank 0\n"
                       "send 1 scratch[0:4]\nsend 1 scratch[4:4]\nsend 1 scratch[8:4]\n" +
                       computations +
                       "rank 1\nrecv 0 scratch[0:4]\nrecv 0 scratch[4:4]\nrecv 0 scratch[8:4]\n"),
                  4, by_hand(), options);
}

}  // namespace

TEST_CASE("a computation begins before the rank notices that messages have left") {
  // Two messages are posted until 200, and computed until 10200; the third one is posted until
  // 10300, is there at 11326 and taken at 11526.
  const Times late{10300, 11526};
  CHECK(three_messages("compute 10000 other b alone\n", 1000).finish == late);
  CHECK(three_messages("compute 10000 other b\n", 0).finish == late);
  // Posted at the end of the first panel, from 1200 to 1300, so there at 2326.
  CHECK(three_messages("compute 10000 other b\n", 1000).finish == Times{10300, 2526});
}

TEST_CASE("a rank looks at its messages at the end of a computation that advances them") {
  // The third message is posted from 200 to 300, and there at 1326. The first was taken from 1126
  // to 1326, the third receive posted until 1376, the second message taken until 1576.
  const Times soon{10300, 1776};
  CHECK(three_messages("compute 0 other c\ncompute 10000 other b alone\n", 1000).finish == soon);
  CHECK(three_messages("compute 0 other c\ncompute 10000 other b alone\n", 0).finish == soon);
  CHECK(three_messages("compute 0 other c alone\ncompute 10000 other b alone\n", 1000).finish ==
        Times{10300, 11526});
}

TEST_CASE("ranks that share processors compute in turn") {
  const Schedules both = read(
      "baton-schedule 1\ncollective program\nsize 2\ninput 0\noutput 0\n"
      "rank 0\ncompute 30 forward a\nrank 1\ncompute 12 forward b\n");
  Network network;
  network.processors = 1;
  CHECK(simulate(both, 4, network).finish == Times{30, 42});
  network.processors = 2;
  CHECK(simulate(both, 4, network).finish == Times{30, 12});
}

TEST_CASE("a rank that has looked at its messages looks again after the next computation only") {
  // Both messages are there at 1126, from two ranks. b waits for the first, which is taken until
  // 1326, and begins then; the second is taken after it.
  const Schedules schedules = read(
      "baton-schedule 1\ncollective program\nsize 3\ninput 0\noutput 0\n"
      "rank 0\nsend 2 scratch[0:4]\nrank 1\nsend 2 scratch[4:4]\n"
      "rank 2\ncompute 10 other a\nrecv 0 scratch[0:4]\nrecv 1 scratch[4:4]\n"
      "compute 5000 other b alone reads scratch[0:4]\n");
  SimulateOptions options;
  options.timeline = true;
  CHECK(end_of(simulate(schedules, 4, by_hand(), options), "b") == 1326 + 5000);
}

TEST_CASE("computations apart leave processors to messages") {
  Network network = by_hand();
  network.processors = 1;
  SimulateOptions options;
  options.computes_apart = true;
  const Schedules both = read(
      "baton-schedule 1\ncollective program\nsize 2\ninput 0\noutput 0\n"
      "rank 0\ncompute 3000 forward a\nrank 1\ncompute 1200 forward b\n");
  CHECK(simulate(both, 4, network, options).finish == Times{3000, 1200});
  // Rank 0 posts until 200, then rank 1 its receives until 300; it keeps the processor. Messages
  // are there at 1126 and 1226. Where it computes, too, it posts until 300 as well, and takes
  // messages at 3300.
  const std::string sends =
      "baton-schedule 1\ncollective program\nsize 2\ninput 0\noutput 0\nrank 0\n"
      "send 1 scratch[0:4]\nsend 1 scratch[4:4]\ncompute 10000 other b alone\n"
      "rank 1\nrecv 0 scratch[0:4]\nrecv 0 scratch[4:4]\n";
  const Schedules messages = read(sends);
  CHECK(simulate(messages, 4, network, options).finish == Times{10200, 1526});
  CHECK(simulate(read(sends + "compute 3000 other c alone\n"), 4, network, options).finish ==
        Times{10200, 3700});
  // A computation of no time keeps the processor: rank 1 begins behind it.
  std::string nothing = sends;
  nothing.replace(nothing.find("compute 10000"), 13, "compute 0");
  CHECK(simulate(read(nothing), 4, network, options).finish == Times{200, 1526});
  options.computes_apart = false;  // rank 0 gives its processor away when it has computed
  CHECK(simulate(messages, 4, network, options).finish == Times{10200, 10700});
}

TEST_CASE("ranks that differ in the time of a computation only are told apart") {
  std::string text = "baton-schedule 1\ncollective program\nsize 8\ninput 0\noutput 0\n";
  Times expected;
  for (int r = 0; r < 8; ++r) {
    text +=
        "rank " + std::to_string(r) + "\ncompute " + std::to_string(10 + r % 3) + " forward a\n";
    expected.push_back(10 + r % 3);
  }
  const Schedules schedules = read(text);
  CHECK(simulate(schedules, 4, Network{}).finish == expected);
  const auto schedule_of = [&](int rank) { return (*schedules)[static_cast<std::size_t>(rank)]; };
  CHECK(simulate(8, schedule_of, 4, Network{}).finish == expected);
}

TEST_CASE("an embedded collective takes as long as alone, between computations") {
  const Registry registry = Registry::builtin();
  for (const int size : {1, 2, 3, 4, 5, 7, 8}) {
    for (const Algorithm* algorithm : registry.of(Collective::all_reduce)) {
      if (algorithm->hierarchical) continue;
      auto program = std::make_shared<std::vector<Schedule>>();
      for (int r = 0; r < size; ++r)
        program->push_back(support::compute_reduce_compute(*algorithm, size, r, 100));
      Network network = by_hand();
      network.within.post = 0;  // posts come early beside a computation
      const Prediction alone = simulate_support::predicted("all_reduce", algorithm->name, size,
                                                           size == 1 ? 0 : 100, network);
      CHECK(simulate(program, 4, network).total == 1500 + alone.total);
    }
  }
}
