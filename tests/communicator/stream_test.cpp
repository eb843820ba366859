#include "baton/stream.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <latch>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "baton/communicator.hpp"
#include "baton/forwarding.hpp"
#include "baton/timeline.hpp"
#include "baton/trace.hpp"
#include "stream_cases.hpp"
#include "support/ranks.hpp"
#include "support/stand_in.hpp"
#include "support/temporary_folder.hpp"

using namespace baton;
using namespace stream_cases;
using namespace std::chrono_literals;
using support::error_of;
using support::holds;
using support::StandInDevice;

TEST_CASE("streams: where held streams block the library's, the calls end with an error") {
  // As on a GPU with fewer hardware queues than streams.
  std::atomic<int> told = 0;
  const auto in_time = support::giving_up_after(std::chrono::milliseconds(200));
  on_one_device(
      3, stand_in({.channels = 1, .all_share = true}),
      [&](Seat& seat) {
        auto* const data = seat.put(numbers(seat.rank, 8));
        seat.communicator.all_reduce({data, 8, Datatype::i32}, {data, 8, Datatype::i32}, sum,
                                     seat.stream);
        seat.synchronize();  // streams go on
        const Error error = support::error_of([&] { seat.communicator.synchronize(); });
        told += error.code == ErrorCode::timeout || error.code == ErrorCode::transport;
      },
      in_time);
  CHECK(told == 3);
}

TEST_CASE("streams: every collective by every algorithm gives the host's bits") {
  for (const int size : sizes)
    for (const std::size_t segment : {0, 50}) {
      CAPTURE(size);
      CAPTURE(segment);
      every_collective(size, stand_in({.seed = 7}), 3, segment);
    }
}

TEST_CASE(
    "streams: a call comes after what the stream was given before, and before what comes after") {
  for (const int size : {1, 2, 4}) in_order(size, stand_in());
}

TEST_CASE("streams: calls in several streams run side by side") {
  on_one_device(3, stand_in(), [](Seat& seat) {
    StandInDevice& device = stand_in_of(seat);
    constexpr std::int64_t count = 500;
    const Stream other = device.make_user_stream();
    auto* const a = seat.put(numbers(seat.rank, count, 1));
    auto* const b = seat.put(numbers(seat.rank, count, 2));
    auto* const all = seat.put(std::vector<std::int32_t>(3 * count));
    // The first stream does not come to its call before the second has done its own.
    std::atomic<bool> done = false;
    device.run(seat.stream, [&] {
      while (!done) std::this_thread::yield();
    });
    seat.communicator.all_reduce({a, count, Datatype::i32}, {a, count, Datatype::i32}, sum,
                                 seat.stream);
    seat.communicator.all_gather({b, count, Datatype::i32}, {all, 3 * count, Datatype::i32}, other);
    device.run(other, [&] { done = true; });
    device.synchronize(other);
    seat.synchronize();
    std::vector<std::int32_t> sums(count), joined;
    for (int rank = 0; rank < 3; ++rank) {
      const auto first = numbers(rank, count, 1), second = numbers(rank, count, 2);
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += first[i];
      joined.insert(joined.end(), second.begin(), second.end());
    }
    CHECK(seat.got(a, count) == sums);
    CHECK(seat.got(all, 3 * count) == joined);
  });
}

TEST_CASE("streams: 64 ranks on one device whose streams share one hardware queue") {
  for (const int channels : {1, 8}) many_ranks(64, stand_in({.channels = channels}));
}

/// As ranks in several processes have it, of which some may be in one.
class Apart final : public ForwardingTransport {
 public:
  using ForwardingTransport::ForwardingTransport;
  Capabilities capabilities() const override {
    Capabilities can = inner().capabilities();
    can.one_process = false;
    return can;
  }

 private:
  std::unique_ptr<Transport> wrapped(std::unique_ptr<Transport> part) override {
    return std::make_unique<Apart>(std::move(part));
  }
};

TEST_CASE("streams: ranks of one process share a hardware queue beside other processes' ranks") {
  for (const int size : {2, 3, 7}) {
    TestDevice shared = stand_in({.channels = 1});
    shared.launch = [&](const auto& body) {
      run_threads(size,
                  [&](std::unique_ptr<Transport> threads) {
                    body(std::make_unique<Apart>(std::move(threads)));
                  },
                  {.devices = {shared.device}});
    };
    many_ranks(size, shared);
  }
}

TEST_CASE("streams: tensors along any dimensions, and split communicators") { tensors(stand_in()); }

TEST_CASE("streams: a communicator is renamed") {
  on_one_device(2, stand_in(), [](Seat& seat) {
    CHECK(seat.communicator.name() == "world");
    StreamCommunicator part = seat.communicator.split(0);
    CHECK(part.name() == "world/1:0");
    part.set_name("ice");
    CHECK(part.name() == "ice");
    CHECK(holds(error_of([&] { part.set_name(""); }).what(), {"expected a name, found an empty"}));
  });
}

TEST_CASE("streams: a rank that does not come to a split is named") {
  std::latch told(1);
  on_one_device(
      2, stand_in(),
      [&](Seat& seat) {
        if (seat.rank == 1) return told.wait();
        const Error error = error_of([&] { seat.communicator.split(0); });
        CHECK(error.code == ErrorCode::timeout);
        CHECK_MESSAGE(holds(error.what(), {"split #", "rank 1 has not entered it"}), error.what());
        told.count_down();
      },
      support::giving_up_after(500ms));
}

TEST_CASE("streams: repeated calls take no more of the device's memory") {
  on_one_device(2, stand_in(), [](Seat& seat) {
    auto* const data = seat.put(numbers(seat.rank, 10000));
    std::size_t after_first = 0;
    for (int round = 0; round < 10; ++round) {
      seat.communicator.all_reduce({data, 10000, Datatype::i32}, {data, 10000, Datatype::i32}, max,
                                   seat.stream, {"ring", 4096});
      seat.synchronize();
      seat.communicator.synchronize();
      seat.meet();
      if (round == 0) after_first = stand_in_of(seat).allocated();
    }
    CHECK(stand_in_of(seat).allocated() == after_first);
    seat.meet();
  });
}

TEST_CASE("streams: bad arguments are refused before anything is sent") {
  const auto elsewhere = std::make_shared<StandInDevice>();
  on_one_device(2, stand_in(), [&](Seat& seat) {
    auto* const data = seat.put(numbers(seat.rank, 8));
    std::vector<std::int32_t> host(8);
    const auto refused = [&](ConstData in, Data out, Op op, Stream stream,
                             const std::vector<std::string>& parts) {
      const Error error = error_of([&] { seat.communicator.all_reduce(in, out, op, stream); });
      CHECK_MESSAGE(holds(error.what(), parts), error.what());
      return error.code;
    };
    const Data good{data, 8, Datatype::i32};
    CHECK(refused({host.data(), 8, Datatype::i32}, good, sum, seat.stream,
                  {"all_reduce", "input in the memory of stand-in device", "the host's memory"}) ==
          ErrorCode::invalid_argument);
    refused(good, {host.data(), 8, Datatype::i32}, sum, seat.stream,
            {"output in the memory of", "the host's"});
    refused(good, {elsewhere->allocate(32), 8, Datatype::i32}, sum, seat.stream,
            {"output", "another device's memory"});
    refused({reinterpret_cast<std::byte*>(data) + 2, 1, Datatype::i32},
            {data + 2, 1, Datatype::i32}, sum, seat.stream,
            {"aligned to its elements of 4 bytes", "2 bytes off"});
    refused(good, good, sum, nullptr, {"stream of its own", "default stream"});
    const Op own =
        Op::user([](void*, const void*, const void*, std::size_t, void*) {}, nullptr, true, "mine");
    CHECK(refused(good, good, own, seat.stream, {"built-in op", "mine"}) == ErrorCode::unsupported);
    // None of them broke anything.
    seat.communicator.all_reduce(good, good, sum, seat.stream);
    seat.synchronize();
    std::vector<std::int32_t> expected(8);
    for (int rank = 0; rank < 2; ++rank)
      for (std::size_t i = 0; i < 8; ++i) expected[i] += numbers(rank, 8)[i];
    CHECK(seat.got(data, 8) == expected);
  });
}

TEST_CASE("streams: a call that one rank refuses does not disturb the next") {
  const Op own =
      Op::user([](void*, const void*, const void*, std::size_t, void*) {}, nullptr, true, "mine");
  on_one_device(2, stand_in(), [&](Seat& seat) {
    auto* const data = seat.put(numbers(seat.rank, 8));
    std::vector<std::int32_t> host(8);
    const Data good{data, 8, Datatype::i32}, bad{host.data(), 8, Datatype::i32};
    std::vector<std::int32_t> expected = numbers(0, 8);
    for (std::size_t i = 0; i < 8; ++i) expected[i] += numbers(1, 8)[i];
    const auto refused = [&](Data all, Op op, Stream stream) {
      if (seat.rank == 1) return;
      CHECK_THROWS_AS(seat.communicator.all_reduce(all, all, op, stream), Error);
    };
    const auto call = [&] {
      seat.communicator.all_reduce(good, good, sum, seat.stream);
      seat.synchronize();
      CHECK(seat.got(data, 8) == expected);
      for (std::int32_t& value : expected) value *= 2;
    };
    refused(bad, sum, seat.stream), call();
    refused(good, sum, nullptr), call();
    refused(good, own, seat.stream), call();
  });
}

TEST_CASE("streams: a wrong stream of one rank is told to all, where calls are compared") {
  Options options = support::test_options();
  options.check = 1;
  on_one_device(
      3, stand_in(),
      [](Seat& seat) {
        auto* const data = seat.put(numbers(seat.rank, 8));
        const Data all{data, 8, Datatype::i32};
        const Error error = error_of([&] {
          seat.communicator.broadcast(all, 1, seat.rank == 1 ? nullptr : seat.stream);
          seat.communicator.synchronize();
        });
        CHECK(error.code == ErrorCode::mismatch);
        CHECK_MESSAGE(holds(error.what(), {"on rank 1", "stream of its own"}), error.what());
        seat.communicator.broadcast(all, 1, seat.stream);
        seat.synchronize();
        CHECK(seat.got(data, 8) == numbers(1, 8));
      },
      options);
}

TEST_CASE("streams: ranks whose calls differ are told, and go on") {
  Options options = support::test_options();
  options.check = true;
  on_one_device(
      3, stand_in(),
      [](Seat& seat) {
        auto* const data = seat.put(numbers(seat.rank, 9));
        const std::int64_t count = seat.rank == 1 ? 9 : 8;
        seat.communicator.all_reduce({data, count, Datatype::i32}, {data, count, Datatype::i32},
                                     sum, seat.stream);
        seat.synchronize();  // the stream goes on
        CHECK(error_of([&] { seat.communicator.synchronize(); }).code == ErrorCode::mismatch);
        seat.communicator.broadcast({data, 9, Datatype::i32}, 1, seat.stream);
        seat.synchronize();
        CHECK(seat.got(data, 9) == numbers(1, 9));
      },
      options);
}

TEST_CASE("streams: too little memory is an error, after which the communicator says so") {
  constexpr std::int64_t count = 64 << 10;
  // Besides the data of both ranks there is room for the scratch of none, or of one.
  for (const int scratches : {0, 1})
    on_one_device(
        2, stand_in({.memory = (600u + 256u * static_cast<unsigned>(scratches)) << 10}),
        [&](Seat& seat) {
          auto* const data = seat.put(numbers(seat.rank, count));
          seat.meet();
          const Data all{data, count, Datatype::i32};
          const auto call = [&] {
            seat.communicator.all_reduce(all, all, sum, seat.stream, {"recursive_doubling", 0});
          };
          const Error error = error_of([&] {
            call();
            seat.communicator.synchronize();
          });
          CHECK_MESSAGE(error.code == ErrorCode::memory, error.what());
          seat.synchronize();
          CHECK(holds(error_of(call).what(), {"usable communicator", "failed earlier"}));
        },
        support::giving_up_after(5s));
}

TEST_CASE("streams: a device that fails, and peers that do not come, let the stream go on") {
  Options options = support::test_options();
  options.timeout = 300ms;
  std::atomic<int> of_devices = 0, found = 0;
  on_one_device(
      2, stand_in(),
      [&](Seat& seat) {
        auto* const data = seat.put(numbers(seat.rank, 100));
        const Data all{data, 100, Datatype::i32};
        seat.communicator.all_reduce(all, all, sum, seat.stream);
        seat.meet();
        stand_in_of(seat).run(seat.stream, [device = &stand_in_of(seat)] { device->break_down(); });
        const Error error = error_of([&] {
          seat.communicator.all_reduce(all, all, sum, seat.stream);
          seat.communicator.synchronize();
        });
        const bool of_device = error.code == ErrorCode::device || error.code == ErrorCode::timeout;
        CHECK_MESSAGE(of_device, error.what());
        if (error.code == ErrorCode::device) {
          // The rank that finds it, or one that was told by the other.
          CHECK_MESSAGE(holds(error.what(), {"broken"}), error.what());
          CHECK((error.backend_text == "broken" || error.backend_text.empty()));
          of_devices += 1;
          found += error.backend_text == "broken" ? 1 : 0;
        }
        seat.synchronize();
        CHECK(error_of([&] { seat.communicator.all_reduce(all, all, sum, seat.stream); }).code ==
              ErrorCode::transport);
        CHECK_NOTHROW(seat.communicator.synchronize());
      },
      options);
  CHECK((of_devices == 0 || found > 0));
  std::atomic<bool> told = false;
  on_one_device(
      2, stand_in(),
      [&told](Seat& seat) {
        auto* const data = seat.put(numbers(seat.rank, 100));
        const Data all{data, 100, Datatype::i32};
        // One rank's stream never comes to its call while the other waits.
        if (seat.rank == 1)
          stand_in_of(seat).run(seat.stream, [&told] {
            while (!told) std::this_thread::sleep_for(1ms);
          });
        const Error error = error_of([&] {
          seat.communicator.all_reduce(all, all, sum, seat.stream);
          if (seat.rank == 0) seat.synchronize();
          seat.communicator.synchronize();
        });
        if (seat.rank == 0) {
          CHECK(error.code == ErrorCode::timeout);
          CHECK_MESSAGE(holds(error.what(), {"all_reduce", "rank 0", "rank 1"}), error.what());
          told = true;
        }
        seat.synchronize();
      },
      options);
}

TEST_CASE("streams: messages that come late need nobody but their two ranks") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    const auto device = std::make_shared<StandInDevice>();
    std::byte* const memory = device->allocate(4096);
    std::atomic<bool> received = false;
    support::Watchdog watchdog(3, 60s);
    run_threads(3,
                [&](std::unique_ptr<Transport> transport) {
                  const int rank = transport->rank();
                  Message messages[2];
                  int open = 0;
                  const auto finish = [&] {
                    std::size_t bytes = 0;
                    while (open > 0 && transport->test(messages[open - 1], bytes)) --open;
                    return open == 0;
                  };
                  if (rank < 2) {
                    transport->isend(2, 0, memory + 1024 * rank, 8, messages[open++]);
                    while (!finish()) transport->idle(10us);
                    // From here on this rank does something else.
                    const auto until = std::chrono::steady_clock::now() + 2s;
                    while (!received && std::chrono::steady_clock::now() < until)
                      std::this_thread::sleep_for(100us);
                    CHECK(received);
                  } else {
                    for (int from : {0, 1})
                      transport->irecv(from, 0, memory + 1024 * (2 + from), 8, messages[open++]);
                    while (!finish()) transport->idle(10us);
                    received = true;
                  }
                  watchdog.returned(rank);
                },
                {.seed = seed, .devices = {device}});
    device->free(memory);
    if (!received) break;
  }
}

TEST_CASE("streams: calls that return complete hold no stream, and throw their own failures") {
  TestDevice device = stand_in({.channels = 1, .all_share = true});
  device.returns = Returns::complete;
  for (const int size : {1, 2, 4}) in_order(size, device);
  every_collective(3, device);
  tensors(device);
  Options options = support::test_options();
  options.timeout = 300ms;
  const auto in_one = [](Seat& seat) {
    auto* const data = seat.put(numbers(seat.rank, 100));
    return [&seat, all = Data{data, 100, Datatype::i32}](StreamCommunicator& communicator) {
      communicator.all_reduce(all, all, sum, seat.stream);
    };
  };
  on_one_device(
      1, device,
      [&](Seat& seat) {  // the stream's earlier work has no timeout
        stand_in_of(seat).run(seat.stream, [] { std::this_thread::sleep_for(700ms); });
        CHECK_NOTHROW(in_one(seat)(seat.communicator));
      },
      options);
  std::atomic<int> told = 0;  // until then, the other rank is there and does not come
  const auto stay = [&told](int times) {
    while (told < times) std::this_thread::sleep_for(1ms);
  };
  on_one_device(
      2, device,
      [&](Seat& seat) {
        const auto call = in_one(seat);
        StreamCommunicator part = seat.communicator.split(0, -seat.rank);
        call(part), call(seat.communicator);
        if (seat.rank == 1) return stay(1);
        const Error error = error_of([&] { call(part); });
        CHECK(error.code == ErrorCode::timeout);
        CHECK_MESSAGE(holds(error.what(), {"all_reduce", "waits for"}), error.what());
        CHECK(error_of([&] { call(part); }).code == ErrorCode::transport);
        told = 1;
      },
      options);
  on_one_device(2, device, [&](Seat& seat) {
    const auto call = in_one(seat);
    auto* const data = seat.put(numbers(seat.rank, 8));
    const StreamMessage messages[] = {
        {true, data, 4, Datatype::i32, 1 - seat.rank, seat.stream},
        {false, data + 4, 4, Datatype::i32, 1 - seat.rank, seat.stream}};
    seat.communicator.exchange(messages, [] {
      FAIL_CHECK("no stream is held, so none needs to wait for others");
      return true;
    });
    CHECK(seat.got(data, 8)[4] == numbers(1 - seat.rank, 8)[0]);
    if (seat.rank == 1) return stay(2);
    std::thread other([&] {
      std::this_thread::sleep_for(100ms);
      seat.communicator.abort("enough");
    });
    const Error error = error_of([&] { call(seat.communicator); });
    other.join();
    told = 2;
    CHECK(error.code == ErrorCode::transport);
    CHECK_MESSAGE(holds(error.what(), {"abort()"}), std::string(error.what()));
  });
}

TEST_CASE("streams: ranks whose calls return at different times are told") {
  const auto device = std::make_shared<StandInDevice>();
  run_threads(2,
              [&](std::unique_ptr<Transport> transport) {
                const int rank = transport->rank();
                const Error error = error_of([&] {
                  StreamCommunicator(std::move(transport), device, support::test_options(),
                                     rank == 0 ? Returns::at_once : Returns::complete);
                });
                CHECK(error.code == ErrorCode::mismatch);
                CHECK_MESSAGE(holds(error.what(), {"at_once on rank 0", "complete on rank 1"}),
                              error.what());
              },
              {.devices = {device}});
}

TEST_CASE("streams: a transport that serves one thread is refused") {
  struct OneThread final : Transport {
    int rank() const override { return 0; }
    int size() const override { return 1; }
    Capabilities capabilities() const override { return {.name = "single", .concurrent = false}; }
    void isend(int, int, const void*, std::size_t, Message&) override {}
    void irecv(int, int, void*, std::size_t, Message&) override {}
    bool test(Message&, std::size_t&) override { return true; }
    void cancel(Message&) override {}
    void progress() override {}
    void idle(std::chrono::microseconds) override {}
    std::unique_ptr<Transport> split(int, int) override { return nullptr; }
  };
  const Error error = error_of(
      [] { StreamCommunicator(std::make_unique<OneThread>(), std::make_shared<StandInDevice>()); });
  CHECK(error.code == ErrorCode::unsupported);
  CHECK(holds(error.what(), {"second thread", "single"}));
}

TEST_CASE("streams: a transport of the host's memory alone is refused") {
  const auto device = std::make_shared<StandInDevice>();
  auto ranks = thread_transports(1);
  const Error error = error_of([&] { StreamCommunicator(std::move(ranks[0]), device); });
  CHECK(error.code == ErrorCode::unsupported);
  CHECK(holds(error.what(), {"memory of " + device->name(), "thread", "device_transport()"}));
}

TEST_CASE("streams: Options::trace records calls, messages and split communicators") {
  support::TemporaryFolder folder;
  Options options = support::test_options();
  options.trace = folder / "trace";
  on_one_device(
      2, stand_in(),
      [](Seat& seat) {
        auto* const data = seat.put(numbers(seat.rank, 8));
        const Data all{data, 8, Datatype::i32};
        seat.communicator.all_reduce(all, all, sum, seat.stream);
        const StreamMessage message{seat.rank == 0, data,          8,
                                    Datatype::i32,  1 - seat.rank, seat.stream};
        seat.communicator.exchange(std::span(&message, 1));
        StreamCommunicator part = seat.communicator.split(0, -seat.rank);
        part.broadcast(all, 0, seat.stream);
        part.synchronize();
        seat.communicator.synchronize();
      },
      options);
  const std::string files[] = {options.trace};
  const Timeline recorded = read_trace(files).timeline;
  std::map<std::string, int> count;
  for (const TimedOperation& operation : recorded.operations) ++count[operation.name];
  CHECK(count == std::map<std::string, int>{{"all_reduce", 1}, {"message", 1}, {"broadcast", 1}});
}
