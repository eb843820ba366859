#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "baton/communicator.hpp"
#include "baton/forwarding.hpp"
#include "support/ranks.hpp"

using namespace baton;

namespace {

struct Counts {
  std::atomic<int> tests{0};  // before the first wait
  std::atomic<bool> idled{false};
};

/// A transport whose ranks are to wait after so many polls, each of which takes so long.
class Impatient final : public ForwardingTransport {
 public:
  Impatient(std::unique_ptr<Transport> inner, Counts& counts, int spins,
            std::chrono::milliseconds poll = {})
      : ForwardingTransport(std::move(inner)), counts_(counts), spins_(spins), poll_(poll) {}

  Capabilities capabilities() const override {
    Capabilities can = inner().capabilities();
    can.spins = spins_;
    return can;
  }
  bool test(Message& message, std::size_t& bytes) override {
    if (!counts_.idled) ++counts_.tests;
    if (poll_.count() > 0) std::this_thread::sleep_for(poll_);
    return ForwardingTransport::test(message, bytes);
  }
  void idle(std::chrono::microseconds at_most) override {
    counts_.idled = true;
    ForwardingTransport::idle(at_most);
  }

 protected:
  std::unique_ptr<Transport> wrapped(std::unique_ptr<Transport> part) override {
    return std::make_unique<Impatient>(std::move(part), counts_, spins_, poll_);
  }

 private:
  Counts& counts_;
  int spins_;
  std::chrono::milliseconds poll_;
};

/// The polls of a rank that waits for another one, before it leaves its core; at a collective's
/// first call, or at its third, which repeats the second.
int polls(int spins, std::chrono::milliseconds poll, bool request, int calls) {
  Counts counts, unused;
  std::barrier both(2);
  run_threads(2, [&](std::unique_ptr<Transport> transport) {
    const int rank = transport->rank();
    Counts& own = rank == 0 ? counts : unused;
    Communicator c(std::make_unique<Impatient>(std::move(transport), own, spins, poll),
                   support::test_options());
    std::vector<int> x(4);
    for (int call = 0; call < calls; ++call) {
      std::ranges::fill(x, rank);
      if (rank == 0) counts.tests = 0, counts.idled = false;
      both.arrive_and_wait();
      if (rank == 1)  // comes once the other one waits
        while (!counts.idled) std::this_thread::yield();
      if (request)
        c.start_broadcast(x, 1).wait();
      else
        c.broadcast(x, 1);
      CHECK(x == std::vector<int>(4, 1));
    }
  });
  CHECK(counts.tests > 0);
  return counts.tests;
}

}  // namespace

TEST_CASE("a rank that waits leaves its core after as many polls as its transport says") {
  constexpr int spins = 3;
  for (const bool request : {false, true}) {
    CAPTURE(request);
    // Polls of the call itself, and then of its wait.
    CHECK(polls(spins, {}, request, 1) <= 3 * spins);
  }
}

TEST_CASE("a rank that waits leaves its core after few polls where each takes long") {
  for (const bool request : {false, true})
    for (const int calls : {1, 3}) {
      CAPTURE(request);
      CAPTURE(calls);
      CHECK(polls(4096, std::chrono::milliseconds(1), request, calls) <= 64);
    }
}
