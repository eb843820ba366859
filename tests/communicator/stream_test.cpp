#include "baton/stream.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cstring>
#include <string>
#include <vector>

#include "baton/communicator.hpp"
#include "baton/staged.hpp"
#include "support/conformance.hpp"
#include "support/ranks.hpp"
#include "support/stand_in.hpp"
#include "support/values.hpp"

using namespace baton;
using namespace std::chrono_literals;
using support::error_of;
using support::holds;
using support::StandInDevice;

namespace {

/// One rank on a device: its communicator, and a stream as its user has.
struct Seat {
  StreamCommunicator& communicator;
  StandInDevice& device;
  Stream stream;
  int rank, size;

  std::byte* take(std::size_t bytes) const { return device.allocate(bytes); }
  /// Elements in the device's memory.
  template <class T>
  T* put(const std::vector<T>& values) const {
    std::byte* const at = take(values.size() * sizeof(T));
    std::memcpy(device.host_view(at), values.data(), values.size() * sizeof(T));
    return reinterpret_cast<T*>(at);
  }
  template <class T>
  std::vector<T> got(const T* at, std::size_t count) const {
    const auto* const from = reinterpret_cast<const T*>(device.host_view(at));
    return {from, from + count};
  }
  void synchronize() const { device.synchronize(stream); }
  /// Returns when every rank has come here, and is done with all it called.
  void meet() const {
    communicator.barrier(stream);
    communicator.synchronize();
  }
};

/// Runs `body` on ranks as threads that share one device. `segment`: not 0 if messages are staged.
void on_one_device(int size, const std::function<void(Seat&)>& body,
                   const support::StandInOptions& device_options = {},
                   const Options& options = support::test_options(), std::uint64_t seed = 0,
                   std::size_t segment = 0) {
  const auto device = std::make_shared<StandInDevice>(device_options);
  ThreadOptions thread_options{.seed = seed};
  if (segment == 0) thread_options.devices = {device};
  support::Watchdog watchdog(size, 240s);
  run_threads(
      size,
      [&](std::unique_ptr<Transport> transport) {
        const int rank = transport->rank();
        try {
          if (segment > 0) transport = staged_transport(std::move(transport), device, segment);
          StreamCommunicator communicator(std::move(transport), device, options);
          Seat seat{communicator, *device, device->make_user_stream(), rank, size};
          body(seat);
          communicator.synchronize();
        } catch (const std::exception& error) {
          FAIL_CHECK("rank " << rank << " of " << size << ": " << std::string(error.what()));
        }
        watchdog.returned(rank);
      },
      thread_options);
}

std::vector<std::int32_t> numbers(int rank, std::int64_t count, std::uint64_t seed = 1) {
  std::vector<std::int32_t> all;
  for (std::int64_t i = 0; i < count; ++i) all.push_back(support::value(seed, rank, i));
  return all;
}

/// A call, its buffers still to be had: the same for the host and for a device.
struct Case {
  Collective collective;
  std::int64_t input, output;  // elements
  Op op = sum;
  int root = 0;
  bool in_place = false;

  Call call(float* in, float* out) const {
    Call call;
    call.collective = collective;
    call.op = op;
    call.root = root;
    call.input = {in, input, Datatype::f32};
    call.output = {out, output, Datatype::f32};
    return call;
  }
};

std::vector<Case> cases(int rank, int size, std::int64_t n) {
  const std::int64_t all = n * size;
  const int last = size - 1;
  std::vector<Case> list = {
      {Collective::broadcast, n, n, sum, last, true},
      {Collective::reduce, n, rank == last ? n : 0, sum, last},
      {Collective::all_reduce, n, n},
      {Collective::all_reduce, n, n, avg},
      {Collective::all_reduce, n, n, max, 0, true},
      {Collective::gather, n, rank == last ? all : 0, sum, last},
      {Collective::scatter, rank == last ? all : 0, n, sum, last},
      {Collective::all_gather, n, all},
      {Collective::reduce_scatter, all, n, prod},
      {Collective::all_to_all, all, all},
      {Collective::scan, n, n},
      {Collective::exscan, n, n},
  };
  return list;
}

std::vector<float> floats(int rank, std::int64_t count, std::uint64_t seed) {
  std::vector<float> all;
  for (std::int64_t i = 0; i < count; ++i)
    all.push_back(1.0f + 0.01f * static_cast<float>(support::value(seed, rank, i)));
  return all;
}

}  // namespace

TEST_CASE("streams: every collective by every algorithm gives the host's bits") {
  for (const int size : {1, 2, 3, 5, 8}) {
    CAPTURE(size);
    // What the host makes of it, each algorithm and segment in the same order.
    std::vector<std::vector<std::vector<float>>> expected(static_cast<std::size_t>(size));
    const auto go_through = [&](int rank, const auto& registry, const auto& visit) {
      for (const std::int64_t n : {std::int64_t{0}, std::int64_t{1}, std::int64_t{37}}) {
        for (const Case& one : cases(rank, size, n)) {
          Problem problem;
          problem.collective = one.collective;
          problem.size = size;
          problem.count = n;
          problem.root = one.root;
          problem.commutative = true;
          for (const Algorithm* algorithm : registry.of(one.collective)) {
            if (!refusal(*algorithm, problem).empty()) continue;
            for (const std::int64_t segment : {0, 16}) visit(one, Choice{algorithm->name, segment});
          }
        }
      }
    };
    support::on_ranks(size, [&](Communicator& c) {
      std::uint64_t seed = 0;
      go_through(c.rank(), c.registry(), [&](const Case& one, const Choice& choice) {
        std::vector<float> in = floats(c.rank(), one.input, ++seed),
                           out(static_cast<std::size_t>(one.output), -7.0f);
        Call call = one.call(in.data(), one.in_place ? in.data() : out.data());
        call.choice = choice;
        c.run(call);
        expected[static_cast<std::size_t>(c.rank())].push_back(one.in_place ? in : out);
      });
    });
    for (const std::size_t segment : {0, 50})
      on_one_device(
          size,
          [&](Seat& seat) {
            std::uint64_t seed = 0;
            std::size_t turn = 0;
            const Registry registry = Registry::builtin();
            go_through(seat.rank, registry, [&](const Case& one, const Choice& choice) {
              const auto outputs = static_cast<std::size_t>(one.output);
              float* const in = seat.put(floats(seat.rank, one.input, ++seed));
              float* const out = seat.put(std::vector<float>(outputs, -7.0f));
              Call call = one.call(in, one.in_place ? in : out);
              call.choice = choice;
              seat.communicator.enqueue(call, seat.stream);
              seat.synchronize();
              CAPTURE(name(one.collective));
              CAPTURE(choice.algorithm);
              CAPTURE(choice.segment);
              CHECK(seat.got(one.in_place ? in : out, outputs) ==
                    expected[static_cast<std::size_t>(seat.rank)][turn++]);
              seat.device.free(reinterpret_cast<std::byte*>(in));
              seat.device.free(reinterpret_cast<std::byte*>(out));
            });
          },
          {.seed = 7}, support::test_options(), 3, segment);
  }
}

TEST_CASE(
    "streams: a call comes after what the stream was given before, and before what comes after") {
  for (const int size : {1, 2, 4}) {
    on_one_device(size, [](Seat& seat) {
      constexpr std::size_t count = 1000;
      auto* const data = seat.put(std::vector<std::int32_t>(count, -1));
      auto* const host = reinterpret_cast<std::int32_t*>(seat.device.host_view(data));
      std::atomic<int> wrong = 0;
      constexpr int rounds = 20;
      for (int round = 0; round < rounds; ++round) {
        seat.device.run(seat.stream, [=] {
          std::this_thread::sleep_for(200us);
          std::fill(host, host + count, round + seat.rank);
        });
        seat.communicator.all_reduce({data, count, Datatype::i32}, {data, count, Datatype::i32},
                                     sum, seat.stream);
        seat.device.run(seat.stream, [=, &wrong] {
          const int expected = seat.size * round + seat.size * (seat.size - 1) / 2;
          for (std::size_t i = 0; i < count; ++i) wrong += host[i] != expected;
        });
      }
      seat.synchronize();
      CHECK(wrong == 0);
    });
  }
}

TEST_CASE("streams: calls in several streams run side by side") {
  on_one_device(3, [](Seat& seat) {
    constexpr std::int64_t count = 500;
    const Stream other = seat.device.make_user_stream();
    auto* const a = seat.put(numbers(seat.rank, count, 1));
    auto* const b = seat.put(numbers(seat.rank, count, 2));
    auto* const all = seat.put(std::vector<std::int32_t>(3 * count));
    // The first stream does not come to its call before the second has done its own.
    std::atomic<bool> done = false;
    seat.device.run(seat.stream, [&] {
      while (!done) std::this_thread::yield();
    });
    seat.communicator.all_reduce({a, count, Datatype::i32}, {a, count, Datatype::i32}, sum,
                                 seat.stream);
    seat.communicator.all_gather({b, count, Datatype::i32}, {all, 3 * count, Datatype::i32}, other);
    seat.device.run(other, [&] { done = true; });
    seat.device.synchronize(other);
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
  for (const int channels : {1, 8}) {
    on_one_device(64,
                  [](Seat& seat) {
                    constexpr std::int64_t count = 129;
                    auto* const data = seat.put(numbers(seat.rank, count));
                    for (int round = 0; round < 3; ++round) {
                      auto* const host =
                          reinterpret_cast<std::int32_t*>(seat.device.host_view(data));
                      seat.device.run(seat.stream, [host] {
                        for (std::int64_t i = 0; i < count; ++i) host[i] %= 100;
                      });
                      seat.communicator.all_reduce({data, count, Datatype::i32},
                                                   {data, count, Datatype::i32}, sum, seat.stream);
                    }
                    seat.synchronize();
                    std::vector<std::int32_t> expected(count);
                    for (int rank = 0; rank < 64; ++rank) {
                      const auto own = numbers(rank, count);
                      for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += own[i] % 100;
                    }
                    for (int round = 1; round < 3; ++round)
                      for (std::int32_t& one : expected) one = 64 * (one % 100);
                    CHECK(seat.got(data, count) == expected);
                  },
                  {.channels = channels});
  }
}

TEST_CASE("streams: tensors along any dimensions, and split communicators") {
  on_one_device(4, [](Seat& seat) {
    StreamCommunicator pair = seat.communicator.split(seat.rank / 2, seat.rank);
    const Shape in{2, 3, 4, 2}, out{2, 6, 2, 2};
    std::vector<float> values(48);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>(100 * seat.rank) + static_cast<float>(i);
    float* const input = seat.put(values);
    float* const output = seat.put(std::vector<float>(48));
    pair.all_to_all(ConstTensor(input, in), Tensor(output, out), 2, 1, seat.stream);
    seat.synchronize();
    const std::vector<float> found = seat.got(output, 48);
    for (int b = 0, i = 0; b < 2; ++b)
      for (int s = 0; s < 6; ++s)
        for (int h = 0; h < 2; ++h)
          for (int d = 0; d < 2; ++d, ++i) {
            const int from = seat.rank / 2 * 2 + s / 3, head = seat.rank % 2 * 2 + h;
            const int at = ((b * 3 + s % 3) * 4 + head) * 2 + d;
            CHECK(found[static_cast<std::size_t>(i)] == static_cast<float>(100 * from + at));
          }
  });
}

TEST_CASE("streams: repeated calls take no more of the device's memory") {
  on_one_device(2, [](Seat& seat) {
    auto* const data = seat.put(numbers(seat.rank, 10000));
    std::size_t after_first = 0;
    for (int round = 0; round < 10; ++round) {
      seat.communicator.all_reduce({data, 10000, Datatype::i32}, {data, 10000, Datatype::i32}, max,
                                   seat.stream, {"ring", 4096});
      seat.synchronize();
      seat.communicator.synchronize();
      seat.meet();
      if (round == 0) after_first = seat.device.allocated();
    }
    CHECK(seat.device.allocated() == after_first);
    seat.meet();
  });
}

TEST_CASE("streams: bad arguments are refused before anything is sent") {
  const auto elsewhere = std::make_shared<StandInDevice>();
  on_one_device(2, [&](Seat& seat) {
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
    CHECK(refused(good, good, own, seat.stream, {"operation of the library", "mine"}) ==
          ErrorCode::unsupported);
    // None of them broke anything.
    seat.communicator.all_reduce(good, good, sum, seat.stream);
    seat.synchronize();
    std::vector<std::int32_t> expected(8);
    for (int rank = 0; rank < 2; ++rank)
      for (std::size_t i = 0; i < 8; ++i) expected[i] += numbers(rank, 8)[i];
    CHECK(seat.got(data, 8) == expected);
  });
}

TEST_CASE("streams: ranks whose calls differ are told, and go on") {
  Options options = support::test_options();
  options.check = true;
  on_one_device(
      3,
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
      {}, options);
}

TEST_CASE("streams: too little memory is an error, after which the communicator says so") {
  Options options = support::test_options();
  options.timeout = 2s;
  on_one_device(
      2,
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
        seat.synchronize();
        CHECK(holds(error_of(call).what(), {"usable communicator", "failed earlier"}));
      },
      {.memory = 600 << 10}, options);
}

TEST_CASE("streams: a device that fails, and peers that do not come, let the stream go on") {
  Options options = support::test_options();
  options.timeout = 300ms;
  on_one_device(
      2,
      [](Seat& seat) {
        auto* const data = seat.put(numbers(seat.rank, 100));
        const Data all{data, 100, Datatype::i32};
        seat.communicator.all_reduce(all, all, sum, seat.stream);
        seat.meet();
        seat.device.run(seat.stream, [device = &seat.device] { device->break_down(); });
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
        CHECK_NOTHROW(seat.communicator.synchronize());
      },
      {}, options);
  std::atomic<bool> told = false;
  on_one_device(
      2,
      [&told](Seat& seat) {
        auto* const data = seat.put(numbers(seat.rank, 100));
        const Data all{data, 100, Datatype::i32};
        // One rank's stream never comes to its call while the other waits.
        if (seat.rank == 1)
          seat.device.run(seat.stream, [&told] {
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
      {}, options);
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
