/// NCCL's transport on a stand-in for NCCL: what waits for ranks that do not come, and for how
/// long.

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "baton/error.hpp"
#include "baton/nccl.hpp"
#include "stand_in_nccl.hpp"
#include "support/ranks.hpp"
#include "support/stand_in.hpp"

using namespace baton;
using namespace std::chrono_literals;
using support::error_of;
using support::holds;
using support::NcclScript;

namespace {

constexpr auto limit = 200ms;

/// Runs body(host, device) on ranks as threads, whose NCCL follows the script.
template <class Body>
void on_ranks(int size, const NcclScript& script, Body body) {
  support::follow(script);
  support::nccl_calls();
  const auto device = std::make_shared<support::StandInDevice>();
  support::Watchdog watchdog(size, 60s);
  run_threads(size, [&](std::unique_ptr<Transport> host) {
    body(*host, *device);
    watchdog.returned(host->rank());
  });
  CHECK(support::open_communicators(false) == 0);
  CHECK(support::open_communicators(true) == 0);
}

auto count_of(std::string_view name) { return std::ranges::count(support::nccl_calls(), name); }

void message(FusedTransport& groups, int to) {
  groups.begin();
  groups.send(to, nullptr, 0, nullptr);
  groups.recv(to, nullptr, 0, nullptr);
  groups.end();
}

}  // namespace

TEST_CASE(
    "nccl: a transport is made, used and split when all have connected, with a limit or not") {
  for (const auto timeout : {0ms, std::chrono::milliseconds(60s)}) {
    CAPTURE(timeout.count());
    on_ranks(3, {}, [&](Transport& host, Device& device) {
      const auto groups = nccl_transport(host, device, timeout);
      CHECK(groups->rank() == host.rank());
      CHECK(groups->size() == 3);
      CHECK(support::open_communicators(timeout.count() > 0) == 0);  // none of the other kind
      for (int i = 0; i < 3; ++i) message(*groups, (host.rank() + 1) % 3);
      const auto part = groups->split(host.rank() == 1 ? -1 : 0, host.rank());
      CHECK((part == nullptr) == (host.rank() == 1));
      if (part) message(*part, 0);
      groups->check();
    });
    const auto all = support::nccl_calls();
    CHECK(std::ranges::count(all, "ncclCommDestroy") == 5);
    CHECK(std::ranges::count(all, "ncclCommAbort") == 0);
  }
}

TEST_CASE("nccl: ranks that do not connect within the limit are given up") {
  on_ranks(2, {.busy = -1}, [](Transport& host, Device& device) {
    const auto begin = std::chrono::steady_clock::now();
    const Error error = error_of([&] { nccl_transport(host, device, limit); });
    CHECK(error.code == ErrorCode::timeout);
    CHECK(error.rank == host.rank());
    CHECK_MESSAGE(holds(error.what(), {"all 2 ranks to connect", "within 0.2 s",
                                       "ncclCommInitRankConfig still in progress on rank"}),
                  error.what());
    CHECK(std::chrono::steady_clock::now() - begin >= limit);
  });
  CHECK(count_of("ncclCommAbort") == 2);
}

TEST_CASE("nccl: what fails while ranks connect is NCCL's error") {
  on_ranks(2, {.outcome = ncclSystemError}, [](Transport& host, Device& device) {
    const Error error = error_of([&] { nccl_transport(host, device, limit); });
    CHECK(error.code == ErrorCode::transport);
    CHECK(error.backend_code == ncclSystemError);
    CHECK_MESSAGE(holds(error.what(), {"ncclCommInitRankConfig", "error 2, something"}),
                  error.what());
  });
  CHECK(count_of("ncclCommAbort") == 2);
}

TEST_CASE("nccl: a group or a split whose ranks do not come within the limit is given up") {
  for (const bool split : {false, true}) {
    on_ranks(2, {}, [&](Transport& host, Device& device) {
      const auto groups = nccl_transport(host, device, limit);
      char token = 0;  // both are ready before NCCL falls silent
      send_recv(host, {1 - host.rank(), 1, &token, 1}, {1 - host.rank(), 1, &token, 1});
      support::follow({.busy = -1});
      const Error error = error_of([&] {
        if (split) {
          groups->split(0, host.rank());
        } else {
          message(*groups, 1 - host.rank());
        }
      });
      CHECK(error.code == ErrorCode::timeout);
      const std::string whom = split ? "all 2 ranks to split"
                                     : "peers of a fused group, " +
                                           std::to_string(1 - host.rank()) + ", to enqueue theirs";
      CHECK_MESSAGE(holds(error.what(), {whom, "within 0.2 s"}), error.what());
      if (!split) groups->abort();
    });
  }
}

TEST_CASE("nccl: another thread's interrupt ends a group that waits") {
  on_ranks(2, {}, [&](Transport& host, Device& device) {
    const auto groups = nccl_transport(host, device, 60s);
    char token = 0;  // both are ready before NCCL falls silent
    send_recv(host, {1 - host.rank(), 1, &token, 1}, {1 - host.rank(), 1, &token, 1});
    support::follow({.busy = -1});
    std::thread other([&] {
      std::this_thread::sleep_for(10ms);
      groups->interrupt();
    });
    const Error error = error_of([&] { message(*groups, 1 - host.rank()); });
    other.join();
    CHECK(error.code == ErrorCode::transport);
    CHECK_MESSAGE(holds(error.what(), {"peers of a fused group", "aborted while ncclGroupEnd"}),
                  error.what());
    groups->abort();
  });
}

TEST_CASE("nccl: a split that fails is NCCL's error, with a limit or not") {
  for (const auto timeout : {0ms, std::chrono::milliseconds(60s)}) {
    CAPTURE(timeout.count());
    on_ranks(2, {}, [&](Transport& host, Device& device) {
      const auto groups = nccl_transport(host, device, timeout);
      char token = 0;  // both are ready before NCCL fails
      send_recv(host, {1 - host.rank(), 1, &token, 1}, {1 - host.rank(), 1, &token, 1});
      support::follow({.outcome = ncclSystemError});
      const Error error = error_of([&] { groups->split(host.rank() - 1, 0); });
      CHECK(error.code == ErrorCode::transport);
      CHECK(error.backend_code == ncclSystemError);
      CHECK_MESSAGE(holds(error.what(), {"ncclCommSplit", "error 2, something"}), error.what());
    });
    CHECK(count_of("ncclCommAbort") == 3);
  }
}

TEST_CASE("nccl: a rank that is not there ends the others' wait before NCCL is asked") {
  on_ranks(3, {}, [](Transport& host, Device& device) {
    if (host.rank() == 2) return;
    const Error error = error_of([&] { nccl_transport(host, device, limit); });
    CHECK(error.code == ErrorCode::timeout);
    CHECK_MESSAGE(holds(error.what(), {"all 3 ranks", "within 0.2 s", "did not come: 2"}),
                  error.what());
  });
  CHECK(count_of("ncclCommInitRankConfig") == 0);
}
