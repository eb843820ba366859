#include <doctest/doctest.h>

#include <atomic>
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

/// A transport whose ranks are to wait after three polls.
class Impatient final : public ForwardingTransport {
 public:
  static constexpr int spins = 3;
  Impatient(std::unique_ptr<Transport> inner, Counts& counts)
      : ForwardingTransport(std::move(inner)), counts_(counts) {}

  Capabilities capabilities() const override {
    Capabilities can = inner().capabilities();
    can.spins = spins;
    return can;
  }
  bool test(Message& message, std::size_t& bytes) override {
    if (!counts_.idled) ++counts_.tests;
    return ForwardingTransport::test(message, bytes);
  }
  void idle(std::chrono::microseconds at_most) override {
    counts_.idled = true;
    ForwardingTransport::idle(at_most);
  }

 protected:
  std::unique_ptr<Transport> wrapped(std::unique_ptr<Transport> part) override {
    return std::make_unique<Impatient>(std::move(part), counts_);
  }

 private:
  Counts& counts_;
};

}  // namespace

TEST_CASE("a rank that waits leaves its core after as many polls as its transport says") {
  for (const bool request : {false, true}) {
    CAPTURE(request);
    Counts counts, unused;
    run_threads(2, [&](std::unique_ptr<Transport> transport) {
      const int rank = transport->rank();
      Counts& own = rank == 0 ? counts : unused;
      Communicator c(std::make_unique<Impatient>(std::move(transport), own),
                     support::test_options());
      c.barrier();
      std::vector<int> x(4, rank);
      own.tests = 0, own.idled = false;
      if (rank == 1)  // comes once the other one waits
        while (!counts.idled) std::this_thread::yield();
      if (request)
        c.start_broadcast(x, 1).wait();
      else
        c.broadcast(x, 1);
      CHECK(x == std::vector<int>(4, 1));
    });
    // Polls of the call itself, and then of its wait.
    CHECK(counts.tests <= 3 * Impatient::spins);
  }
}
