#include "trace/recorder.hpp"

#include <doctest/doctest.h>

#include "parts.hpp"

using namespace baton;
using namespace baton::tracing;

namespace {

std::uint32_t add_ring(Recorder& recorder, std::uint32_t group,
                       std::shared_ptr<const void> plan = std::make_shared<int>(0)) {
  return recorder.add_plan(group, {}, std::move(plan), [](const void*) {
    return support::ring_part(0, 2, 1).plans[0].schedule;
  });
}

}  // namespace

TEST_CASE("the latest events are kept, the others counted") {
  for (const std::size_t room : {1, 3, 7, 8, 100}) {
    Recorder recorder(room);
    const auto plan = add_ring(recorder, recorder.add_group({0, 1}));
    const std::vector<Moments> steps{{1, 2, 3}, {4, 5, 6}, {7, 8, 9}};
    for (std::uint32_t call = 0; call < 10; ++call) recorder.add_run(plan, call, steps);
    const Part part = recorder.take(0, 2);
    const std::size_t kept = std::min<std::size_t>(room, 30);
    REQUIRE(part.records.size() == kept);
    CHECK(part.dropped == 30 - kept);
    for (std::size_t i = 0; i < kept; ++i) {
      const auto number = static_cast<std::uint32_t>(30 - kept + i);
      const Part::Record& record = part.records[i];
      CHECK(record.sequence == number / 3);
      CHECK(record.step == number % 3);
      CHECK(record.posted == steps[record.step].posted);
      CHECK(record.end == steps[record.step].end);
    }
  }
}

TEST_CASE("steps that a run has not come to are left out") {
  Recorder recorder(10);
  const auto plan = add_ring(recorder, recorder.add_group({0, 1}));
  recorder.add_run(plan, 0, std::vector<Moments>{{1, 2, 3}, {4, 5, 0}, {7, 8, 9}});
  const Part part = recorder.take(0, 2);
  REQUIRE(part.records.size() == 2);
  CHECK(part.records[1].step == 2);
  CHECK(part.dropped == 0);
}

TEST_CASE("what was taken is not there any more") {
  Recorder recorder(10);
  const auto plan = add_ring(recorder, recorder.add_group({0, 1}));
  recorder.add_run(plan, 0, std::vector<Moments>{{1, 2, 3}});
  CHECK(recorder.take(0, 2).records.size() == 1);
  CHECK(recorder.take(0, 2).records.empty());
  recorder.add_run(plan, 1, std::vector<Moments>{{1, 2, 3}});
  CHECK(recorder.take(0, 2).records.size() == 1);
}

TEST_CASE("groups of the same members are told apart by their number") {
  Recorder recorder(10);
  recorder.add_group({0, 1});
  recorder.add_group({1, 0});
  recorder.add_group({0, 1});
  const Part part = recorder.take(0, 2);
  REQUIRE(part.groups.size() == 3);
  CHECK(part.groups[0].number == 0);
  CHECK(part.groups[1].number == 0);
  CHECK(part.groups[2].number == 1);
}

TEST_CASE("plans are kept while somebody holds them or events refer to them, and not for good") {
  Recorder recorder(4);
  const auto group = recorder.add_group({0, 1});
  const auto held = std::make_shared<int>(1);
  const auto first = add_ring(recorder, group, held);
  std::weak_ptr<const void> dropped;
  std::uint32_t last = 0;
  for (int i = 0; i < 5000; ++i) {
    const auto plan = std::make_shared<int>(i);
    if (i == 0) dropped = plan;
    last = add_ring(recorder, group, plan);
    recorder.add_run(last, static_cast<std::uint32_t>(i), std::vector<Moments>{{1, 2, 3}});
  }
  CHECK(dropped.expired());
  recorder.add_run(first, 5000, std::vector<Moments>{{1, 2, 3}});
  const Part part = recorder.take(0, 2);
  CHECK(part.records.size() == 4);
  CHECK(part.plans.size() == 4);  // those of the events
  CHECK(part.records.back().sequence == 5000);
}
