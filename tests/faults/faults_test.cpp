/// A sample of the cases that scripts/soak runs.

#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>
#include <exception>
#include <latch>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "allocations.hpp"
#include "baton/communicator.hpp"
#include "baton/error.hpp"
#include "baton/forwarding.hpp"
#include "baton/thread.hpp"
#include "cases.hpp"
#include "support/sanitizer.hpp"

using namespace faults;

namespace {

/// Draws cases of a kind until `wanted` had their fault; a third of them under a sanitizer.
void sample(Kind kind, int wanted, int check = 0) {
  if (support::under_sanitizer) wanted = (wanted + 2) / 3;
  const std::vector<Subject> all = subjects();
  std::minstd_rand random(static_cast<unsigned>(kind) * 100 + static_cast<unsigned>(check) + 1);
  int happened = 0;
  for (int tried = 0; happened < wanted; ++tried) {
    REQUIRE(tried < 20 * wanted);
    const Subject& subject = all[random() % all.size()];
    Case one{subject.collective, subject.choice, 2 + static_cast<int>(random() % 8), check, {}};
    one.plan = {kind, static_cast<int>(random() % static_cast<unsigned>(one.size)),
                static_cast<int>(random() % (kind == Kind::no_memory ? 40 : 8)),
                random() % 3 == 0 || kind == Kind::reordered ? random() : 0};
    const Outcome outcome = run(one);
    CHECK_MESSAGE(outcome.problem.empty(), describe(one), ": ", outcome.problem);
    if (outcome.served && (outcome.happened || kind <= Kind::reordered)) ++happened;
  }
}

}  // namespace

TEST_CASE("faults: delays and reordering change nothing") {
  for (const int check : {0, 1, 2}) {
    sample(Kind::none, 30, check);
    sample(Kind::reordered, 60, check);
  }
}
TEST_CASE("faults: a message that loses or gains a byte") {
  for (const int check : {0, 1, 2}) {
    sample(Kind::shortened, 40, check);
    sample(Kind::lengthened, 40, check);
  }
}
TEST_CASE("faults: a changed bit is found by the checksum") { sample(Kind::corrupted, 100, 2); }
TEST_CASE("faults: a message that is refused or fails") {
  for (const int check : {0, 1, 2}) {
    sample(Kind::refused, 40, check);
    sample(Kind::failed, 40, check);
  }
}
TEST_CASE("faults: a rank that ends") {
  for (const int check : {0, 1, 2}) sample(Kind::dead, 40, check);
}
TEST_CASE("faults: a rank that stops") {
  for (const int check : {0, 2}) sample(Kind::stopped, 6, check);
}
TEST_CASE("faults: a rank without memory") {
  for (const int check : {0, 1, 2}) sample(Kind::no_memory, 30, check);
}

namespace {

/// Wires of which one can break; from then on an allocation of its rank fails, too.
class Breaking final : public baton::ForwardingTransport {
 public:
  using ForwardingTransport::ForwardingTransport;

  void irecv(int peer, int tag, void* data, std::size_t bytes, baton::Message& message) override {
    inner().irecv(peer, tag, data, bytes, message);
    posted_.insert(&message);
  }
  bool test(baton::Message& message, std::size_t& bytes) override {
    if (fails_at_ >= 0) {
      const baton::Error error(baton::ErrorCode::transport, "the wire broke");
      cancel(message);
      left_ = posted_.size();
      fails_.emplace(std::exchange(fails_at_, -1), happened_);
      throw error;
    }
    const bool done = inner().test(message, bytes);
    if (done) posted_.erase(&message);
    return done;
  }
  void cancel(baton::Message& message) override {
    if (posted_.erase(&message) > 0) inner().cancel(message);
  }

  void fail(int allocation) { fails_at_ = allocation; }
  /// Allocations succeed again; whether that one came.
  bool recover() {
    fails_.reset();
    return happened_;
  }
  /// Receives that were posted when the wire broke, and that are now.
  std::size_t left() const { return left_; }
  std::size_t posted() const { return posted_.size(); }

 private:
  std::unique_ptr<Transport> wrapped(std::unique_ptr<Transport> part) override { return part; }

  int fails_at_ = -1;
  std::size_t left_ = 0;
  std::set<const baton::Message*> posted_;
  std::atomic<bool> happened_ = false;
  std::optional<FailingAllocation> fails_;
};

/// Rank 0 of 3 gathers while a wire breaks; whether its allocation with this number came.
bool breaks_without_memory(int allocation) {
  bool happened = false;
  std::latch over(3);
  baton::run_threads(3, [&](std::unique_ptr<baton::Transport> transport) {
    auto owned = std::make_unique<Breaking>(std::move(transport));
    Breaking& wires = *owned;
    baton::Communicator c(std::move(owned));
    if (c.rank() == 0) {
      CAPTURE(allocation);
      std::vector<float> own(1000), all(3000);
      bool failed = false;
      wires.fail(allocation);
      try {
        c.gather(own, all, 0, {"linear", 0});
      } catch (const std::exception&) {
        failed = true;
      }
      happened = wires.recover();
      CHECK(failed);
      CHECK(wires.left() == 1);
      CHECK(wires.posted() == 0);  // nothing arrives any more in memory that may be freed now
      std::string why;
      try {
        c.barrier();
      } catch (const baton::Error& error) {
        why = error.what();
      }
      CHECK_MESSAGE(why.find("one that failed earlier: ") != std::string::npos, why);
    }
    over.arrive_and_wait();
  });
  return happened;
}

}  // namespace

TEST_CASE("faults: an operation that fails ends whole, whatever memory is left to tell of it") {
  int allocation = 0;
  while (breaks_without_memory(allocation)) allocation += support::under_sanitizer ? 4 : 1;
  CHECK(allocation > 10);
}
