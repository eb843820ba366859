#include <doctest/doctest.h>

#include <atomic>
#include <latch>
#include <stdexcept>
#include <thread>

#include "baton/forwarding.hpp"
#include "baton/schedule.hpp"
#include "baton/timeline.hpp"
#include "baton/wait.hpp"
#include "execute/progress.hpp"
#include "support/ranks.hpp"
#include "support/temporary_folder.hpp"

using namespace baton;
using namespace baton::execute;
using namespace support;

namespace {

/// A transport that can less: it may serve one thread only, and have few tags.
class Modest final : public ForwardingTransport {
 public:
  Modest(std::unique_ptr<Transport> inner, bool concurrent, int tags, std::atomic<bool>& go)
      : ForwardingTransport(std::move(inner)), concurrent_(concurrent), tags_(tags), go_(go) {}
  int idles() const { return idles_; }
  void go() { go_ = true; }
  void wait_for_go() {
    while (!go_.exchange(false)) std::this_thread::yield();
  }
  Capabilities capabilities() const override {
    return {.name = "modest", .tags = tags_, .concurrent = concurrent_, .cancels = true};
  }
  void isend(int peer, int tag, const void* data, std::size_t bytes, Message& message) override {
    CHECK(tag < tags_);
    inner().isend(peer, tag, data, bytes, message);
  }
  void irecv(int peer, int tag, void* data, std::size_t bytes, Message& message) override {
    CHECK(tag < tags_);
    inner().irecv(peer, tag, data, bytes, message);
  }
  void idle(std::chrono::microseconds at_most) override {
    ++idles_;
    inner().idle(at_most);
  }

 private:
  std::unique_ptr<Transport> wrapped(std::unique_ptr<Transport> part) override {
    return std::make_unique<Modest>(std::move(part), concurrent_, tags_, go_);
  }

  bool concurrent_;
  int tags_;
  std::atomic<int> idles_{0};
  std::atomic<bool>& go_;  // of all ranks
};

void on_modest_ranks(int size, bool concurrent, int tags,
                     const std::function<void(Communicator&)>& body) {
  Watchdog watchdog(size, std::chrono::seconds(120));
  std::atomic<bool> go{false};
  run_threads(size, [&](std::unique_ptr<Transport> transport) {
    Communicator c(std::make_unique<Modest>(std::move(transport), concurrent, tags, go),
                   test_options());
    body(c);
    watchdog.returned(c.rank());
  });
}

/// Rank 0 waits in a call of `waiting`, which rank 1 delays; `tries` runs on another thread
/// meanwhile.
void while_waiting(Communicator& waiting, const std::function<void()>& tries) {
  std::vector<float> x{1};
  Modest& transport = dynamic_cast<Modest&>(waiting.transport());
  if (waiting.rank() == 1) {
    transport.wait_for_go();
    waiting.all_reduce(x, sum);
  } else {
    const int before = transport.idles();
    std::thread first([&] { waiting.all_reduce(x, sum); });
    while (transport.idles() == before) std::this_thread::yield();
    tries();
    transport.go();
    first.join();
  }
  CHECK(x[0] == 2);
}

bool refused(const std::function<void()>& call) {
  const Error error = error_of(call);
  return error.code == ErrorCode::invalid_argument &&
         holds(error.what(), {"one thread at a time", "found two"});
}

}  // namespace

TEST_CASE("a second thread is refused while one uses the communicator") {
  on_modest_ranks(2, true, 32767, [](Communicator& c) {
    Communicator other = c.split(0);
    std::vector<float> y{1};
    while_waiting(c, [&] {
      CHECK(refused([&] { c.progress(); }));
      CHECK(refused([&] { c.all_reduce(y, sum); }));
      CHECK(refused([&] { c.start_barrier(); }));
      CHECK(refused([&] { c.send(y, 1); }));
      CHECK(refused([&] { c.split(0); }));
      CHECK(refused([&] { c.chosen(calls::all_reduce(y, y, sum)); }));
      CHECK(refused([&] { c.schedule(calls::all_reduce(y, y, sum)); }));
      other.progress();  // another communicator is free
    });
    c.all_reduce(y, sum);
    CHECK(y[0] == 2);
  });
}

TEST_CASE("a transport for one thread: a second is refused on every communicator of the family") {
  on_modest_ranks(2, false, 32767, [](Communicator& c) {
    Communicator other = c.split(0);
    while_waiting(c, [&] { CHECK(refused([&] { other.progress(); })); });
    while_waiting(other, [&] { CHECK(refused([&] { c.progress(); })); });
  });
}

TEST_CASE("an operation may not use the communicator that runs it") {
  on_ranks(2, [](Communicator& c) {
    const Op nested = Op::user(
        [](void* into, const void*, const void*, std::size_t count, void* communicator) {
          CHECK(error_of([&] { static_cast<Communicator*>(communicator)->barrier(); }).code ==
                ErrorCode::invalid_argument);
          for (std::size_t i = 0; i < count; ++i) static_cast<float*>(into)[i] = 5;
        },
        &c, true);
    std::vector<float> x{1, 2};
    c.all_reduce(x, nested);
    CHECK(x == std::vector<float>{5, 5});
  });
}

TEST_CASE("different communicators may be used by different threads at once") {
  for (const int size : {2, 3}) {
    on_ranks(size, [](Communicator& c) {
      Communicator other = c.split(0);
      const auto use = [](Communicator& mine, int turns) {
        try {
          for (int turn = 0; turn < turns; ++turn) {
            std::vector<std::int32_t> one{1}, many(3000, turn);
            Request request = mine.start_all_reduce(many, max);
            mine.all_reduce(one, sum);
            CHECK(one[0] == mine.size());
            request.wait();
            CHECK(many.back() == turn);
          }
        } catch (const Error& error) {
          FAIL_CHECK("rank " << mine.rank() << ": " << std::string(error.what()));
        }
      };
      std::thread second([&] { use(other, 300); });
      use(c, 300);
      second.join();
    });
  }
}

namespace {

/// A transport that counts calls made while another one is under way, and can hold a test().
class Watched final : public ForwardingTransport {
 public:
  using ForwardingTransport::ForwardingTransport;
  bool test(Message& message, std::size_t& bytes) override {
    const Use use(*this);
    if (hold_.exchange(false)) {
      holding_ = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      holding_ = false;
    } else if (slow) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return inner().test(message, bytes);
  }
  void cancel(Message& message) override {
    const Use use(*this);
    if (slow) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    inner().cancel(message);
  }
  /// Returns while another thread is held in test().
  void hold() {
    hold_ = true;
    while (!holding_) std::this_thread::yield();
  }
  bool holding() const { return holding_; }
  int overlaps() const { return overlaps_; }
  std::atomic<bool> slow = false;

 private:
  struct Use {
    explicit Use(Watched& watched) : transport(watched) {
      if (transport.inside_.fetch_add(1) > 0) ++transport.overlaps_;
    }
    ~Use() { --transport.inside_; }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    Watched& transport;
  };
  std::unique_ptr<Transport> wrapped(std::unique_ptr<Transport> part) override {
    return std::make_unique<Watched>(std::move(part));
  }
  std::atomic<bool> hold_ = false, holding_ = false;
  std::atomic<int> inside_ = 0, overlaps_ = 0;
};

/// Rank 0 runs `tries` on a communicator that has a receive under way, while another thread waits
/// in a call of a sibling, and so advances what is under way.
void while_a_sibling_advances(
    const std::function<void(Communicator&, Watched&, Request& kept)>& tries) {
  Watchdog watchdog(2, std::chrono::seconds(120));
  std::latch tried(2);
  run_threads(2, [&](std::unique_ptr<Transport> transport) {
    Communicator whole(std::make_unique<Watched>(std::move(transport)), test_options());
    Communicator one = whole.split(0), sibling = whole.split(0);
    std::vector<std::int32_t> x{1};
    if (one.rank() == 1) {
      tried.arrive_and_wait();
      sibling.all_reduce(x, sum);
    } else {
      std::vector<float> room(4);
      Request kept = one.start_recv(std::span(room), 1, 1);
      std::thread second([&] { sibling.all_reduce(x, sum); });
      tries(one, dynamic_cast<Watched&>(one.transport()), kept);
      tried.arrive_and_wait();
      second.join();
      kept.abandon("the test is over");
    }
    CHECK(x[0] == 2);
    watchdog.returned(one.rank());
  });
}

}  // namespace

TEST_CASE("a request that another thread advances is asked when that has ended") {
  while_a_sibling_advances([](Communicator&, Watched& transport, Request& kept) {
    transport.hold();
    CHECK(holds(kept.waits_for(), {"waits for rank 1"}));
    CHECK_FALSE(transport.holding());
    transport.hold();
    CHECK_FALSE(kept.cause(std::chrono::milliseconds(1)).empty());
    CHECK_FALSE(transport.holding());
    transport.hold();
    CHECK_FALSE(kept.done());
  });
}

TEST_CASE("a request that is dropped while another thread advances its communicator") {
  while_a_sibling_advances([](Communicator& c, Watched& transport, Request&) {
    std::vector<float> room(4);
    CHECK_THROWS_AS(([&] {
                      const Request dropped = c.start_recv(std::span(room), 1, 2);
                      transport.slow = true;
                      throw std::runtime_error("elsewhere");
                    }()),
                    std::runtime_error);
    transport.slow = false;
    CHECK(transport.overlaps() == 0);
  });
}

TEST_CASE(
    "a request is asked and waited for while a sibling's call in another thread advances it") {
  on_ranks(2, [](Communicator& c) {
    Communicator sibling = c.split(0);
    std::atomic<bool> over = false;
    std::thread second([&] {
      std::vector<std::int32_t> last(1);
      do {
        last[0] = sibling.rank() == 1 && over ? 1 : 0;
        if (sibling.rank() == 1) std::this_thread::sleep_for(std::chrono::microseconds(300));
        sibling.all_reduce(last, max);
      } while (last[0] == 0);
    });
    for (int turn = 0; turn < 100; ++turn) {
      std::vector<std::int32_t> x(400, 1);
      Request request = c.start_all_reduce(x, sum, {"ring", 64});
      while (c.rank() == 0 && turn % 2 == 0 && !request.done()) {
        static_cast<void>(request.waits_for());
        std::this_thread::sleep_for(std::chrono::microseconds(50));  // the other thread advances it
      }
      wait(request, [] {});
      CHECK(x == std::vector<std::int32_t>(400, 2));
    }
    over = true;
    second.join();
  });
}

TEST_CASE("few tags: operations that follow each other share them") {
  for (const int operations : {1, 2, 5}) {
    on_modest_ranks(4, true, 1024 + 32 * operations, [&](Communicator& c) {
      for (int turn = 0; turn < 20; ++turn) {
        std::vector<std::int32_t> x(40, turn);
        c.all_reduce(x, sum, {turn % 2 == 0 ? "double_tree" : "ring", 16});
        CHECK(x == std::vector<std::int32_t>(40, 4 * turn));
      }
    });
  }
}

TEST_CASE("few tags: what is under way is not met by what comes later") {
  on_modest_ranks(3, true, 1024 + 32 * 2, [](Communicator& c) {
    for (int turn = 0; turn < 30; ++turn) {
      std::vector<std::int32_t> slow(90, 1), quick(3, 10);
      Request request = c.start_all_reduce(slow, sum, {"ring", 4});
      for (int i = 0; i < 3; ++i) {
        std::fill(quick.begin(), quick.end(), 10);
        c.all_reduce(quick, sum, {"ring", 4});
        CHECK(quick == std::vector<std::int32_t>(3, 30));
      }
      request.wait();
      CHECK(slow == std::vector<std::int32_t>(90, 3));
    }
  });
}

TEST_CASE("few tags: what is under way is not met by the library's own operations") {
  const TemporaryFolder folder;
  const std::function<void(Communicator&)> calls[] = {
      [](Communicator& c) { c.split(0).barrier(); },
      [](Communicator& c) { c.start_recording(); },
      [](Communicator& c) { c.split(0).barrier(); },  // which joins the recording
      [](Communicator& c) { c.stop_recording(); },
      [](Communicator& c) { c.start_recording(); },
      [&](Communicator& c) { c.stop_recording(folder / "a.trace"); }};
  for (const int operations : {2, 4})
    for (int before = 0; before < operations; ++before)
      on_modest_ranks(2, true, 1024 + 32 * operations, [&](Communicator& c) {
        for (const auto& call : calls) {
          std::vector<std::int32_t> slow(4000, 1);
          Request request = c.start_all_reduce(slow, sum, {"ring", 16});
          for (int i = 0; i < before; ++i) c.start_barrier().wait();
          CHECK_NOTHROW(call(c));
          CHECK_NOTHROW(request.wait());
          CHECK(slow == std::vector<std::int32_t>(4000, 2));
        }
      });
}

// Whoever advanced a communicator itself, some time ago, is not taken for who advances it now.
TEST_CASE("use of a communicator: a call waits for the end of another thread's advance") {
  UseFlag flag;
  std::atomic<bool> over{false};
  std::thread other([&] {
    while (!over)
      if (flag.try_advance()) flag.leave();
  });
  int refused = 0;
  for (int i = 0; i < 3000000; ++i) {
    if (flag.try_advance()) flag.leave();
    if (flag.enter())
      flag.leave();
    else
      ++refused;
  }
  over = true;
  other.join();
  CHECK(refused == 0);
}
