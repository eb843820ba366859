/// Collectives of threads that share a device, in fused groups of their own.

#include <doctest/doctest.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "baton/stream.hpp"
#include "baton/thread.hpp"
#include "stream_cases.hpp"
#include "support/ranks.hpp"
#include "support/stand_in.hpp"

using namespace baton;
using namespace stream_cases;
using namespace std::chrono_literals;
using support::error_of;
using support::holds;
using support::StandInDevice;

/// Fused groups of threads' own, on a device whose streams share `channels` hardware queues.
static TestDevice of_threads(int channels, std::uint64_t seed = 0) {
  TestDevice test_device = stand_in({.seed = seed, .channels = channels, .all_share = true});
  const auto device = test_device.device;
  test_device.groups = [device](int) {
    return [device](Transport& host) { return thread_fused_transport(host, device, 60s); };
  };
  return test_device;
}

TEST_CASE("groups of threads: every collective by every algorithm gives the host's bits") {
  for (const int size : sizes) {
    CAPTURE(size);
    every_collective(size, of_threads(0, 7));
    every_collective(size, of_threads(1));
  }
}

TEST_CASE("groups of threads: tensors, split communicators, many ranks on one hardware queue") {
  tensors(of_threads(0, 7));
  tensors(of_threads(1));
  for (const int channels : {1, 8}) many_ranks(64, of_threads(channels));
  for (const int size : {1, 2, 4}) in_order(size, of_threads(0, 3));
}

TEST_CASE("groups of threads: messages of several streams, to this rank too") {
  const auto device = std::make_shared<StandInDevice>();
  run_threads(3, [&](std::unique_ptr<Transport> host) {
    const auto groups = thread_fused_transport(*host, device, 60s);
    const Stream streams[] = {device->make_user_stream(), device->make_user_stream()};
    const auto put = [&](int value) {
      std::byte* const at = device->allocate(sizeof value);
      std::memcpy(device->host_view(at), &value, sizeof value);
      return at;
    };
    std::byte* const own = put(groups->rank());
    std::byte* into[3] = {put(-1), put(-1), put(-1)};
    groups->begin();
    for (int peer = 0; peer < 3; ++peer) {
      groups->send(peer, own, sizeof(int), streams[peer % 2]);
      groups->recv(peer, into[peer], sizeof(int), streams[(peer + 1) % 2]);
    }
    groups->end();
    for (const Stream stream : streams) device->synchronize(stream);
    for (int peer = 0; peer < 3; ++peer) {
      int found = -1;
      std::memcpy(&found, device->host_view(into[peer]), sizeof found);
      CHECK(found == peer);
    }
  });
}

/// Two ranks' fused groups that fail: what each says. `limit` is rank 0's; none has another.
static std::vector<Error> failing(
    std::chrono::milliseconds limit,
    const std::function<void(FusedTransport&, StandInDevice&)>& body) {
  const auto device = std::make_shared<StandInDevice>();
  std::vector<Error> errors(2, Error(ErrorCode::unsupported, "none"));
  run_threads(2, [&](std::unique_ptr<Transport> host) {
    const auto groups = thread_fused_transport(*host, device, limit);
    errors[static_cast<std::size_t>(host->rank())] = error_of([&] { body(*groups, *device); });
  });
  CHECK(device.use_count() == 1);  // nothing is left of it
  return errors;
}
static void exchange(FusedTransport& groups, StandInDevice& device, std::size_t sends,
                     std::size_t receives) {
  const Stream stream = device.make_user_stream();
  const int peer = 1 - groups.rank();
  groups.begin();
  if (sends > 0) groups.send(peer, device.allocate(sends), sends, stream);
  if (receives > 0) groups.recv(peer, device.allocate(receives), receives, stream);
  groups.end();
}
static void expect(const Error& error, ErrorCode code, const std::vector<std::string>& parts) {
  CHECK(error.code == code);
  CHECK_MESSAGE(holds(error.what(), parts), error.what());
}

TEST_CASE("groups of threads: what is amiss is said, and no message outlives its sender") {
  // Nobody receives, or sends.
  std::atomic<bool> over = false;
  auto errors = failing(200ms, [&](FusedTransport& groups, StandInDevice& device) {
    if (groups.rank() == 0) {
      const auto finally = [&](auto& call) {
        try {
          call();
        } catch (...) {
          groups.abort();
          over = true;
          throw;
        }
      };
      auto call = [&] { exchange(groups, device, 8, 0); };
      finally(call);
    }
    while (!over) std::this_thread::yield();
    exchange(groups, device, 0, 8);
  });
  expect(errors[0], ErrorCode::timeout, {"rank 0", "expected rank 1 to receive", "0.2 s"});
  CHECK(errors[0].peer == 1);
  expect(errors[1], ErrorCode::transport, {"aborted"});

  errors = failing({}, [&](FusedTransport& groups, StandInDevice& device) {
    if (groups.rank() == 1) throw Error(ErrorCode::memory, "left");
    exchange(groups, device, 0, 8);
  });
  expect(errors[0], ErrorCode::transport, {"rank 0", "expected rank 1 to send", "has left"});

  // An abort ends a call that waits.
  errors = failing({}, [&](FusedTransport& groups, StandInDevice& device) {
    if (groups.rank() == 1) {
      std::this_thread::sleep_for(20ms);
      groups.abort();
    }
    exchange(groups, device, 0, 8);
  });
  for (const Error& error : errors) expect(error, ErrorCode::transport, {"aborted"});

  errors = failing(10s, [&](FusedTransport& groups, StandInDevice& device) {
    try {
      exchange(groups, device, groups.rank() == 0 ? 8 : 4, 8);
    } catch (const Error&) {
      groups.abort();
      throw;
    }
  });
  CHECK((holds(errors[0].what(), {"expected 8 bytes from rank 1, found 4"})));

  // A split without all ranks.
  errors = failing({}, [&](FusedTransport& groups, StandInDevice&) {
    if (groups.rank() == 1) throw Error(ErrorCode::memory, "left");
    groups.split(0, 0);
  });
  expect(errors[0], ErrorCode::transport, {"split needs all 2 ranks", "rank 1 has left"});
}

TEST_CASE("groups of threads: an abort ends a call that waits for a peer in another thread") {
  const auto device = std::make_shared<StandInDevice>();
  std::atomic<bool> over = false;
  run_threads(2, [&](std::unique_ptr<Transport> host) {
    const int rank = host->rank();
    auto groups = thread_fused_transport(*host, device, {});
    StreamCommunicator ranks(std::move(host), device, std::move(groups), support::test_options());
    if (rank == 1) {  // does not come
      over.wait(false);
      return;
    }
    const Stream stream = device->make_user_stream();
    std::byte* const data = device->allocate(16);
    std::thread other([&] {
      std::this_thread::sleep_for(20ms);
      ranks.abort("enough");
    });
    const Error error = error_of([&] {
      ranks.all_reduce({data, 4, Datatype::i32}, {data, 4, Datatype::i32}, sum, stream);
    });
    expect(error, ErrorCode::transport, {"rank 0", "aborted"});
    other.join();
    device->synchronize(stream);
    over = true;
    over.notify_all();
  });
}

TEST_CASE("groups of threads: all ranks come, with the same device, or all are told") {
  const auto device = std::make_shared<StandInDevice>(), other = std::make_shared<StandInDevice>();
  for (const auto& second : {std::shared_ptr<StandInDevice>(), other}) {
    run_threads(3, [&](std::unique_ptr<Transport> host) {
      const Error error = error_of(
          [&] { thread_fused_transport(*host, host->rank() == 1 ? second : device, 60s); });
      expect(error, ErrorCode::invalid_argument, {"the same device on all 3 ranks"});
    });
  }
  run_threads(2, [&](std::unique_ptr<Transport> host) {
    if (host->rank() == 1) return;
    const Error error = error_of([&] { thread_fused_transport(*host, device, 100ms); });
    expect(error, ErrorCode::timeout, {"rank 0", "expected rank 1 to call", "0.1 s"});
  });
}
