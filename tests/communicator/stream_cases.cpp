#include "stream_cases.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "baton/communicator.hpp"
#include "baton/schedule.hpp"
#include "baton/staged.hpp"
#include "baton/thread.hpp"

namespace stream_cases {

using namespace baton;

namespace {

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

void on_one_device(int size, const TestDevice& test_device, const std::function<void(Seat&)>& body,
                   const Options& options, std::uint64_t seed, std::size_t segment) {
  ThreadOptions thread_options{.seed = seed};
  if (segment == 0) thread_options.devices = {test_device.device};
  const TestDevice::MakeGroups make_groups =
      test_device.groups ? test_device.groups(size) : nullptr;
  support::Watchdog watchdog(size, std::chrono::seconds(240));
  const auto run = [&](std::unique_ptr<Transport> transport) {
    const int rank = transport->rank();
    try {
      if (segment > 0)
        transport = staged_transport(std::move(transport), test_device.device, segment);
      std::unique_ptr<FusedTransport> groups = make_groups ? make_groups(*transport) : nullptr;
      StreamCommunicator communicator =
          groups ? StreamCommunicator(std::move(transport), test_device.device, std::move(groups),
                                      options)
                 : StreamCommunicator(std::move(transport), test_device.device, options,
                                      test_device.returns);
      Seat seat{communicator, test_device, test_device.make_stream(), rank, size};
      body(seat);
      communicator.synchronize();
    } catch (const std::exception& error) {
      FAIL_CHECK("rank " << rank << " of " << size << ": " << std::string(error.what()));
    }
    watchdog.returned(rank);
  };
  if (test_device.launch) {
    test_device.launch(run);
  } else {
    run_threads(size, run, thread_options);
  }
}

TestDevice stand_in(const support::StandInOptions& options) {
  const auto device = std::make_shared<support::StandInDevice>(options);
  return {device, [device] { return device->make_user_stream(); },
          [device](std::byte* to, const void* from, std::size_t bytes) {
            if (bytes > 0) std::memcpy(device->host_view(to), from, bytes);
          },
          [device](void* to, const std::byte* from, std::size_t bytes) {
            if (bytes > 0) std::memcpy(to, device->host_view(from), bytes);
          },
          [device](Stream stream) { device->synchronize(stream); }};
}

TestDevice in_groups(const support::StandInOptions& options,
                     const support::StandInFusedOptions& groups) {
  TestDevice test_device = stand_in(options);
  const auto device = std::static_pointer_cast<support::StandInDevice>(test_device.device);
  test_device.groups = [device, groups](int size) {
    const auto all = std::make_shared<std::vector<std::unique_ptr<FusedTransport>>>(
        support::stand_in_fused(size, device, groups));
    return
        [all](Transport& host) { return std::move((*all)[static_cast<std::size_t>(host.rank())]); };
  };
  return test_device;
}

support::StandInDevice& stand_in_of(const Seat& seat) {
  return static_cast<support::StandInDevice&>(*seat.test_device.device);
}

std::vector<std::int32_t> numbers(int rank, std::int64_t count, std::uint64_t seed) {
  std::vector<std::int32_t> all;
  for (std::int64_t i = 0; i < count; ++i) all.push_back(support::value(seed, rank, i));
  return all;
}

void every_collective(int size, const TestDevice& test_device, std::uint64_t seed,
                      std::size_t segment) {
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
  on_one_device(
      size, test_device,
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
          seat.free(in);
          seat.free(out);
        });
      },
      support::test_options(), seed, segment);
}

void in_order(int size, const TestDevice& test_device) {
  on_one_device(size, test_device, [](Seat& seat) {
    support::StandInDevice& device = stand_in_of(seat);
    constexpr std::size_t count = 1000;
    auto* const data = seat.put(std::vector<std::int32_t>(count, -1));
    auto* const host = reinterpret_cast<std::int32_t*>(device.host_view(data));
    std::atomic<int> wrong = 0;
    for (int round = 0; round < 20; ++round) {
      device.run(seat.stream, [=] {
        std::this_thread::sleep_for(std::chrono::microseconds(200));
        std::fill(host, host + count, round + seat.rank);
      });
      seat.communicator.all_reduce({data, count, Datatype::i32}, {data, count, Datatype::i32}, sum,
                                   seat.stream);
      device.run(seat.stream, [=, &wrong] {
        const int expected = seat.size * round + seat.size * (seat.size - 1) / 2;
        for (std::size_t i = 0; i < count; ++i) wrong += host[i] != expected;
      });
    }
    seat.synchronize();
    CHECK(wrong == 0);
  });
}

void many_ranks(int size, const TestDevice& test_device) {
  on_one_device(size, test_device, [](Seat& seat) {
    constexpr std::int64_t count = 129;
    constexpr int rounds = 3;
    auto* const own = seat.put(numbers(seat.rank, count));
    auto* const data = seat.put(std::vector<std::int32_t>(count));
    auto* const results = seat.put(std::vector<std::int32_t>(rounds * count));
    const auto copy = [&](std::int32_t* to, std::int32_t* from) {
      Rows rows;
      rows.at[0] = reinterpret_cast<std::byte*>(to);
      rows.at[1] = reinterpret_cast<std::byte*>(from);
      rows.block = count;
      seat.test_device.device->copy({&rows, 1}, sizeof(std::int32_t), seat.stream);
    };
    for (int round = 0; round < rounds; ++round) {
      copy(data, own);
      seat.communicator.all_reduce({data, count, Datatype::i32}, {data, count, Datatype::i32}, sum,
                                   seat.stream);
      copy(results + round * count, data);
    }
    seat.synchronize();
    std::vector<std::int32_t> sums(count), expected;
    for (int rank = 0; rank < seat.size; ++rank) {
      const auto theirs = numbers(rank, count);
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += theirs[i];
    }
    for (int round = 0; round < rounds; ++round)
      expected.insert(expected.end(), sums.begin(), sums.end());
    CHECK(seat.got(results, expected.size()) == expected);
  });
}

void tensors(const TestDevice& test_device) {
  on_one_device(4, test_device, [](Seat& seat) {
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

void refused(const Seat& seat, Data data, Stream stream, const std::vector<std::string>& parts) {
  const Error error =
      support::error_of([&] { seat.communicator.all_reduce(data, data, sum, stream); });
  CHECK_MESSAGE(support::holds(error.what(), parts), error.what());
  CHECK(error.code == ErrorCode::invalid_argument);
}

}  // namespace stream_cases
