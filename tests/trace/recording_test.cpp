#include <doctest/doctest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <latch>
#include <map>
#include <mutex>
#include <numeric>
#include <set>
#include <string>

#include "baton/baton.hpp"
#include "baton/record.hpp"
#include "baton/trace.hpp"
#include "support/ranks.hpp"
#include "support/schedules.hpp"
#include "support/temporary_folder.hpp"

using namespace baton;
using namespace support;

namespace {

/// What all ranks record while they do `body`; an error on any fails the test.
Timeline recorded(int ranks, const std::function<void(Communicator&)>& body,
                  std::int64_t events = 1 << 16, const ThreadOptions& threads = {}) {
  Timeline timeline;
  on_ranks(
      ranks,
      [&](Communicator& comm) {
        comm.start_recording(events);
        body(comm);
        Timeline own = comm.stop_recording();
        if (comm.rank() == 0) {
          timeline = std::move(own);
        } else {
          CHECK(own.events.empty());
        }
      },
      test_options(), threads);
  return timeline;
}

/// That every step of every operation is there once, in an order that its dependencies allow, and
/// no message arrives before it was sent.
void check_whole(const Timeline& timeline) {
  CHECK(timeline.early_arrivals == 0);
  CHECK(timeline.dropped.empty());
  std::map<std::tuple<std::uint32_t, int, std::uint32_t>, const Event*> found;
  for (const Event& event : timeline.events) {
    CHECK(event.posted <= event.start);
    CHECK(event.start <= event.end);
    CHECK(found.emplace(std::tuple(event.operation, event.rank, event.step), &event).second);
  }
  std::size_t steps = 0, messages = 0;
  for (std::uint32_t o = 0; o < timeline.operations.size(); ++o) {
    const TimedOperation& operation = timeline.operations[o];
    for (const Schedule& schedule : *operation.schedules) {
      const int rank = operation.rank_of(schedule.rank());
      messages += static_cast<std::size_t>(schedule.messages());
      for (std::uint32_t i = 0; i < schedule.steps().size(); ++i, ++steps) {
        const auto event = found.find({o, rank, i});
        REQUIRE(event != found.end());
        for (const std::uint32_t before : schedule.dependencies(i)) {
          CHECK(event->second->posted >= found.at({o, rank, before})->end);
        }
      }
    }
  }
  CHECK(timeline.events.size() == steps);
  CHECK(messages_of(timeline).size() == messages);
}

std::vector<float> ones(std::size_t count) { return std::vector<float>(count, 1); }

std::string temporary(const std::string& name) {
  static const support::TemporaryFolder folder;
  return folder / name;
}

}  // namespace

TEST_CASE("every step of every algorithm is recorded once, small and large, again and again") {
  const Registry registry = Registry::builtin();
  for (const Algorithm& algorithm : registry.all()) {
    for (const int ranks : {2, 4, 5}) {
      if (!refusal(algorithm, problem(algorithm.collective, ranks, 0, 64)).empty()) continue;
      for (const std::int64_t count : {1, 5000}) {
        CAPTURE(algorithm.name);
        CAPTURE(ranks);
        const Choice choice{algorithm.name, count > 1 ? 4096 : 0};
        const Timeline timeline = recorded(ranks, [&](Communicator& comm) {
          std::vector<float> in(static_cast<std::size_t>(count * ranks), 1), out(in.size());
          Call call;
          call.collective = algorithm.collective;
          call.op = sum;
          call.choice = choice;
          const bool blocks_in = algorithm.collective == Collective::scatter ||
                                 algorithm.collective == Collective::reduce_scatter ||
                                 algorithm.collective == Collective::all_to_all;
          const bool blocks_out = algorithm.collective == Collective::gather ||
                                  algorithm.collective == Collective::all_gather ||
                                  algorithm.collective == Collective::all_to_all;
          call.input = ConstData(in.data(), blocks_in ? count * ranks : count, Datatype::f32);
          call.output = Data(out.data(), blocks_out ? count * ranks : count, Datatype::f32);
          if (algorithm.collective == Collective::broadcast) call.input = {};
          if (algorithm.collective == Collective::barrier) call.input = {}, call.output = {};
          for (int i = 0; i < 3; ++i) comm.run(call);
        });
        REQUIRE(timeline.operations.size() == 3);
        CHECK(timeline.operations[0].name == name(algorithm.collective));
        CHECK(timeline.operations[0].choice.algorithm == algorithm.name);
        check_whole(timeline);
      }
    }
  }
}

TEST_CASE("every way to call is recorded") {
  const Timeline timeline = recorded(3, [](Communicator& comm) {
    auto in = ones(300), out = ones(300), small = ones(2), small_out = ones(2);
    auto large = ones(20000);      // its scratch is borrowed for each call
    for (int i = 0; i < 3; ++i) {  // the first of its kind, then repeated ones
      comm.all_reduce(large, sum);
      comm.all_reduce(in, out, sum);
      comm.all_reduce(small, small_out, sum);
    }
    PersistentCall persistent = comm.plan(calls::all_reduce(in, out, max));
    persistent.run();
    persistent.start().wait();
    Request first = comm.start_all_reduce(in, out, sum);
    Request second = comm.start_barrier();
    second.wait();
    first.wait();
    const Data tensors[] = {Data(small), Data(out)};
    comm.all_reduce(tensors, sum);
    const Schedule own =
        Registry::builtin()
            .find(Collective::all_reduce, "ring")
            .generate(problem(Collective::all_reduce, comm.size(), comm.rank(), 300));
    comm.run(own, in, out, sum);
  });
  CHECK(timeline.operations.size() == 9 + 2 + 2 + 1 + 1);
  check_whole(timeline);
  const auto is = [&](const char* name, const char* type, const char* op, std::int64_t bytes) {
    return std::count_if(
        timeline.operations.begin(), timeline.operations.end(), [&](const TimedOperation& o) {
          return o.name == name && o.type == type && o.op == op && o.bytes == bytes;
        });
  };
  CHECK(is("all_reduce", "f32", "sum", 1200) == 3 + 1 + 1);
  CHECK(is("all_reduce", "f32", "sum", 8) == 3);
  CHECK(is("all_reduce", "f32", "sum", 80000) == 3);
  CHECK(is("all_reduce", "f32", "max", 1200) == 2);
  CHECK(is("all_reduce", "f32", "sum", 1208) == 1);
}

TEST_CASE("messages that are late are recorded as late") {
  ThreadOptions threads;
  threads.seed = 42;
  const Timeline timeline = recorded(
      4,
      [](Communicator& comm) {
        auto data = ones(1000);
        for (const char* algorithm : {"ring", "recursive_doubling", "tree"})
          comm.all_reduce(data, sum, {algorithm, 512});
      },
      1 << 16, threads);
  CHECK(timeline.operations.size() == 3);
  check_whole(timeline);
}

TEST_CASE("communicators that are split while it records take part, as ranks of the whole") {
  const Timeline timeline = recorded(5, [](Communicator& comm) {
    Communicator half = comm.split(comm.rank() % 2, -comm.rank());
    auto data = ones(10);
    half.all_reduce(data, sum, {"ring"});
    comm.barrier();
    Communicator again = half.split(0, half.rank());
    again.all_reduce(data, sum, {"ring"});
  });
  REQUIRE(timeline.operations.size() == 5);
  check_whole(timeline);
  int odd = 0, even = 0;
  for (const TimedOperation& operation : timeline.operations) {
    odd += operation.ranks == std::vector<int>{3, 1};
    even += operation.ranks == std::vector<int>{4, 2, 0};
  }
  CHECK(odd == 2);
  CHECK(even == 2);
}

TEST_CASE("messages of send and recv are recorded, the library's own are not") {
  Options options = test_options();
  options.check = true;
  Timeline timeline;
  on_ranks(
      2,
      [&](Communicator& comm) {
        comm.start_recording();
        auto data = ones(4);
        const int other = 1 - comm.rank();
        for (int tag : {0, 7}) {
          for (std::int64_t count : {4, 2, 4}) {
            std::span<float> part = std::span(data).subspan(0, static_cast<std::size_t>(count));
            if (comm.rank() == tag % 2) comm.send(part, other, tag);
            if (comm.rank() != tag % 2) comm.recv(part, other, tag);
          }
        }
        comm.all_reduce(data, sum);
        Timeline own = comm.stop_recording();
        if (comm.rank() == 0) timeline = std::move(own);
      },
      options);
  REQUIRE(timeline.operations.size() == 7);
  check_whole(timeline);
  std::vector<std::int64_t> bytes;
  for (const TimedOperation& operation : timeline.operations) {
    if (operation.name == "all_reduce") continue;
    CHECK(operation.name == "message");
    bytes.push_back(operation.bytes);
  }
  CHECK(bytes == std::vector<std::int64_t>{16, 8, 16, 16, 8, 16});
  for (const Event& event : timeline.events) {
    const TimedOperation& operation = timeline.operations[event.operation];
    if (operation.name != "message") continue;
    const bool first = event.operation < 3;  // those from rank 0
    CHECK(operation.ranks == (first ? std::vector<int>() : std::vector<int>{1, 0}));
    CHECK((event.rank == (first ? 0 : 1)) == (event.kind == StepKind::send));
    CHECK(event.peer == 1 - event.rank);
    CHECK(event.bytes == operation.bytes);
  }
}

TEST_CASE("names of the program are recorded behind the operation's own") {
  const Timeline timeline = recorded(2, [](Communicator& comm) {
    auto data = ones(4);
    comm.all_reduce(data, sum);
    {
      const RecordedName outer("layer 1");
      comm.all_reduce(data, sum);
      const RecordedName inner("gradients");
      comm.all_reduce(data, sum);
      if (comm.rank() == 0) comm.send(data, 1);
      if (comm.rank() == 1) comm.recv(data, 0);
    }
    comm.all_reduce(data, sum);
  });
  std::vector<std::string> names;
  for (const TimedOperation& operation : timeline.operations) names.push_back(operation.name);
  CHECK(names == std::vector<std::string>{"all_reduce", "all_reduce (layer 1)",
                                          "all_reduce (gradients)", "message (gradients)",
                                          "all_reduce"});
  check_whole(timeline);
}

TEST_CASE("messages of many sizes are recorded in little room") {
  constexpr std::int64_t sizes = 1500;
  const Timeline timeline = recorded(
      2,
      [](Communicator& comm) {
        auto data = ones(sizes);
        const auto pass = [&](std::int64_t count) {
          const std::span<float> part = std::span(data).subspan(0, static_cast<std::size_t>(count));
          if (comm.rank() == 0) comm.send(part, 1);
          if (comm.rank() == 1) comm.recv(part, 0);
        };
        for (std::int64_t count = 1; count <= sizes; ++count) pass(count);
        for (std::int64_t count = 1; count <= 8; ++count) pass(count);
      },
      8);
  REQUIRE(timeline.operations.size() == 8);
  for (std::size_t o = 0; o < 8; ++o)
    CHECK(timeline.operations[o].bytes == 4 * static_cast<std::int64_t>(o + 1));
}

TEST_CASE("what there is no room for is dropped and counted") {
  const Timeline timeline = recorded(
      2,
      [](Communicator& comm) {
        auto data = ones(100);
        for (int i = 0; i < 50; ++i) comm.all_reduce(data, sum, {"ring"});
      },
      20);
  CHECK(timeline.events.size() == 40);
  REQUIRE(timeline.dropped.size() == 2);
  const auto steps = timeline.operations.back().schedules->at(0).steps().size();
  CHECK(timeline.dropped[0] == 50 * steps - 20);
  CHECK(timeline.dropped[0] == timeline.dropped[1]);
}

TEST_CASE("it can be stopped and started again") {
  on_ranks(2, [](Communicator& comm) {
    auto data = ones(100);
    for (int i = 0; i < 3; ++i) {
      comm.all_reduce(data, sum);  // nobody records it
      comm.start_recording();
      CHECK(comm.recording());
      comm.all_reduce(data, sum);
      comm.all_reduce(data, sum);
      const Timeline timeline = comm.stop_recording();
      CHECK(!comm.recording());
      if (comm.rank() == 0) {
        CHECK(timeline.operations.size() == 2);
        check_whole(timeline);
      }
    }
    CHECK(holds(error_of([&] { comm.stop_recording(); }).what(),
                {"expected a communicator that start_recording() was called on"}));
    CHECK(holds(error_of([&] { comm.start_recording(0); }).what(),
                {"1 to 1073741824 events", "found 0"}));
    comm.barrier();
  });
}

TEST_CASE("an operation that is under way when it stops belongs to no recording") {
  on_ranks(2, [](Communicator& comm) {
    auto data = ones(100000);
    comm.start_recording();
    Request request = comm.start_all_reduce(data, sum);
    comm.stop_recording();
    comm.start_recording();
    request.wait();
    comm.barrier();
    const Timeline timeline = comm.stop_recording();
    if (comm.rank() == 0) {
      REQUIRE(timeline.operations.size() == 1);
      CHECK(timeline.operations[0].name == "barrier");
    }
    CHECK(data[0] == 2);
  });
}

TEST_CASE("who stops a recording advances what others wait for") {
  on_ranks(2, [](Communicator& comm) {
    auto data = ones(100000);
    comm.start_recording();
    Request request = comm.start_all_reduce(data, sum);
    if (comm.rank() == 1) request.wait();
    comm.stop_recording();
    request.wait();
    CHECK(data[0] == 2);
  });
}

TEST_CASE("who stops a recording does not wait for ever for ranks that do not") {
  Options options = test_options();
  options.timeout = std::chrono::milliseconds(300);
  on_ranks(
      3,
      [](Communicator& comm) {
        comm.start_recording();
        if (comm.rank() == 1) return;
        const Error error = error_of([&] { comm.stop_recording(); });
        CHECK(error.code == ErrorCode::timeout);
        CHECK(!comm.recording());
      },
      options);
}

TEST_CASE("ranks that begin or end a recording name, in the same words, the one that does not") {
  for (const bool ends : {false, true})
    for (const int absent : {0, 1, 4}) {
      CAPTURE(ends);
      CAPTURE(absent);
      std::mutex mutex;
      std::set<std::string> sentences;
      std::latch others(4);
      on_ranks(
          5,
          [&](Communicator& comm) {
            if (ends) comm.start_recording();
            if (comm.rank() == absent) return others.wait();
            const Error error =
                error_of([&] { ends ? void(comm.stop_recording()) : comm.start_recording(); });
            CHECK(error.code == ErrorCode::timeout);
            CHECK(!comm.recording());
            {
              const std::lock_guard lock(mutex);
              sentences.insert(error.what());
            }
            others.count_down();
            others.wait();
          },
          giving_up_after(std::chrono::milliseconds(500)));
      REQUIRE(sentences.size() == 1);
      CHECK(holds(*sentences.begin(), {ends ? "end of a recording #" : "start of a recording #",
                                       "of communicator 'world' cannot complete",
                                       "rank " + std::to_string(absent) + " has not entered it"}));
    }
}

TEST_CASE("what records cannot be recorded twice, nor as what it is not") {
  on_ranks(3, [](Communicator& comm) {
    comm.start_recording();
    CHECK(holds(error_of([&] { comm.start_recording(); }).what(),
                {"expected a communicator that is not being recorded"}));
    Communicator part = comm.split(0, comm.rank());
    CHECK(holds(error_of([&] { part.start_recording(); }).what(), {"not being recorded"}));
    for (const std::vector<int>& members : {std::vector{0}, std::vector{1, 2, 0}}) {
      const Error error =
          error_of([&] { Communicator(comm.transport().split(0, comm.rank()), comm, members); });
      CHECK(holds(error.what(), {"expected the members", "of 3 ranks"}));
    }
    comm.stop_recording();
  });
}

TEST_CASE("a communicator with Options::trace leaves a file behind") {
  Options options = test_options();
  options.trace = temporary("left.trace");
  for (const char* expected : {"left.trace", "left.trace-2"}) {
    on_ranks(
        3,
        [](Communicator& comm) {
          auto data = ones(100);
          comm.all_reduce(data, sum);
        },
        options);
    const std::string file = temporary(expected);
    const Trace trace = read_trace({&file, 1});
    CHECK(trace.damage.empty());
    CHECK(trace.timeline.operations.size() == 1);
    check_whole(trace.timeline);
  }
}

TEST_CASE("a file that cannot be written is refused on every rank, before anything is recorded") {
  Options options = test_options();
  options.trace = "/nowhere/a.trace";
  run_threads(3, [&](std::unique_ptr<Transport> transport) {
    const Error error = error_of([&] { Communicator(std::move(transport), options); });
    CHECK(error.code == ErrorCode::invalid_argument);
    CHECK(holds(error.what(), {"/nowhere/a.trace: expected a file to write, found No such file"}));
  });
  on_ranks(3, [](Communicator& comm) {
    comm.start_recording();
    CHECK(holds(error_of([&] { comm.stop_recording("/nowhere/b.trace"); }).what(),
                {"/nowhere/b.trace: expected a file to write, found No such file"}));
    comm.barrier();
  });
}

TEST_CASE("after an error, ranks leave their own parts") {
  Options options = test_options();
  options.timeout = std::chrono::milliseconds(300);
  options.trace = temporary("broken.trace");
  run_threads(2, [&](std::unique_ptr<Transport> transport) {
    Communicator comm(std::move(transport), options);
    auto data = ones(100);
    comm.all_reduce(data, sum, {"ring"});
    if (comm.rank() == 0) CHECK(error_of([&] { comm.barrier(); }).code == ErrorCode::timeout);
  });
  const std::vector<std::string> files{temporary("broken.trace.rank0"),
                                       temporary("broken.trace.rank1")};
  for (const std::string& file : files) REQUIRE(std::filesystem::exists(file));
  const Trace trace = read_trace(files);  // one clock, so nothing is missing
  CHECK(trace.damage.empty());
  REQUIRE(trace.timeline.operations.size() >= 1);
  CHECK(trace.timeline.operations[0].name == "all_reduce");
}
