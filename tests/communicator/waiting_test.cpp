#include <doctest/doctest.h>

#include <utility>
#include <vector>

#include "baton/forwarding.hpp"
#include "support/conformance.hpp"
#include "support/ranks.hpp"

using namespace baton;
using namespace support;

namespace {

/// A transport for one thread that has blocking calls.
class Patient final : public ForwardingTransport, public BlockingCalls {
 public:
  using ForwardingTransport::ForwardingTransport;
  int waited() const { return waited_; }
  Capabilities capabilities() const override { return {.name = "patient", .concurrent = false}; }
  BlockingCalls* blocking() override { return this; }
  void send(const OutgoingMessage& out) override { baton::send(inner(), out); }
  std::size_t recv(const IncomingMessage& in) override {
    ++waited_;
    return baton::recv(inner(), in);
  }
  std::size_t send_recv(const OutgoingMessage& out, const IncomingMessage& in) override {
    ++waited_;
    return baton::send_recv(inner(), out, in);
  }

 private:
  std::unique_ptr<Transport> wrapped(std::unique_ptr<Transport> part) override {
    return std::make_unique<Patient>(std::move(part));
  }
  int waited_ = 0;
};

void on_patient_ranks(int size, const ThreadOptions& threads, const Options& options,
                      const std::function<void(Communicator&, const Patient&)>& body) {
  Watchdog watchdog(size, std::chrono::seconds(240));
  run_threads(
      size,
      [&](std::unique_ptr<Transport> transport) {
        auto patient = std::make_unique<Patient>(std::move(transport));
        const Patient& waits = *patient;
        Communicator c(std::move(patient), options);
        body(c, waits);
        watchdog.returned(c.rank());
      },
      threads);
}

}  // namespace

TEST_CASE("waiting in the transport hangs no algorithm, also where sends wait for receives") {
  for (const unsigned eager : {0u, 1u << 20}) {
    for (const int size : under_sanitizer ? std::vector{2, 3, 5} : std::vector{2, 3, 4, 5, 8}) {
      on_patient_ranks(size, {.seed = 5, .eager_bytes = eager}, {},
                       [](Communicator& c, const Patient& patient) {
                         conformance::rooted(c, brief(c.size()));
                         conformance::reductions(c, brief(c.size()));
                         conformance::exchanges(c, brief(c.size()));
                         conformance::barriers(c);
                         CHECK(patient.waited() > 0);
                       });
    }
  }
}

TEST_CASE("no rank waits in the transport while there is something else to do or to watch") {
  on_patient_ranks(2, {}, {}, [](Communicator& c, const Patient& patient) {
    std::vector<float> x{1}, y{1};
    c.all_reduce(x, sum);
    const int before = patient.waited();
    CHECK(before > 0);
    Request under_way = c.start_barrier();
    c.all_reduce(x, sum);
    under_way.wait();
    CHECK(patient.waited() == before);
    c.all_reduce(y, sum);
    CHECK(patient.waited() > before);
    CHECK(x[0] == 4);
  });
  on_patient_ranks(2, {}, test_options(), [](Communicator& c, const Patient& patient) {
    std::vector<float> x{1};
    c.all_reduce(x, sum);
    CHECK(patient.waited() == 0);  // a time limit
  });
}

TEST_CASE("a repeated call is run by the algorithm that it asks for") {
  on_ranks(4, [](Communicator& c) {
    // Sums that rounding tells apart: recursive doubling adds pairs, a ring one after the other.
    const float own[] = {1e8f, 1.0f, -1e8f, 1.0f};
    const auto sum_by = [&](const char* algorithm) {
      std::vector<float> x(4, own[c.rank()]);
      c.all_reduce(x, sum, {algorithm, 0});
      return x;
    };
    const auto doubling = sum_by("recursive_doubling"), ring = sum_by("ring");
    REQUIRE(doubling != ring);
    for (int i = 0; i < 3; ++i) {
      CHECK(sum_by("recursive_doubling") == doubling);
      CHECK(sum_by("ring") == ring);
      CHECK(sum_by("ring") == ring);
    }
  });
}
