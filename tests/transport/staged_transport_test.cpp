#include "baton/staged.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <vector>

#include "baton/forwarding.hpp"
#include "baton/thread.hpp"
#include "contract.hpp"
#include "shm_worlds.hpp"
#include "support/ranks.hpp"
#include "support/stand_in.hpp"

using namespace baton;
using contract::Bytes;
using contract::finish;
using contract::pattern;
using support::StandInDevice;

namespace {

/// Runs `body` on ranks as threads, each with a device of its own.
void on_devices(int size, std::size_t segment, std::uint64_t seed,
                const std::function<void(Transport&, StandInDevice&)>& body) {
  support::Watchdog watchdog(size, std::chrono::seconds(240));
  run_threads(size,
              [&](std::unique_ptr<Transport> host) {
                const int rank = host->rank();
                const auto device =
                    std::make_shared<StandInDevice>(support::StandInOptions{.seed = seed});
                body(*staged_transport(std::move(host), device, segment), *device);
                watchdog.returned(rank);
              },
              {.seed = seed});
}

}  // namespace

TEST_CASE("staged transport: keeps the contract, on the host's memory") {
  for (const int size : {1, 2, 3, 5})
    for (const std::size_t segment : {100u, 4096u, 1u << 20}) {
      CAPTURE(size);
      CAPTURE(segment);
      on_devices(size, segment, 0,
                 [](Transport& t, StandInDevice&) { contract::everything(t, true); });
    }
}

TEST_CASE("staged transport: messages between memories, of any length, and in order") {
  constexpr std::size_t segment = 1000;
  const std::size_t lengths[] = {0, 1, 999, 1000, 1001, 2000, 5432, 1000, 7};
  for (const std::uint64_t seed : {0, 5})
    for (const int size : {1, 2, 4}) {
      on_devices(size, segment, seed, [&](Transport& t, StandInDevice& device) {
        const int next = (t.rank() + 1) % t.size(), prev = (t.rank() + t.size() - 1) % t.size();
        for (const bool from_device : {false, true})
          for (const bool to_device : {false, true})
            // Room for what is sent, for more, and for less.
            for (const int more : {0, 1700, -600}) {
              std::deque<Message> sends, receives;
              std::deque<Bytes> sent, got;
              std::deque<std::byte*> out, in;
              std::deque<std::size_t> rooms;
              for (const std::size_t length : lengths) {
                sent.push_back(pattern(length, length + static_cast<std::size_t>(t.rank())));
                out.push_back(sent.back().data());
                if (from_device) {
                  out.back() = device.allocate(length);
                  std::ranges::copy(sent.back(), device.host_view(out.back()));
                }
                const auto room = static_cast<std::int64_t>(length) + more;
                rooms.push_back(room < 0 ? 0 : static_cast<std::size_t>(room));
                got.emplace_back(rooms.back());
                in.push_back(to_device ? device.allocate(rooms.back()) : got.back().data());
              }
              for (std::size_t i = 0; i < std::size(lengths); ++i) {
                t.isend(next, 7, out[i], lengths[i], sends.emplace_back());
                t.irecv(prev, 7, in[i], rooms[i], receives.emplace_back());
              }
              for (std::size_t i = std::size(lengths); i-- > 0;) {
                finish(t, sends[i], "send");
                // More than the room may be told as any length beyond it, in the last segment.
                CHECK(finish(t, receives[i], "receive") == lengths[i]);
              }
              for (std::size_t i = 0; i < std::size(lengths); ++i) {
                const std::size_t count = std::min(rooms[i], lengths[i]);
                const Bytes expected =
                    pattern(lengths[i], lengths[i] + static_cast<std::size_t>(prev));
                if (count > 0)
                  CHECK(contract::same_bytes(std::span(expected).first(count),
                                             std::span(device.host_view(in[i]), count)));
                if (from_device) device.free(out[i]);
                if (to_device) device.free(in[i]);
              }
            }
      });
    }
}

TEST_CASE("staged transport: a message that is given up leaves its memory alone") {
  on_devices(2, 1000, 0, [](Transport& t, StandInDevice& device) {
    if (t.rank() == 1) {
      std::byte* const into = device.allocate(5000);
      std::memset(device.host_view(into), 0x11, 5000);
      Message message;
      t.irecv(0, 3, into, 5000, message);
      t.cancel(message);
      contract::meet(t);
      CHECK(contract::recv(t, 0, 3, 10) == pattern(10, 1));
      for (int i = 0; i < 5000; ++i) CHECK(device.host_view(into)[i] == std::byte{0x11});
    } else {
      contract::meet(t);
      contract::send(t, 1, 3, pattern(10, 1));
    }
  });
}

namespace {

/// A transport that goes on with a message after cancel(), until all its groups are destroyed: as
/// UCX does where the message is under way.
class GoesOn final : public ForwardingTransport {
 public:
  /// What all groups share.
  struct World {
    explicit World(std::function<void()> end) : at_end(std::move(end)) {}
    World(const World&) = delete;
    World& operator=(const World&) = delete;
    ~World() { at_end(); }
    std::function<void()> at_end;
    std::deque<Message> messages;
  };
  GoesOn(std::unique_ptr<Transport> inner, std::shared_ptr<World> world)
      : ForwardingTransport(std::move(inner)), world_(std::move(world)) {}
  ~GoesOn() override { close(); }

  Capabilities capabilities() const override {
    Capabilities can = inner().capabilities();
    can.cancels = false;
    return can;
  }
  void isend(int peer, int tag, const void* data, std::size_t bytes, Message& message) override {
    inner().isend(peer, tag, data, bytes, start(message));
  }
  void irecv(int peer, int tag, void* data, std::size_t bytes, Message& message) override {
    inner().irecv(peer, tag, data, bytes, start(message));
  }
  bool test(Message& message, std::size_t& bytes) override {
    return inner().test(**std::launder(reinterpret_cast<Message**>(message.state)), bytes);
  }
  void cancel(Message&) override {}

 private:
  Message& start(Message& message) {
    return **new (message.state) Message*(&world_->messages.emplace_back());
  }
  std::unique_ptr<Transport> wrapped(std::unique_ptr<Transport> part) override {
    return std::make_unique<GoesOn>(std::move(part), world_);
  }
  std::shared_ptr<World> world_;
};

/// A transport on which one call of messages with tag 7 fails.
class Fails final : public ForwardingTransport {
 public:
  enum class In : std::uint8_t { none, isend, irecv, test, cancel };
  Fails(std::unique_ptr<Transport> inner, const In* in)
      : ForwardingTransport(std::move(inner)), in_(in) {}

  void isend(int peer, int tag, const void* data, std::size_t bytes, Message& message) override {
    if (tag == 7) fail_in(In::isend);
    inner().isend(peer, tag, data, bytes, message);
    started(message, tag);
  }
  void irecv(int peer, int tag, void* data, std::size_t bytes, Message& message) override {
    if (tag == 7) fail_in(In::irecv);
    inner().irecv(peer, tag, data, bytes, message);
    started(message, tag);
  }
  bool test(Message& message, std::size_t& bytes) override {
    if (*in_ == In::test && std::erase(concerned_, &message) > 0) {
      inner().cancel(message);  // a message that fails is released
      fail_in(In::test);
    }
    return inner().test(message, bytes);
  }
  void cancel(Message& message) override {
    inner().cancel(message);
    if (std::erase(concerned_, &message) > 0) fail_in(In::cancel);
  }

 private:
  void fail_in(In in) const {
    if (*in_ == in) throw Error(ErrorCode::transport, "made to fail");
  }
  void started(const Message& message, int tag) {
    std::erase(concerned_, &message);
    if (tag == 7) concerned_.push_back(&message);
  }
  std::unique_ptr<Transport> wrapped(std::unique_ptr<Transport> part) override { return part; }
  const In* in_;
  std::vector<const Message*> concerned_;  // with tag 7, under way
};

/// The only rank's transport.
std::unique_ptr<Transport> alone() { return std::move(thread_transports(1).front()); }

/// Messages of several segments from this rank to itself.
void works(Transport& t, int tag) {
  for (const std::size_t bytes : {1u, 2500u, 4000u}) {
    const Bytes out = pattern(bytes, bytes);
    Bytes in(bytes);
    Message sending, receiving;
    t.isend(0, tag, out.data(), bytes, sending);
    t.irecv(0, tag, in.data(), bytes, receiving);
    CHECK(finish(t, receiving, "receive") == bytes);
    finish(t, sending, "send");
    CHECK(in == out);
  }
}

}  // namespace

TEST_CASE("staged transport: a segment with which the host's transport goes on is left to it") {
  constexpr std::size_t bytes = 60'000;
  const auto device = std::make_shared<StandInDevice>();
  std::size_t at_end = 0;
  auto world = std::make_shared<GoesOn::World>([&, device] { at_end = device->host_blocks(); });
  const std::weak_ptr<GoesOn::World> seen = world;
  auto whole =
      staged_transport(std::make_unique<GoesOn>(alone(), std::move(world)), device, 1 << 16);
  std::byte* const data = device->allocate(bytes);
  const auto give_up_a_send = [&](Transport& t) {
    const std::size_t before = seen.lock()->messages.size();
    std::ranges::copy(pattern(bytes, 1), device->host_view(data));
    Message given_up;
    t.isend(0, 3, data, bytes, given_up);
    while (seen.lock()->messages.size() == before) t.idle(std::chrono::milliseconds(1));
    t.cancel(given_up);
  };

  give_up_a_send(*whole);
  Message sending, receiving;
  Bytes got(bytes);
  for (const int tag : {4, 3}) {  // with tag 3, the one that was given up
    std::ranges::copy(pattern(bytes, 2), device->host_view(data));
    if (tag == 4) whole->isend(0, tag, data, bytes, sending);
    whole->irecv(0, tag, got.data(), bytes, receiving);
    finish(*whole, receiving, "receive");
    CHECK(contract::same_bytes(got, pattern(bytes, tag == 4 ? 2 : 1)));
    if (tag == 4) finish(*whole, sending, "send");
  }

  // The world of a part that is destroyed goes on.
  auto part = whole->split(0, 0);
  give_up_a_send(*part);
  const std::size_t blocks = device->host_blocks();
  part.reset();
  CHECK(device->host_blocks() == blocks);
  whole.reset();
  CHECK(at_end >= 2);
  CHECK(device->host_blocks() == 0);
  device->free(data);
}

TEST_CASE("staged transport: a message that fails is forgotten, and only its caller hears of it") {
  using In = Fails::In;
  for (const In in : {In::isend, In::irecv, In::test, In::cancel})
    for (const bool on_device : {false, true}) {
      CAPTURE(static_cast<int>(in));
      CAPTURE(on_device);
      const auto device = std::make_shared<StandInDevice>();
      Fails::In now = In::none;
      const auto t = staged_transport(std::make_unique<Fails>(alone(), &now), device, 1000);
      Bytes on_host(2500);
      std::byte* const data = on_device ? device->allocate(2500) : on_host.data();
      for (int round = 0; round < 3; ++round) {
        Message failing;
        const auto test = [&] {
          std::size_t bytes = 0;
          while (!t->test(failing, bytes)) t->idle(std::chrono::milliseconds(1));
        };
        const auto fails = [](const auto& call) {
          CHECK(support::holds(support::error_of(call).what(), {"made to fail"}));
        };
        if (in == In::isend) {
          now = in;
          fails([&] {
            t->isend(0, 7, data, 2500, failing);
            test();
          });
        } else if (in == In::irecv) {
          now = in;
          fails([&] { t->irecv(0, 7, data, 2500, failing); });
        } else {
          t->irecv(0, 7, data, 2500, failing);
          now = in;
          if (round > 0) {
            t->progress();
            t->idle(std::chrono::milliseconds(1));
            works(*t, 8);
          }
          if (in == In::test) fails(test);
        }
        if (in == In::cancel || round == 2) t->cancel(failing);
        now = In::none;
        t->idle(std::chrono::milliseconds(1));
        works(*t, 7);
      }
      if (on_device) device->free(data);
    }
}

TEST_CASE("staged transport: a probe finds messages, not segments of one that a receive takes") {
  constexpr std::size_t bytes = 9'500, segment = 1000;
  support::Watchdog watchdog(2, std::chrono::seconds(240));
  shm_worlds::on_worlds(2, [&](std::unique_ptr<Transport> host) {
    const int rank = host->rank();
    const auto device = std::make_shared<StandInDevice>();
    const auto t = staged_transport(std::move(host), device, segment);
    for (const bool on_device : {false, true}) {
      std::array<Message, 3> messages;
      std::size_t count = 0;
      Bytes on_host(bytes);
      std::byte* const data = on_device ? device->allocate(bytes) : on_host.data();
      std::byte* const view = on_device ? device->host_view(data) : data;
      if (rank == 1) {
        std::ranges::copy(pattern(bytes, 1), view);
        t->isend(0, 5, data, bytes, messages[0]);
        finish(*t, messages[0], "first send");
        contract::meet(*t);
        for (const std::size_t i : {1, 2}) t->isend(0, 5, data, bytes, messages.at(i));
        for (const std::size_t i : {1, 2}) finish(*t, messages.at(i), "send");
      } else {
        t->irecv(1, 5, data, bytes, messages[0]);
        do CHECK(t->probe(5) == -1);
        while (!t->test(messages[0], count));
        CHECK(count == bytes);
        contract::meet(*t);
        for (const std::size_t i : {1, 2}) {
          while (t->probe(5) < 0) continue;  // which advances the message before
          t->irecv(1, 5, data, bytes, messages.at(i));
        }
        for (const std::size_t i : {1, 2}) CHECK(finish(*t, messages.at(i), "receive") == bytes);
        CHECK(contract::same_bytes(std::span(view, bytes), pattern(bytes, 1)));
        CHECK(t->probe(5) == -1);
      }
      contract::meet(*t);
      if (on_device) device->free(data);
    }
    watchdog.returned(rank);
  });
}

TEST_CASE("device transport: staged unless every rank's messages may lie in a device's memory") {
  /// The host's transport, which says so on some ranks only.
  struct Says final : ForwardingTransport {
    Says(std::unique_ptr<Transport> host, bool says)
        : ForwardingTransport(std::move(host)), says(says) {}
    Capabilities capabilities() const override {
      Capabilities can = inner().capabilities();
      can.device_memory = says;
      return can;
    }
    std::unique_ptr<Transport> wrapped(std::unique_ptr<Transport> part) override { return part; }
    bool says;
  };
  for (const int size : {1, 2, 3, 5, 8})
    for (int without = -1; without < size; ++without) {
      CAPTURE(size);
      CAPTURE(without);
      run_threads(size, [&](std::unique_ptr<Transport> host) {
        const bool says = host->rank() != without;
        auto transport = std::make_unique<Says>(std::move(host), says);
        const Transport* const given = transport.get();
        const auto found =
            device_transport(std::move(transport), std::make_shared<StandInDevice>());
        CHECK((found.get() == given) == (without < 0));
        CHECK(found->capabilities().device_memory);
      });
    }
  CHECK(support::holds(support::error_of([] { device_transport(nullptr, nullptr); }).what(),
                       {"transport and a device", "null"}));
}

TEST_CASE("staged transport: what is wrong with its arguments is said") {
  auto ranks = thread_transports(1);
  const auto device = std::make_shared<StandInDevice>();
  CHECK(support::holds(
      support::error_of([&] { staged_transport(std::move(ranks[0]), device, 0); }).what(),
      {"at least 1 byte", "found 0"}));
  CHECK(support::holds(support::error_of([&] { staged_transport(nullptr, device); }).what(),
                       {"transport and a device", "null"}));
}
