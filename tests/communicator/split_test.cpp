#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "baton/forwarding.hpp"
#include "support/conformance.hpp"
#include "support/ranks.hpp"

using namespace baton;
using namespace support;

namespace {

int members(Communicator& c) {
  std::vector<std::int32_t> one{1};
  c.all_reduce(one, sum);
  return one[0];
}

/// A transport whose split(), or subgroup(), fails on rank 0; the others return from it later.
class Splitting final : public ForwardingTransport {
 public:
  using ForwardingTransport::ForwardingTransport;
  std::unique_ptr<Transport> split(int color, int key) override {
    return late_or_never(inner().split(color, key));
  }
  std::unique_ptr<Transport> subgroup(const std::vector<int>& ranks, int number) override {
    return late_or_never(inner().subgroup(ranks, number));
  }

 private:
  std::unique_ptr<Transport> wrapped(std::unique_ptr<Transport> part) override { return part; }
  std::unique_ptr<Transport> late_or_never(std::unique_ptr<Transport> part) const {
    if (rank() == 0) throw Error(ErrorCode::transport, "rank 0 has no more memory for splits");
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    return part;
  }
};

/// A transport in whose parts messages come to ranks other than 0 at least 100 ms late.
class Late final : public ForwardingTransport {
 public:
  using ForwardingTransport::ForwardingTransport;
  void irecv(int peer, int tag, void* data, std::size_t bytes, Message& message) override {
    ForwardingTransport::irecv(peer, tag, data, bytes, message);
    if (part_ && rank() != 0) posted_[&message] = std::chrono::steady_clock::now();
  }
  bool test(Message& message, std::size_t& bytes) override {
    const auto posted = posted_.find(&message);
    if (posted == posted_.end()) return ForwardingTransport::test(message, bytes);
    const auto waited = std::chrono::steady_clock::now() - posted->second;
    if (waited < std::chrono::milliseconds(100)) return false;
    if (!ForwardingTransport::test(message, bytes)) return false;
    posted_.erase(posted);
    return true;
  }
  void cancel(Message& message) override {
    posted_.erase(&message);
    ForwardingTransport::cancel(message);
  }

 private:
  std::unique_ptr<Transport> wrapped(std::unique_ptr<Transport> part) override {
    auto late = std::make_unique<Late>(std::move(part));
    late->part_ = true;
    return late;
  }
  bool part_ = false;
  std::map<Message*, std::chrono::steady_clock::time_point> posted_;
};

/// A transport in whose split() rank 2 stays, and rank 1 waits for it; the others do not need it,
/// or wait, too.
class Staying final : public ForwardingTransport {
 public:
  Staying(std::unique_ptr<Transport> inner, bool all_wait, std::atomic<int>& told)
      : ForwardingTransport(std::move(inner)), all_wait_(all_wait), told_(told) {}
  std::unique_ptr<Transport> split(int color, int key) override {
    auto part = inner().split(color, key);
    while (rank() == 2 && told_ < size() - 1) std::this_thread::yield();
    std::byte byte{};
    if (rank() == 1 || (all_wait_ && rank() != 2)) baton::recv(inner(), {2, 0, &byte, 1});
    return part;
  }

 private:
  std::unique_ptr<Transport> wrapped(std::unique_ptr<Transport> part) override { return part; }
  const bool all_wait_;
  std::atomic<int>& told_;
};

}  // namespace

TEST_CASE("split: by color, ordered by key, then by rank") {
  on_ranks(7, [](Communicator& c) {
    Communicator part = c.split(c.rank() % 3, -c.rank());
    const int size = c.rank() % 3 == 0 ? 3 : 2;
    CHECK(part.size() == size);
    CHECK(members(part) == size);
    CHECK(part.rank() == size - 1 - c.rank() / 3);
    std::vector<int> ranks(static_cast<std::size_t>(size));
    part.all_gather(std::vector<int>{c.rank()}, ranks);
    CHECK(std::is_sorted(ranks.rbegin(), ranks.rend()));

    Communicator same = c.split(5, 1);
    CHECK(same.rank() == c.rank());
    CHECK(same.size() == 7);
  });
}

TEST_CASE("split: a negative color gives no communicator") {
  on_ranks(4, [](Communicator& c) {
    Communicator part = c.split(c.rank() == 2 ? -1 : 0);
    CHECK(part.valid() == (c.rank() != 2));
    if (part.valid()) CHECK(members(part) == 3);
    CHECK(members(c) == 4);
  });
}

TEST_CASE("split: parts of parts, used side by side") {
  on_ranks(8, [](Communicator& c) {
    Communicator half = c.split(c.rank() / 4), quarter = half.split(half.rank() / 2);
    Communicator alone = quarter.split(quarter.rank());
    CHECK(alone.size() == 1);
    for (int turn = 0; turn < 3; ++turn) {
      CHECK(members(quarter) == 2);
      CHECK(members(c) == 8);
      CHECK(members(alone) == 1);
      CHECK(members(half) == 4);
    }
    conformance::reductions(half, brief(4));
    conformance::rooted(quarter, brief(2));
  });
}

TEST_CASE("split: options go along") {
  Options options = test_options();
  options.check = true;
  options.choices[static_cast<std::size_t>(Collective::all_reduce)] = {"ring", 0};
  on_ranks(
      4,
      [](Communicator& c) {
        Communicator part = c.split(c.rank() / 2);
        CHECK(part.options().check);
        std::vector<float> x(4);
        CHECK(part.chosen(calls::all_reduce(x, x, sum)).algorithm == "ring");
      },
      options);
}

TEST_CASE("split: the parent may go first") {
  on_ranks(4, [](Communicator& c) {
    Communicator part = c.split(c.rank() / 2);
    { const Communicator gone = std::move(c); }
    CHECK(members(part) == 2);
  });
}

TEST_CASE("split: options of its own, those of the part's rank 0") {
  on_ranks(4, [](Communicator& c) {
    Options options = test_options();
    options.check = 2;
    options.timeout = std::chrono::seconds(c.rank() + 1);
    if (c.rank() < 2)
      options.choices[static_cast<std::size_t>(Collective::all_reduce)] = {"ring", 0};
    // Part 0 has ranks 2 and 0, part 1 ranks 3 and 1: rank 0 of each chose nothing.
    Communicator part = c.split(c.rank() % 2, -c.rank(), options);
    CHECK(part.options().check == 2);
    CHECK(part.options().timeout == std::chrono::seconds(c.rank() + 1));
    CHECK(part.options().choices[static_cast<std::size_t>(Collective::all_reduce)].algorithm == "");
    CHECK(c.options().check == test_options().check);
    CHECK(members(part) == 2);
    CHECK(members(c) == 4);
    CHECK(c.split(-1, 0, options).valid() == false);
  });
}

TEST_CASE("split: a wrong option is refused on all ranks of the part") {
  on_ranks(4, [](Communicator& c) {
    Options options = test_options();
    if (c.rank() == 0) options.table = "/there/is/no/such/table";
    bool refused = false;
    std::string sentence;
    try {
      Communicator part = c.split(c.rank() % 2, 0, options);
      CHECK(members(part) == 2);
    } catch (const Error& error) {
      refused = error.code == ErrorCode::invalid_argument;
      sentence = error.what();
    }
    CAPTURE(sentence);
    CHECK(refused == (c.rank() % 2 == 0));
    CHECK(members(c) == 4);
  });
}

TEST_CASE("split: ranks that hear of a wrong option before its message comes refuse it, too") {
  Watchdog watchdog(3, std::chrono::seconds(60));
  std::atomic<int> told = 0;
  run_threads(3, [&](std::unique_ptr<Transport> transport) {
    Communicator c(std::make_unique<Late>(std::move(transport)), test_options());
    Options options = test_options();
    if (c.rank() == 0) options.table = "/there/is/no/such/table";
    const Error error = error_of([&] { c.split(0, 0, options); });
    const std::string sentence = error.what();
    CAPTURE(sentence);
    CHECK(holds(sentence, {"expected a tuning table", "/there/is/no/such/table"}));
    CHECK(error.code == ErrorCode::invalid_argument);
    ++told;
    while (told < c.size()) std::this_thread::yield();  // c stays
    watchdog.returned(c.rank());
  });
}

TEST_CASE("a rank that cannot make a communicator tells those that come later, without a timeout") {
  for (const int size : {2, 3, 5})
    for (const bool shrinks : {false, true}) {
      CAPTURE(size);
      CAPTURE(shrinks);
      Watchdog watchdog(size, std::chrono::seconds(60));
      std::atomic<int> told = 0;
      run_threads(size, [&](std::unique_ptr<Transport> transport) {
        Communicator c(std::make_unique<Splitting>(std::move(transport)), {});
        const Error error =
            error_of([&] { shrinks ? c.shrink(std::chrono::seconds(20)) : c.split(0, -c.rank()); });
        CHECK(holds(error.what(), {"rank 0 has no more memory for splits"}));
        CHECK(error.code == ErrorCode::transport);
        ++told;
        while (told < size) std::this_thread::yield();  // c stays
        watchdog.returned(c.rank());
      });
    }
}

TEST_CASE("split: ranks that are through it, or wait in it, name the one that stays") {
  for (const bool all_wait : {false, true}) {
    CAPTURE(all_wait);
    Watchdog watchdog(4, std::chrono::seconds(60));
    std::atomic<int> told = 0;
    std::mutex mutex;
    std::set<std::string> sentences;
    run_threads(4, [&](std::unique_ptr<Transport> transport) {
      Communicator c(std::make_unique<Staying>(std::move(transport), all_wait, told),
                     giving_up_after(std::chrono::milliseconds(500)));
      const Error error = error_of([&] { c.split(0); });
      if (c.rank() != 2) {
        const std::lock_guard lock(mutex);
        CHECK(error.code == ErrorCode::timeout);
        sentences.insert(error.what());
        ++told;
      }
      watchdog.returned(c.rank());
    });
    REQUIRE(sentences.size() == 1);
    CHECK(holds(*sentences.begin(), {"split #", "of communicator 'world' cannot complete",
                                     "rank 2 began it", "rank 1 waits for others"}));
  }
}
