/// Collectives in a device's streams whose messages go in groups, as over NCCL.

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "baton/schedule.hpp"
#include "baton/stream.hpp"
#include "stream_cases.hpp"
#include "support/ranks.hpp"
#include "support/stand_in.hpp"
#include "support/stand_in_fused.hpp"

using namespace baton;
using namespace stream_cases;
using namespace std::chrono_literals;
using support::error_of;
using support::holds;
using support::StandInDevice;

TEST_CASE("groups in streams: every collective by every algorithm gives the host's bits") {
  for (const int size : sizes) {
    CAPTURE(size);
    every_collective(size, in_groups({.seed = 7}, {.seed = 5}));
  }
}

TEST_CASE("groups in streams: tensors along any dimensions, and split communicators") {
  tensors(in_groups({.seed = 7}, {.seed = 5}));
}

TEST_CASE(
    "groups in streams: a split without a fused transport is refused, as are calls after it") {
  using Split = support::StandInFusedOptions::Split;
  for (const Split split : {Split::error, Split::null}) {
    on_one_device(2, in_groups({}, {.split = split}), [&](Seat& seat) {
      const Error error = error_of([&] { seat.communicator.split(0, seat.rank); });
      CHECK(error.code == ErrorCode::transport);
      CHECK(holds(error.what(), {split == Split::null ? "color 0, found null" : "that fails"}));
      const auto call = [&] { seat.communicator.barrier(seat.stream); };
      CHECK(holds(error_of(call).what(), {"usable communicator"}));
    });
  }
}

TEST_CASE("groups in streams: many ranks, each behind what its stream was given before") {
  many_ranks(32, in_groups());
}

TEST_CASE(
    "groups in streams: a call comes after what the stream was given before, before the rest") {
  for (const int size : {1, 2, 4}) in_order(size, in_groups({}, {.seed = 3}));
}

TEST_CASE("groups in streams: a barrier keeps the stream until all ranks' streams have come") {
  std::atomic<int> come = 0, early = 0;
  on_one_device(5, in_groups({.seed = 2}), [&](Seat& seat) {
    for (int round = 1; round <= 10; ++round) {
      stand_in_of(seat).run(seat.stream, [&] { ++come; });
      seat.communicator.barrier(seat.stream);
      stand_in_of(seat).run(seat.stream, [&, round] { early += come < 5 * round; });
    }
    seat.synchronize();
  });
  CHECK(early == 0);
}

TEST_CASE("groups in streams: calls in several streams do not share scratch while it is in use") {
  on_one_device(3, in_groups({.seed = 11}, {.seed = 4}), [](Seat& seat) {
    constexpr std::int64_t count = 2000;
    constexpr int rounds = 40;
    const Stream streams[] = {seat.stream, stand_in_of(seat).make_user_stream()};
    std::vector<std::int32_t*> data;
    for (int round = 0; round < rounds; ++round) {
      data.push_back(seat.put(numbers(seat.rank, count, static_cast<std::uint64_t>(round))));
      const Data all{data.back(), count, Datatype::i32};
      seat.communicator.all_reduce(all, all, sum, streams[round % 2], {"recursive_doubling", 0});
    }
    for (const Stream stream : streams) stand_in_of(seat).synchronize(stream);
    for (int round = 0; round < rounds; ++round) {
      std::vector<std::int32_t> sums(count);
      for (int rank = 0; rank < 3; ++rank) {
        const auto theirs = numbers(rank, count, static_cast<std::uint64_t>(round));
        for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += theirs[i];
      }
      CAPTURE(round);
      CHECK(seat.got(data[static_cast<std::size_t>(round)], count) == sums);
    }
  });
}

TEST_CASE("groups in streams: repeated calls take no more of the device's memory") {
  on_one_device(2, in_groups(), [](Seat& seat) {
    auto* const data = seat.put(numbers(seat.rank, 10000));
    const Stream other = stand_in_of(seat).make_user_stream();
    const auto call = [&](Stream stream) {
      seat.communicator.all_reduce({data, 10000, Datatype::i32}, {data, 10000, Datatype::i32}, max,
                                   stream, {"ring", 4096});
    };
    call(seat.stream);
    seat.meet();
    const std::size_t after_first = stand_in_of(seat).allocated();
    seat.meet();
    // Not complete, but in one stream.
    std::atomic<bool> go = false;
    stand_in_of(seat).run(seat.stream, [&] {
      while (!go) std::this_thread::yield();
    });
    for (int i = 0; i < 20; ++i) call(seat.stream);
    CHECK(stand_in_of(seat).allocated() == after_first);
    go = true;
    seat.meet();
    // Complete, so that any stream may have it.
    for (int i = 0; i < 4; ++i) {
      call(other);
      seat.communicator.synchronize();
    }
    seat.meet();
    CHECK(stand_in_of(seat).allocated() == after_first);
    seat.meet();
  });
}

TEST_CASE("groups in streams: uneven counts, whoever knows them") {
  on_one_device(4, in_groups({.seed = 7}, {.seed = 5}), [](Seat& seat) {
    const std::vector<std::int64_t> counts = {3, 0, 5, 1};
    const std::int64_t own = counts[static_cast<std::size_t>(seat.rank)], total = 9;
    std::vector<std::int32_t> joined;
    for (int rank = 0; rank < 4; ++rank) {
      const auto theirs = numbers(rank, counts[static_cast<std::size_t>(rank)]);
      joined.insert(joined.end(), theirs.begin(), theirs.end());
    }
    auto* const part = seat.put(numbers(seat.rank, own));
    auto* const all = seat.put(std::vector<std::int32_t>(total));
    auto* const back = seat.put(std::vector<std::int32_t>(static_cast<std::size_t>(own)));
    const bool root = seat.rank == 2;

    Call gather =
        calls::gather({part, own, Datatype::i32}, {all, root ? total : 0, Datatype::i32}, 2);
    gather.counts_at_root = true;
    if (root) gather.recv_counts = counts;
    seat.communicator.enqueue(gather, seat.stream);
    Call scatter =
        calls::scatter({all, root ? total : 0, Datatype::i32}, {back, own, Datatype::i32}, 2);
    scatter.counts_at_root = true;
    if (root) scatter.send_counts = counts;
    seat.communicator.enqueue(scatter, seat.stream);
    seat.synchronize();
    if (root) CHECK(seat.got(all, total) == joined);
    CHECK(seat.got(back, static_cast<std::size_t>(own)) == numbers(seat.rank, own));

    Call all_gather = calls::all_gather({part, own, Datatype::i32}, {all, total, Datatype::i32});
    all_gather.recv_counts = counts;
    seat.communicator.enqueue(all_gather, seat.stream);
    seat.synchronize();
    CHECK(seat.got(all, total) == joined);

    // Rank r sends r + i elements to rank i: nobody knows what the others send each other.
    std::vector<std::int64_t> send_counts, recv_counts;
    std::vector<std::int32_t> sent, expected;
    for (int i = 0; i < 4; ++i) {
      send_counts.push_back(seat.rank + i);
      recv_counts.push_back(seat.rank + i);
      for (int k = 0; k < seat.rank + i; ++k) {
        sent.push_back(100 * seat.rank + 10 * i + k);
        expected.push_back(100 * i + 10 * seat.rank + k);
      }
    }
    const Registry registry = Registry::builtin();
    for (const Algorithm* algorithm : registry.of(Collective::all_to_all)) {
      for (const std::int64_t segment : {0, 8}) {
        CAPTURE(algorithm->name);
        CAPTURE(segment);
        auto* const in = seat.put(sent);
        auto* const out = seat.put(std::vector<std::int32_t>(expected.size()));
        Call call =
            calls::all_to_all({in, static_cast<std::int64_t>(sent.size()), Datatype::i32},
                              {out, static_cast<std::int64_t>(expected.size()), Datatype::i32});
        call.send_counts = send_counts;
        call.recv_counts = recv_counts;
        call.choice = {algorithm->name, segment};
        try {
          seat.communicator.enqueue(call, seat.stream);
        } catch (const Error& error) {
          CHECK_MESSAGE(error.code == ErrorCode::invalid_argument, error.what());  // even only
          continue;
        }
        seat.synchronize();
        CHECK(seat.got(out, expected.size()) == expected);
      }
    }
  });
}

TEST_CASE("groups in streams: an algorithm with more lanes than communicators run is refused") {
  Registry registry = Registry::builtin();
  Algorithm algorithm = registry.find(Collective::broadcast, "linear");
  algorithm.name = "beyond";
  algorithm.generate = [](const Problem& p) {
    ScheduleBuilder b(p);
    b.lane(32);
    p.rank == 0 ? b.send(1, b.output()) : b.recv(0, b.output());
    return b.build("beyond");
  };
  registry.add(algorithm);
  Options options = support::test_options();
  options.registry = std::make_shared<const Registry>(registry);
  on_one_device(
      2, in_groups(),
      [](Seat& seat) {
        const Data all{seat.put(numbers(seat.rank, 8)), 8, Datatype::i32};
        const Error error = error_of([&] {
          seat.communicator.broadcast(all, 0, seat.stream, {"beyond", 0});
        });
        CHECK(error.code == ErrorCode::invalid_argument);
        CHECK_MESSAGE(holds(error.what(), {"at most 32 lanes, found 33"}), error.what());
        seat.meet();
      },
      options);
}

TEST_CASE("groups in streams: lists of tensors, cut otherwise on each rank, some in place") {
  on_one_device(3, in_groups({.seed = 7}, {.seed = 5}), [](Seat& seat) {
    const Registry registry = Registry::builtin();
    for (const Algorithm* algorithm : registry.of(Collective::all_reduce)) {
      if (algorithm->hierarchical) continue;
      for (const std::int64_t segment : {0, 12}) {
        CAPTURE(algorithm->name);
        CAPTURE(segment);
        constexpr std::int64_t count = 23;
        const std::int64_t cut = 3 + 7 * seat.rank;
        auto* const data = seat.put(numbers(seat.rank, count));
        auto* const result = seat.put(std::vector<std::int32_t>(count));
        auto* const far = seat.put(std::vector<std::int32_t>(count));
        std::vector<std::int32_t> sums(count);
        for (int rank = 0; rank < seat.size; ++rank) {
          const auto theirs = numbers(rank, count);
          for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += theirs[i];
        }
        const ConstData inputs[] = {{data, cut, Datatype::i32},
                                    {data + cut, count - cut, Datatype::i32}};
        const Data outputs[] = {{result, cut, Datatype::i32},
                                {far + cut, count - cut, Datatype::i32}};
        const Data in_place[] = {{data, cut, Datatype::i32},
                                 {data + cut, count - cut, Datatype::i32}};
        Call call;
        call.collective = Collective::all_reduce;
        call.op = sum;
        call.choice = {algorithm->name, segment};
        if (seat.rank == 1) {
          call.outputs = in_place;
        } else {
          call.inputs = inputs;
          call.outputs = outputs;
        }
        seat.communicator.enqueue(call, seat.stream);
        seat.synchronize();
        std::vector<std::int32_t> found = seat.got(seat.rank == 1 ? data : result, count);
        const auto rest = seat.got(seat.rank == 1 ? data : far, count);
        std::copy(rest.begin() + cut, rest.end(), found.begin() + cut);
        CHECK(found == sums);
      }
    }
  });
}

TEST_CASE("groups in streams: checked calls with room for few plans") {
  for (const int plans : {1, 2, 3, 4}) {
    CAPTURE(plans);
    Options options = support::test_options();
    options.check = true;
    options.plans = plans;
    on_one_device(
        2, in_groups(),
        [](Seat& seat) {
          for (int round = 0; round < 2; ++round)
            for (const std::int64_t count : {8, 16, 24, 32}) {
              auto* const data = seat.put(numbers(seat.rank, count));
              const Data all{data, count, Datatype::i32};
              seat.communicator.all_reduce(all, all, sum, seat.stream);
              seat.synchronize();
              std::vector<std::int32_t> expected = numbers(0, count);
              for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += numbers(1, count)[i];
              CHECK(seat.got(data, count) == expected);
            }
        },
        options);
  }
}

TEST_CASE("groups in streams: bad arguments are refused before anything is given") {
  on_one_device(2, in_groups(), [](Seat& seat) {
    auto* const data = seat.put(numbers(seat.rank, 8));
    std::vector<std::int32_t> host(8);
    const Data good{data, 8, Datatype::i32};
    refused(seat, {host.data(), 8, Datatype::i32}, seat.stream, {"memory of", "the host's memory"});
    refused(seat, {reinterpret_cast<std::byte*>(data) + 2, 1, Datatype::i32}, seat.stream,
            {"aligned to its elements of 4 bytes", "2 bytes off"});
    refused(seat, good, nullptr, {"stream of its own", "default stream"});
    seat.communicator.all_reduce(good, good, sum, seat.stream);
    seat.synchronize();
    std::vector<std::int32_t> expected = numbers(0, 8);
    for (std::size_t i = 0; i < 8; ++i) expected[i] += numbers(1, 8)[i];
    CHECK(seat.got(data, 8) == expected);
  });
  const auto device = std::make_shared<StandInDevice>();
  auto hosts = thread_transports(2);
  auto groups = support::stand_in_fused(2, device);
  const Error apart =
      error_of([&] { StreamCommunicator(std::move(hosts[0]), device, std::move(groups[1]), {}); });
  CHECK(apart.code == ErrorCode::invalid_argument);
  CHECK(holds(apart.what(), {"same ranks", "rank 0 of 2", "rank 1 of 2"}));
  CHECK(
      holds(error_of([&] { StreamCommunicator(std::move(hosts[1]), device, nullptr, {}); }).what(),
            {"transport of fused groups", "null"}));
}

TEST_CASE("groups in streams: ranks whose calls differ are told by the call, and go on") {
  Options options = support::test_options();
  options.check = true;
  on_one_device(
      3, in_groups({}, {.seed = 6}),
      [](Seat& seat) {
        auto* const data = seat.put(numbers(seat.rank, 9));
        const auto call = [&](std::int64_t count, Stream stream) {
          seat.communicator.all_reduce({data, count, Datatype::i32}, {data, count, Datatype::i32},
                                       max, stream);
        };
        const Error differs = error_of([&] { call(seat.rank == 1 ? 9 : 8, seat.stream); });
        CHECK(differs.code == ErrorCode::mismatch);
        CHECK(holds(differs.what(), {"all_reduce of 8", "all_reduce of 9", "rank 1"}));
        // What is wrong on one is told to all.
        const Error wrong = error_of([&] { call(9, seat.rank == 2 ? nullptr : seat.stream); });
        CHECK(wrong.code == ErrorCode::mismatch);
        CHECK(holds(wrong.what(), {"on rank 2", "default stream"}));
        for (int i = 0; i < 3; ++i) call(9, seat.stream);
        seat.communicator.broadcast({data, 9, Datatype::i32}, 1, seat.stream);
        seat.synchronize();
        std::vector<std::int32_t> expected(9, INT32_MIN);
        for (int rank = 0; rank < 3; ++rank)
          for (std::size_t i = 0; i < 9; ++i)
            expected[i] = std::max(expected[i], numbers(rank, 9)[i]);
        CHECK(seat.got(data, 9) == expected);
      },
      options);
}

TEST_CASE(
    "groups in streams: too little memory is an error, after which the communicator says so") {
  Options options = support::test_options();
  options.timeout = 300ms;
  on_one_device(
      2, in_groups({.memory = 600 << 10}),
      [](Seat& seat) {
        constexpr std::int64_t count = 64 << 10;
        auto* const data = seat.put(numbers(seat.rank, count));
        seat.meet();
        const auto call = [&] {
          seat.communicator.all_reduce({data, count, Datatype::i32}, {data, count, Datatype::i32},
                                       sum, seat.stream, {"recursive_doubling", 0});
        };
        const Error error = error_of([&] {
          call();
          seat.communicator.synchronize();
        });
        const bool of_memory = error.code == ErrorCode::memory || error.code == ErrorCode::timeout;
        CHECK_MESSAGE(of_memory, error.what());
        CHECK(holds(error.what(), {"all_reduce #"}));
        seat.synchronize();
        CHECK(holds(error_of(call).what(), {"usable communicator", "failed earlier"}));
      },
      options);
}

TEST_CASE("groups in streams: who waits for a peer that does not come says so, and lets go") {
  Options options = support::test_options();
  options.timeout = 300ms;
  std::atomic<bool> told = false;
  std::string sentence;  // written before `told`
  on_one_device(
      3, in_groups(),
      [&](Seat& seat) {
        auto* const data = seat.put(numbers(seat.rank, 99));
        const Data all{data, 99, Datatype::i32};
        const auto call = [&] { seat.communicator.broadcast(all, 0, seat.stream, {"chain", 0}); };
        call();
        seat.meet();
        // Rank 1 stands between the others, and its stream does not come to its call.
        if (seat.rank == 1)
          stand_in_of(seat).run(seat.stream, [&] {
            while (!told) std::this_thread::sleep_for(1ms);
          });
        call();
        if (seat.rank == 2) {
          const Error error = error_of([&] { seat.communicator.synchronize(); });
          CHECK(error.code == ErrorCode::timeout);
          CHECK(error.rank == 2);
          CHECK(error.peer == 1);
          CHECK_MESSAGE(holds(error.what(),
                              {"broadcast #",
                               "of communicator 'world' cannot complete (no progress for 0.3 s)",
                               "rank 1 began it", "and does not wait in it",
                               "rank 2 waits for group 1 of 1", "receive from rank 1"}),
                        error.what());
          sentence = error.what();
          told = true;
          seat.synchronize();
          CHECK(holds(error_of(call).what(), {"usable communicator", "rank 2 waits for"}));
          CHECK_NOTHROW(seat.communicator.synchronize());
        } else if (seat.rank == 1) {
          // Its own stream being late is no error; that rank 2 has left is.
          const Error error = error_of([&] { seat.communicator.synchronize(); });
          CHECK(told);
          CHECK(error.what() == sentence);
        } else {
          try {
            seat.communicator.synchronize();
          } catch (const Error& error) {  // it may be let go in time
            CHECK_MESSAGE(holds(error.what(), {"rank 0 waits for group 1 of 1", "send to rank 1"}),
                          error.what());
            const std::string own = error.what();
            while (!told) std::this_thread::sleep_for(1ms);
            CHECK(own == sentence);
          }
        }
      },
      options);
}

TEST_CASE("groups in streams: an abort ends a call that waits in another thread") {
  Options options = support::test_options();
  options.timeout = 2s;  // ends the other rank's call
  std::atomic<bool> told = false;
  on_one_device(
      2, in_groups(),
      [&](Seat& seat) {
        auto* const data = seat.put(numbers(seat.rank, 9));
        const Data all{data, 9, Datatype::i32};
        if (seat.rank == 1)
          stand_in_of(seat).run(seat.stream, [&] {
            while (!told) std::this_thread::sleep_for(1ms);
          });
        seat.communicator.broadcast(all, 1, seat.stream);
        if (seat.rank == 0) {
          std::thread other([&] {
            std::this_thread::sleep_for(30ms);
            seat.communicator.abort("enough");
          });
          const Error error = error_of([&] { seat.communicator.synchronize(); });
          CHECK(error.code == ErrorCode::transport);
          CHECK_MESSAGE(holds(error.what(), {"found an abort()"}), error.what());
          other.join();
          told = true;
          seat.synchronize();
        } else {
          static_cast<void>(error_of([&] { seat.communicator.synchronize(); }));
          seat.synchronize();
        }
      },
      options);
}

TEST_CASE("groups in streams: a device that fails, and what the transport finds, break it off") {
  Options options = support::test_options();
  options.timeout = 300ms;
  on_one_device(
      2, in_groups(),
      [](Seat& seat) {
        auto* const data = seat.put(numbers(seat.rank, 100));
        const auto call = [&](std::int64_t count) {
          seat.communicator.all_reduce({data, count, Datatype::i32}, {data, count, Datatype::i32},
                                       sum, seat.stream);
        };
        call(100);
        seat.meet();
        call(seat.rank == 0 ? 100 : 50);
        const Error error = error_of([&] {
          seat.synchronize();
          seat.communicator.synchronize();
        });
        CHECK(error.code == ErrorCode::transport);
        CHECK(error.backend_code == 6);
        CHECK_MESSAGE(holds(error.what(), {"all_reduce #", "bytes from rank"}), error.what());
        CHECK(holds(error_of([&] { call(100); }).what(), {"usable communicator"}));
      },
      options);
  std::atomic<int> met = 0;
  on_one_device(
      2, in_groups(),
      [&met](Seat& seat) {
        auto* const data = seat.put(numbers(seat.rank, 100));
        const Data all{data, 100, Datatype::i32};
        seat.communicator.all_reduce(all, all, sum, seat.stream);
        seat.meet();
        for (++met; met < seat.size;) std::this_thread::yield();
        stand_in_of(seat).run(seat.stream, [device = &stand_in_of(seat)] { device->break_down(); });
        const Error error = error_of([&] {
          seat.communicator.all_reduce(all, all, sum, seat.stream);
          seat.communicator.synchronize();
        });
        const bool of_device = error.code == ErrorCode::device || error.code == ErrorCode::timeout;
        CHECK_MESSAGE(of_device, error.what());
        if (error.code == ErrorCode::device) CHECK(error.backend_text == "broken");
        seat.synchronize();
        CHECK(error_of([&] { seat.communicator.all_reduce(all, all, sum, seat.stream); }).code ==
              ErrorCode::transport);
      },
      options);
}
