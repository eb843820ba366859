#include "baton/timeline.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "baton/error.hpp"
#include "timelines.hpp"

using namespace baton;
using support::rounds;

namespace {

std::string refused(const auto& use) {
  try {
    use();
  } catch (const Error& error) {
    CHECK(error.code == ErrorCode::invalid_argument);
    return error.what();
  }
  return "";
}

/// A timeline of two ranks that follow `text`; times are given as {rank, step, posted, start, end}.
struct Times {
  int rank;
  std::uint32_t step;
  std::int64_t posted, start, end;
};
Timeline timed(std::string_view text, std::initializer_list<Times> times) {
  Timeline timeline = rounds(text);
  timeline.kind = TimelineKind::measured;
  timeline.events.clear();
  for (const Times& t : times) {
    const Step& step =
        (*timeline.operations[0].schedules)[static_cast<std::size_t>(t.rank)].steps()[t.step];
    Event event;
    event.rank = t.rank;
    event.step = t.step;
    event.kind = step.kind;
    event.peer = step.peer;
    event.lane = step.lane;
    event.posted = t.posted;
    event.start = t.start;
    event.end = t.end;
    timeline.events.push_back(event);
  }
  finish(timeline);
  return timeline;
}

/// "rank.step" of each event on the critical path.
std::string path(const Timeline& timeline) {
  std::string text;
  for (const std::uint32_t e : critical_path(timeline)) {
    const Event& event = timeline.events[e];
    text +=
        (text.empty() ? "" : " ") + std::to_string(event.rank) + "." + std::to_string(event.step);
  }
  return text;
}

constexpr std::string_view exchange =
    "baton-schedule 1\ncollective all_reduce\nsize 2\ninput 2\noutput 2\nslots 2\n"
    "rank 0\nsend 1 input[0:2]\nrecv 1 slot[0:2]\nfold output[0:2] = input[0:2] + slot[0:2]\n"
    "rank 1\nsend 0 input[0:2]\nrecv 0 slot[0:2]\nfold output[0:2] = slot[0:2] + input[0:2]\n";

}  // namespace

TEST_CASE("finish puts events in order, from the first on, and counts early arrivals") {
  const Timeline timeline = timed(exchange, {{1, 0, 120, 125, 130},
                                             {0, 2, 150, 150, 160},
                                             {0, 0, 100, 105, 110},
                                             {0, 1, 105, 110, 150},
                                             {1, 1, 90, 95, 98}});
  REQUIRE(timeline.events.size() == 5);
  CHECK(timeline.events[0].posted == 10);
  CHECK(timeline.events[2].kind == StepKind::fold);
  CHECK(timeline.events[3].posted == 0);
  CHECK(timeline.duration() == 70);
  CHECK(timeline.early_arrivals == 1);  // at rank 1, 98, of what was sent at 100
}

TEST_CASE("messages pair by their place in the schedule, also where events were dropped") {
  const std::string text =
      "baton-schedule 1\ncollective broadcast\nsize 2\ninput 0\noutput 3\n"
      "rank 0\nsend 1 output[0:1]\nsend 1 output[1:1]\nsend 1 output[2:1]\n"
      "rank 1\nrecv 0 output[0:1]\nrecv 0 output[1:1]\nrecv 0 output[2:1]\n";
  const Timeline timeline =
      timed(text, {{0, 1, 0, 1, 2}, {0, 2, 3, 4, 5}, {1, 0, 0, 1, 2}, {1, 2, 1, 2, 9}});
  const auto messages = messages_of(timeline);
  REQUIRE(messages.size() == 1);
  CHECK(timeline.events[messages[0].send].step == 2);
  CHECK(timeline.events[messages[0].recv].step == 2);
}

TEST_CASE("every message of every algorithm has two events, the receive after the send") {
  support::for_each_algorithm({1, 3, 4, 8}, [](const Algorithm& algorithm, const Problem& p) {
    CAPTURE(algorithm.name);
    CAPTURE(p.size);
    const Timeline timeline = rounds(p.collective, algorithm.name, p.size, p.count);
    std::size_t sent = 0, steps = 0;
    for (const Schedule& s : *timeline.operations[0].schedules) {
      sent += static_cast<std::size_t>(s.messages());
      steps += s.steps().size();
    }
    CHECK(timeline.events.size() == steps);
    const auto messages = messages_of(timeline);
    CHECK(messages.size() == sent);
    for (const TimedMessage& m : messages) {
      const Event& send = timeline.events[m.send];
      const Event& recv = timeline.events[m.recv];
      CHECK(send.posted < recv.end);
      CHECK(send.bytes == recv.bytes);
    }
    for (const Event& event : timeline.events) {
      CHECK(event.posted <= event.start);
      CHECK(event.start <= event.end);
    }
    CHECK(timeline.early_arrivals == 0);
  });
}

TEST_CASE("in rounds, a step follows what it waits for, and labels are kept") {
  support::for_each_algorithm({2, 4, 5, 8}, [](const Algorithm& algorithm, const Problem& p) {
    CAPTURE(algorithm.name);
    const Timeline timeline = rounds(p.collective, algorithm.name, p.size, p.count);
    const auto& schedules = *timeline.operations[0].schedules;
    std::vector<std::vector<const Event*>> by_step(schedules.size());
    for (std::size_t r = 0; r < schedules.size(); ++r) {
      by_step[r].resize(schedules[r].steps().size());
    }
    for (const Event& event : timeline.events) {
      by_step[static_cast<std::size_t>(event.rank)][event.step] = &event;
    }
    for (std::size_t r = 0; r < schedules.size(); ++r) {
      for (std::size_t i = 0; i < by_step[r].size(); ++i) {
        CHECK(by_step[r][i]->posted / 1000 >= schedules[r].steps()[i].round);
        for (const std::uint32_t d : schedules[r].dependencies(i)) {
          const bool arrives = schedules[r].steps()[d].kind == StepKind::recv;
          if (arrives) CHECK(by_step[r][i]->end > by_step[r][d]->posted);
          if (arrives && schedules[r].steps()[i].kind == StepKind::send) {
            CHECK(by_step[r][i]->posted >= by_step[r][d]->end);
          }
        }
      }
    }
  });
  const Timeline ring = rounds(Collective::all_reduce, "ring", 4, 4);
  CHECK(ring.duration() == 5740);  // 6 rounds; the last ends with its messages
  for (const Event& event : ring.events) {
    const Step& step =
        (*ring.operations[0].schedules)[static_cast<std::size_t>(event.rank)].steps()[event.step];
    CHECK(event.posted / 1000 == step.round);
  }
}

TEST_CASE("a schedule without labels is laid out by what its steps wait for") {
  const Timeline timeline = rounds(
      "baton-schedule 1\ncollective broadcast\nsize 3\ninput 0\noutput 1\n"
      "rank 0\nsend 1 output[0:1]\nrank 1\nrecv 0 output[0:1]\nsend 2 output[0:1]\n"
      "rank 2\nrecv 1 output[0:1]\n");
  CHECK(timeline.events[2].posted == 1000);
  CHECK(timeline.events[3].end == 1740);
}

TEST_CASE("a first round without messages is a round as well") {
  const Timeline timeline = rounds(
      "baton-schedule 1\ncollective all_gather\nsize 2\ninput 1\noutput 2\n"
      "rank 0\nround 0\ncopy output[0:1] = input[0:1]\n"
      "round 1\nsend 1 input[0:1]\nround 2\nrecv 1 output[1:1]\n"
      "rank 1\nround 0\ncopy output[1:1] = input[0:1]\n"
      "round 1\nrecv 0 output[0:1]\nround 2\nsend 0 input[0:1]\n");
  REQUIRE(timeline.events.size() == 6);
  for (const Event& event : timeline.events) {
    const Step& step = (*timeline.operations[0].schedules)[static_cast<std::size_t>(event.rank)]
                           .steps()[event.step];
    CHECK(event.posted / 1000 == step.round);
    CHECK((event.end - 1) / 1000 == step.round);
  }
}

TEST_CASE("rounds want a schedule for each rank") {
  CHECK(refused([] { rounds_of(nullptr, 4); }) == "expected a schedule for each rank, found none");
  auto half = std::make_shared<std::vector<Schedule>>(parse(exchange));
  half->pop_back();
  CHECK(refused([&] { rounds_of(half, 4); }) ==
        "expected one schedule for each rank, found rank 0 of 2 at place 0 of 1");
}

TEST_CASE("the critical path goes by way of messages, dependencies and ranks at work") {
  // Rank 1 begins late; rank 0 waits for its message, then folds.
  CHECK(path(timed(exchange, {{0, 0, 0, 2, 2},
                              {0, 1, 2, 4, 60},
                              {0, 2, 60, 60, 70},
                              {1, 1, 40, 42, 42},
                              {1, 0, 42, 45, 45},
                              {1, 2, 45, 45, 55}})) == "1.1 1.0 0.1 0.2");
  // Rank 0's message was already there when it was expected: its own lateness counts.
  CHECK(path(timed(exchange, {{0, 0, 0, 50, 50},
                              {0, 1, 50, 52, 52},
                              {0, 2, 52, 52, 70},
                              {1, 0, 0, 2, 2},
                              {1, 1, 2, 4, 60},
                              {1, 2, 60, 60, 65}})) == "0.0 0.1 0.2");
  // A fold that waits for the rank to be done with another one.
  const std::string two =
      "baton-schedule 1\ncollective all_reduce\nsize 2\ninput 2\noutput 2\n"
      "rank 0\nfold output[0:1] = input[0:1] + input[1:1]\n"
      "fold output[1:1] = input[0:1] + input[1:1]\nrank 1\n";
  CHECK(path(timed(two, {{0, 0, 0, 0, 30}, {0, 1, 0, 30, 50}})) == "0.0 0.1");
  CHECK(critical_path(Timeline{}).empty());
}

TEST_CASE("the critical path of a late receiver, and of a full window") {
  const std::string text =
      "baton-schedule 1\ncollective broadcast\nsize 2\ninput 0\noutput 2\n"
      "rank 0\nsend 1 output[0:1]\nsend 1 output[1:1]\n"
      "rank 1\nrecv 0 output[0:1]\nrecv 0 output[1:1]\n";
  // The second send waits for the first, which waits for its receiver.
  CHECK(
      path(timed(text,
                 {{0, 0, 0, 1, 40}, {0, 1, 40, 41, 60}, {1, 0, 20, 21, 40}, {1, 1, 21, 22, 60}})) ==
      "1.0 0.0 0.1 1.1");
}

TEST_CASE("the critical path of every algorithm is a chain from the first round to the last") {
  support::for_each_algorithm({2, 4, 8}, [](const Algorithm& algorithm, const Problem& p) {
    CAPTURE(algorithm.name);
    const Timeline timeline = rounds(p.collective, algorithm.name, p.size, p.count);
    const auto chain = critical_path(timeline);
    REQUIRE(!chain.empty());
    CHECK(timeline.events[chain.back()].end == timeline.duration());
    for (std::size_t i = 1; i < chain.size(); ++i) {
      const Event& before = timeline.events[chain[i - 1]];
      const Event& after = timeline.events[chain[i]];
      CHECK((before.rank == after.rank || before.peer == after.rank));
      CHECK(before.posted <= after.end);
    }
  });
}

TEST_CASE("steps of two timelines join, each counted from its own begin") {
  const Timeline one = timed(exchange, {{0, 0, 0, 2, 2}, {1, 0, 5, 6, 30}, {0, 1, 2, 3, 40}});
  const Timeline other = timed(exchange, {{0, 0, 0, 2, 4}, {1, 0, 5, 6, 20}, {1, 1, 7, 8, 50}});
  const auto steps = joined(one, 0, other, 0);
  REQUIRE(steps.size() == 2);
  CHECK(steps[0].difference == -2);
  CHECK(one.events[steps[1].first].rank == 1);
  CHECK(steps[1].difference == 10);
  const Timeline ring = rounds(Collective::all_reduce, "ring", 3, 3);
  CHECK(refused([&] { joined(one, 0, ring, 0); }) ==
        "expected timelines of the same schedules, found those of 2 ranks and of 3");
  CHECK(refused([&] {
          joined(one, 0, rounds(Collective::all_reduce, "ring", 2, 2), 0);
        }).starts_with("expected timelines of the same schedules; rank 0: "));
  CHECK(refused([&] { joined(one, 1, one, 0); }) ==
        "expected an operation with schedules, found number 1 of 1");
}

TEST_CASE("one operation of several, on a part of the ranks") {
  Timeline timeline = rounds(Collective::all_reduce, "ring", 2, 2);
  TimedOperation second = timeline.operations[0];
  timeline.ranks = 4;
  timeline.operations[0].ranks = {0, 1};
  second.ranks = {3, 1};  // its rank 0 is rank 3
  second.name = "second";
  timeline.operations.push_back(second);
  const std::vector<Event> events = timeline.events;
  for (Event event : events) {
    event.operation = 1;
    event.rank = second.rank_of(event.rank);
    if (event.message()) event.peer = second.rank_of(event.peer);
    event.posted += 5000;
    event.start += 5000;
    event.end += 5000;
    timeline.events.push_back(event);
  }
  finish(timeline);
  CHECK(messages_of(timeline).size() == 8);
  CHECK(timeline.duration() > 5000);
  const Timeline one = only(timeline, 1);
  REQUIRE(one.operations.size() == 1);
  CHECK(one.operations[0].name == "second");
  CHECK(one.events.size() == events.size());
  CHECK(one.events[0].posted == 0);
  CHECK(messages_of(one).size() == 4);
  for (const TimedMessage& m : messages_of(one)) {
    const Event& send = one.events[m.send];
    CHECK(one.chunks[send.chunk].text.starts_with("c"));
    CHECK((send.rank == 3 || send.rank == 1));
  }
  CHECK(joined(timeline, 0, timeline, 1).size() == events.size());
  CHECK(refused([&] { only(timeline, 2); }) == "expected an operation from 0 to 1, found 2");
}

TEST_CASE("a hundred thousand messages, and none") {
  const Timeline ring = rounds(Collective::all_reduce, "ring", 224, 224);
  CHECK(messages_of(ring).size() == 2 * 223 * 224);
  CHECK(critical_path(ring).size() >= 2 * 223);
  Timeline none;
  finish(none);
  CHECK(none.duration() == 0);
  CHECK(messages_of(none).empty());
}
