/// Computations in recordings.

#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "baton/communicator.hpp"
#include "baton/record.hpp"
#include "baton/thread.hpp"
#include "baton/timeline.hpp"
#include "baton/trace.hpp"
#include "support/ranks.hpp"

using baton::Communicator;
using baton::Computation;
using baton::ComputationKind;
using baton::Timeline;

namespace {

std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Three computations around an all-reduce.
void compute_and_send(Communicator& world) {
  std::vector<float> x(8, 1);
  std::int64_t begin = now();
  for (const auto kind : {ComputationKind::forward, ComputationKind::backward}) {
    baton::record_computation({kind == ComputationKind::forward ? "0F0" : "0B0", kind, 0}, begin,
                              now());
    world.all_reduce(std::span(x), baton::sum);
    begin = now();
  }
  baton::record_computation({"optimizer", ComputationKind::optimizer, 0}, begin, now());
}

}  // namespace

TEST_CASE("computations are events of the rank that records them, between its messages") {
  for (const int ranks : {1, 2, 3, 4, 5, 7, 8}) {
    CAPTURE(ranks);
    Timeline timeline;
    baton::run_threads(ranks, [&](std::unique_ptr<baton::Transport> transport) {
      Communicator world(std::move(transport));
      CHECK(!baton::records_computations());
      compute_and_send(world);  // which nobody records
      world.start_recording();
      CHECK(baton::records_computations());
      for (int step = 0; step < 2; ++step) compute_and_send(world);
      Timeline recorded = world.stop_recording();
      CHECK(!baton::records_computations());
      if (world.rank() == 0) timeline = std::move(recorded);
    });
    std::vector<std::vector<std::string>> of_rank(static_cast<std::size_t>(ranks));
    for (const baton::Event& event : timeline.events) {
      CHECK(event.posted <= event.start);
      CHECK(event.start <= event.end);
      if (event.kind != baton::StepKind::compute) continue;
      const baton::TimedOperation& operation = timeline.operations[event.operation];
      CHECK(operation.rank_of(0) == event.rank);
      CHECK(timeline.chunks[event.chunk].text == operation.name);
      CHECK(timeline.chunks[event.chunk].computation.has_value());
      of_rank[static_cast<std::size_t>(event.rank)].push_back(operation.name);
    }
    for (const auto& names : of_rank)
      CHECK(names ==
            std::vector<std::string>{"0F0", "0B0", "optimizer", "0F0", "0B0", "optimizer"});
  }
}

TEST_CASE("a thread's computations go to the recording that it has begun") {
  baton::run_threads(2, [](std::unique_ptr<baton::Transport> transport) {
    Communicator world(std::move(transport));
    world.start_recording();
    std::thread([] {
      CHECK(!baton::records_computations());
      baton::record_computation({"none", ComputationKind::other, 0}, 1, 2);
    }).join();
    baton::record_computation({"one", ComputationKind::other, 0}, 1, 2);
    const Timeline timeline = world.stop_recording();
    CHECK(timeline.events.size() == (world.rank() == 0 ? 2 : 0));
  });
}

TEST_CASE("computations of one name share a schedule; those that begin at once keep their order") {
  baton::run_threads(1, [](std::unique_ptr<baton::Transport> transport) {
    Communicator world(std::move(transport));
    world.start_recording();
    for (const char* const name : {"a", "b", "a"})
      baton::record_computation({name, ComputationKind::other, 0}, 1, 2);
    const Timeline timeline = world.stop_recording();
    REQUIRE(timeline.operations.size() == 3);
    CHECK(timeline.operations[0].name == "a");
    CHECK(timeline.operations[1].name == "b");
    CHECK(timeline.operations[2].name == "a");
    CHECK(timeline.operations[0].schedules == timeline.operations[2].schedules);
  });
}

TEST_CASE("the latest events are kept, computations among them") {
  baton::run_threads(1, [](std::unique_ptr<baton::Transport> transport) {
    Communicator world(std::move(transport));
    world.start_recording(4);
    for (std::int64_t i = 1; i <= 10; ++i)
      baton::record_computation({std::to_string(i), ComputationKind::other, 0}, i, i + 1);
    const Timeline timeline = world.stop_recording();
    REQUIRE(timeline.events.size() == 4);
    CHECK(timeline.operations[timeline.events.front().operation].name == "7");
    CHECK(timeline.dropped == std::vector<std::uint64_t>{6});
  });
}
