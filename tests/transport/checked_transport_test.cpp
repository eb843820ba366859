#include "baton/checked.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "baton/forwarding.hpp"
#include "baton/thread.hpp"
#include "contract.hpp"
#include "support/ranks.hpp"

using namespace baton;

namespace {

/// Changes one bit of the first message that it sends, or its length.
class Damaging final : public ForwardingTransport {
 public:
  Damaging(std::unique_ptr<Transport> inner, std::size_t byte, int longer = 0)
      : ForwardingTransport(std::move(inner)), byte_(byte), longer_(longer) {}
  void isend(int peer, int tag, const void* data, std::size_t bytes, Message& message) override {
    if (!bytes_.empty()) return ForwardingTransport::isend(peer, tag, data, bytes, message);
    bytes_.assign(static_cast<const char*>(data), bytes);
    if (longer_ == 0) bytes_[byte_] ^= 1;
    bytes_.resize(static_cast<std::size_t>(static_cast<int>(bytes) + longer_));
    ForwardingTransport::isend(peer, tag, bytes_.data(), bytes_.size(), message);
  }

 private:
  std::unique_ptr<Transport> wrapped(std::unique_ptr<Transport> part) override { return part; }
  std::size_t byte_;
  int longer_;
  std::string bytes_;
};

/// What rank 1 finds when it receives the first message of rank 0.
Error found(std::size_t bytes, std::size_t byte, int longer = 0) {
  Error error(ErrorCode::unsupported, "none");
  run_threads(2, [&](std::unique_ptr<Transport> t) {
    const bool sends = t->rank() == 0;
    const auto checked = checked_transport(std::make_unique<Damaging>(std::move(t), byte, longer));
    const auto data = contract::pattern(bytes, 1);
    if (sends) return contract::send(*checked, 1, 3, data);
    error = support::error_of([&] { contract::recv(*checked, 0, 3, bytes); });
  });
  return error;
}

}  // namespace

TEST_CASE("checked transport: keeps the contract") {
  for (int size : {1, 2, 3, 4, 5, 8})
    for (const std::uint64_t seed : {0, 3}) {
      CAPTURE(size);
      run_threads(size,
                  [](auto t) {
                    const auto checked = checked_transport(std::move(t));
                    contract::everything(*checked, true);
                  },
                  {.seed = seed});
    }
}

TEST_CASE(
    "checked transport: finds each changed bit, also of the checksum, and lost or new bytes") {
  for (const std::size_t bytes : {0u, 1u, 7u, 8u, 9u, 100u, 5000u})
    for (std::size_t byte = 0; byte < bytes + 8; byte += 1 + byte / 20) {
      CAPTURE(bytes);
      CAPTURE(byte);
      const Error error = found(bytes, byte);
      CHECK(error.code == ErrorCode::transport);
      CHECK(error.peer == 0);
      CHECK(support::holds(error.what(), {"message from rank 0 with tag 3 arrived damaged",
                                          "expected checksum", "of its " + std::to_string(bytes)}));
    }
  CHECK(support::holds(found(100, 0, -3).what(), {"arrived damaged", "of its 97 bytes"}));
  CHECK(support::holds(found(0, 0, -3).what(), {"expected a checksum of 8 bytes", "message of 5"}));
}

TEST_CASE("checked transport: messages with other tags have other checksums") {
  std::multiset<std::string> sums;
  for (const int tag : {3, 4})
    run_threads(2, [&](std::unique_ptr<Transport> t) {
      const bool sends = t->rank() == 0;
      const auto data = contract::pattern(20, 1);
      if (sends) return contract::send(*checked_transport(std::move(t)), 1, tag, data);
      const auto raw = contract::recv(*t, 0, tag, 28);
      sums.emplace(reinterpret_cast<const char*>(raw.data()) + 20, 8);
    });
  CHECK(*sums.begin() != *sums.rbegin());
}

TEST_CASE("checked transport: a transport is expected") {
  CHECK(support::holds(support::error_of([] { checked_transport(nullptr); }).what(),
                       {"expected a transport, found null"}));
}

namespace {

/// Damages the first message that is longer than those of the communicator's making.
class DamagingLater final : public ForwardingTransport {
 public:
  using ForwardingTransport::ForwardingTransport;
  void isend(int peer, int tag, const void* data, std::size_t bytes, Message& message) override {
    if (bytes < 40'000 || !bytes_.empty())
      return ForwardingTransport::isend(peer, tag, data, bytes, message);
    bytes_.assign(static_cast<const char*>(data), bytes);
    bytes_[39'000] ^= 4;
    ForwardingTransport::isend(peer, tag, bytes_.data(), bytes, message);
  }

 private:
  std::unique_ptr<Transport> wrapped(std::unique_ptr<Transport> part) override {
    return std::make_unique<DamagingLater>(std::move(part));
  }
  std::string bytes_;
};

}  // namespace

TEST_CASE(
    "check 2: all ranks say that a message arrived damaged, of a communicator and its splits") {
  for (const bool split : {false, true}) {
    std::mutex mutex;
    std::set<std::string> sentences;
    run_threads(3, [&](std::unique_ptr<Transport> t) {
      // Rank 0's options hold on all ranks.
      Options options = support::test_options();
      options.check = t->rank() == 0 ? 2 : 0;
      Communicator whole(std::make_unique<DamagingLater>(std::move(t)), options);
      CHECK(whole.options().check == 2);
      Communicator part = whole.split(0);
      Communicator& c = split ? part : whole;
      std::vector<float> x(10'000, 1);
      const Error error = support::error_of([&] {
        c.broadcast(x, 0, {"binomial", 0});
        c.barrier();  // a rank that got a sound message hears of the other here
      });
      CHECK(error.code == ErrorCode::transport);
      const std::lock_guard lock(mutex);
      sentences.insert(error.what());
    });
    REQUIRE(sentences.size() == 1);
    CHECK(support::holds(*sentences.begin(),
                         {"broadcast #", "rank", "from rank 0", "arrived damaged"}));
  }
}
