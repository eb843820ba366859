#include "trace/clock.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "support/ranks.hpp"
#include "trace/recorder.hpp"

using namespace baton;
using namespace baton::tracing;

namespace {

/// A clock that is `offset` ns ahead of the machine's, and fast by `drift` parts in one.
struct Wrong {
  std::int64_t origin = 0, offset = 0;
  double drift = 0;
  std::int64_t at(std::int64_t true_time) const {
    return true_time + offset + std::llround(drift * static_cast<double>(true_time - origin));
  }
};

}  // namespace

TEST_CASE("offset and drift of a clock are found, within the bound that is stated") {
  for (const Wrong wrong : {Wrong{0, 0, 0}, Wrong{0, 5'000'000'000, 0}, Wrong{0, -123'456'789, 0},
                            Wrong{now(), 1'000'000, 100e-6}, Wrong{now(), -77, -500e-6}}) {
    run_threads(2, [&](std::unique_ptr<Transport> transport) {
      const Patience patience = at_most(std::chrono::seconds(20));
      if (transport->rank() == 0) {
        answer_clock(*transport, 1, 3, 64, now, patience);
        answer_clock(*transport, 1, 4, 64, now, patience);
        return;
      }
      const auto clock = [&] { return wrong.at(now()); };
      const ClockSample before = compare_clock(*transport, 0, 3, 64, clock, patience);
      std::vector<std::int64_t> times;
      for (int i = 0; i < 20; ++i) {
        times.push_back(now());
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
      const ClockSample after = compare_clock(*transport, 0, 4, 64, clock, patience);
      CHECK(before.error > 0);
      CHECK(before.error < 1'000'000'000);
      const Correction correct(before, after);
      for (const std::int64_t time : times)
        CHECK(std::abs(correct(wrong.at(time)) - time) <= correct.error());
    });
  }
}

TEST_CASE("the bound is no wider than the quickest answer") {
  run_threads(2, [&](std::unique_ptr<Transport> transport) {
    if (transport->rank() == 0)
      return answer_clock(*transport, 1, 3, 64, now, at_most(std::chrono::seconds(20)));
    std::int64_t asked = 0, quickest = std::numeric_limits<std::int64_t>::max();
    int reading = 0;
    const auto clock = [&] {
      const std::int64_t time = now();
      if (reading++ % 2 == 0) {
        asked = time;
      } else {
        quickest = std::min(quickest, time - asked);
      }
      return time;
    };
    const auto sample =
        compare_clock(*transport, 0, 3, 64, clock, at_most(std::chrono::seconds(20)));
    CHECK(reading == 2 * 64);
    CHECK(sample.error == (quickest + 1) / 2);
  });
}

TEST_CASE("of two samples: in between, the difference changes evenly") {
  const Correction correct({1000, 50, 4}, {3000, 250, 9});
  CHECK(correct(1000) == 1050);
  CHECK(correct(2000) == 2150);
  CHECK(correct(3000) == 3250);
  CHECK(correct.error() == 10);  // and the half that is rounded
  CHECK(Correction()(12345) == 12345);
  CHECK(Correction().error() == 0);
}

TEST_CASE("the caller says how long to wait, and is told for which rank") {
  run_threads(2, [&](std::unique_ptr<Transport> transport) {
    if (transport->rank() == 0) return;
    const Error error = support::error_of(
        [&] { compare_clock(*transport, 0, 3, 64, now, at_most(std::chrono::milliseconds(50))); });
    CHECK(error.code == ErrorCode::timeout);
    CHECK(error.peer == 0);
    CHECK(support::holds(error.what(), {"expected rank 0 to compare clocks", "found it silent"}));
  });
}
