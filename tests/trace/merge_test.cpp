#include <doctest/doctest.h>

#include <algorithm>

#include "parts.hpp"
#include "support/ranks.hpp"

using namespace baton;
using namespace support;

namespace {

std::vector<tracing::Part> parts(int ranks, std::uint32_t calls) {
  std::vector<tracing::Part> all;
  for (int r = 0; r < ranks; ++r) all.push_back(ring_part(r, ranks, calls));
  return all;
}

}  // namespace

TEST_CASE("parts become one timeline") {
  const Timeline timeline = tracing::merged(parts(3, 2), false);
  CHECK(timeline.kind == TimelineKind::measured);
  CHECK(timeline.ranks == 3);
  CHECK(timeline.host_names == std::vector<std::string>{"host0", "host1", "host2"});
  CHECK(timeline.hosts == std::vector<int>{0, 1, 2});
  REQUIRE(timeline.operations.size() == 2);
  for (const TimedOperation& operation : timeline.operations) {
    CHECK(operation.name == "all_reduce");
    CHECK(operation.choice.algorithm == "ring");
    CHECK(operation.bytes == 32);
    REQUIRE(operation.schedules->size() == 3);
    for (int r = 0; r < 3; ++r)
      CHECK(operation.schedules->at(static_cast<std::size_t>(r)).rank() == r);
  }
  CHECK(timeline.operations[0].schedules == timeline.operations[1].schedules);
  std::size_t steps = 0;
  for (const Schedule& schedule : *timeline.operations[0].schedules)
    steps += schedule.steps().size();
  CHECK(timeline.events.size() == 2 * steps);
  for (const Event& event : timeline.events) {
    const Schedule& schedule =
        timeline.operations[event.operation].schedules->at(static_cast<std::size_t>(event.rank));
    const Step& step = schedule.steps()[event.step];
    CHECK(event.kind == step.kind);
    CHECK(event.peer == (step.message() ? step.peer : -1));
    CHECK(event.bytes == schedule.length(step) * 4);
    CHECK(event.start == event.posted + 10);
    CHECK(event.end == event.posted + 90);
  }
}

TEST_CASE("times are put on rank 0's clock") {
  auto all = parts(2, 1);
  // Its clock is 1000 behind, and loses 1 in 100.
  tracing::Part& late = all[1];
  late.clock = 1;
  for (auto& record : late.records) {
    for (std::int64_t* time : {&record.posted, &record.start, &record.end})
      *time = *time - 1000 - *time / 100;
  }
  const auto sample = [](std::int64_t true_time, std::int64_t error) {
    const std::int64_t local = true_time - 1000 - true_time / 100;
    return tracing::ClockSample{local, true_time - local, error};
  };
  late.before = sample(0, 3);
  late.after = sample(1'000'000, 5);
  const Timeline timeline = tracing::merged(all, false);
  CHECK(timeline.clock_error == 6);
  const auto first_of = [&](int rank) {
    const auto event = std::find_if(timeline.events.begin(), timeline.events.end(),
                                    [&](const Event& e) { return e.rank == rank; });
    return event->posted;
  };
  CHECK(std::abs(first_of(0) - first_of(1)) <= timeline.clock_error);
}

TEST_CASE("a clock that was not compared is refused unless forced") {
  const tracing::ClockSample sample{0, 40, 1};
  for (const bool half : {false, true}) {
    auto all = parts(2, 1);
    all[1].clock = 1;
    if (half) all[1].before = sample;
    CHECK(holds(error_of([&] { tracing::merged(all, false); }).what(),
                {"expected the clock of rank 1 (host1)", "before and after", "--force"}));
    const Timeline forced = tracing::merged(all, true);
    const auto event = std::find_if(forced.events.begin(), forced.events.end(),
                                    [](const Event& e) { return e.rank == 1; });
    CHECK(event->posted == (half ? 40 : 0));
  }
}

TEST_CASE("arrivals before their injection are counted") {
  auto all = parts(2, 1);
  CHECK(tracing::merged(all, false).early_arrivals == 0);
  for (auto& record : all[0].records) {
    for (std::int64_t* time : {&record.posted, &record.start, &record.end}) *time += 1'000'000;
  }
  // Both of rank 0's messages arrive long before they were sent.
  CHECK(tracing::merged(all, false).early_arrivals == 2);
}

TEST_CASE("groups are told apart, and ranks are the timeline's") {
  auto all = parts(4, 1);
  for (tracing::Part& part : all) {
    // Another communicator of two ranks each, the higher first.
    const int low = part.rank / 2 * 2;
    part.groups.push_back({{low + 1, low}, 0});
    tracing::Part other = ring_part(1 - part.rank % 2, 2, 1, 50'000);
    part.plans.push_back(other.plans[0]);
    part.plans[1].group = 1;
    for (auto record : other.records) {
      record.plan = 1;
      part.records.push_back(record);
    }
  }
  const Timeline timeline = tracing::merged(all, false);
  REQUIRE(timeline.operations.size() == 3);
  CHECK(timeline.operations[0].ranks.empty());
  CHECK(timeline.operations[1].ranks == std::vector<int>{1, 0});
  CHECK(timeline.operations[2].ranks == std::vector<int>{3, 2});
  for (const Event& event : timeline.events) {
    if (event.operation == 2 && event.message()) CHECK(event.rank + event.peer == 5);
  }
  CHECK(messages_of(timeline).size() == 4 * 6 + 2 * (2 * 2));
}

TEST_CASE("without a rank's part there are the others'") {
  auto all = parts(3, 1);
  all.erase(all.begin() + 1);
  all[0].dropped = 5;
  const Timeline timeline = tracing::merged(all, false);
  CHECK(timeline.ranks == 3);
  REQUIRE(timeline.operations.size() == 1);
  CHECK(timeline.operations[0].schedules->at(1).steps().empty());
  CHECK(timeline.dropped == std::vector<std::uint64_t>{5, 0, 0});
  CHECK(std::none_of(timeline.events.begin(), timeline.events.end(),
                     [](const Event& event) { return event.rank == 1; }));
}

TEST_CASE("what is not one recording is refused") {
  CHECK(holds(error_of([] { tracing::merged({}, false); }).what(), {"at least one rank"}));
  auto all = parts(2, 1);
  all.push_back(all[1]);
  CHECK(holds(error_of([&] { tracing::merged(all, false); }).what(), {"two of rank 1"}));
  all.back() = ring_part(2, 3, 1);
  CHECK(holds(error_of([&] { tracing::merged(all, false); }).what(), {"of 2 ranks and one of 3"}));
  all.back() = ring_part(0, 2, 1);
  all.back().rank = 9;
  CHECK(holds(error_of([&] { tracing::merged(all, false); }).what(), {"ranks below 2, found 9"}));
}

TEST_CASE("a part of very many ranks takes no more memory than parts of all would justify") {
  tracing::Part part = ring_part(0, 1, 0);
  part.ranks = 1 << 19;
  part.groups[0].members.resize(1 << 19);
  for (int r = 0; r < part.ranks; ++r) part.groups[0].members[static_cast<std::size_t>(r)] = r;
  Schedule::Header header;
  header.size = part.ranks;
  header.output = 1;
  const tracing::Part::Plan plan{0, part.plans[0].what,
                                 Schedule(header, {Step{StepKind::divide, 0, -1, 0, 0, {1, 0, 0}}},
                                          {contiguous(Buffer::output, 0, 1)})};
  part.plans.assign(1, plan);
  part.records.push_back({1, 2, 3, 0, 0, 0});
  CHECK(tracing::merged({part}, true).operations.at(0).schedules->size() == 1 << 19);
  // Each of these calls would take another 100 MB.
  for (std::uint32_t call = 1; call < 1000; ++call) {
    part.plans.push_back(plan);
    part.records.push_back({1, 2, 3, call, call, 0});
  }
  const Error error = error_of([&] { tracing::merged({part}, true); });
  CHECK(holds(error.what(), {"expected the parts of more ranks, found those of 1 of 524288"}));
}
