/// After a failure the survivors' communicator goes on.

#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <barrier>
#include <latch>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "baton/forwarding.hpp"
#include "baton/staged.hpp"
#include "communicator/survivors.hpp"
#include "support/ranks.hpp"
#include "support/stand_in.hpp"
#include "transport/shm_worlds.hpp"

using namespace baton;
using namespace support;
using namespace std::chrono_literals;

namespace {

Options patient() { return giving_up_after(500ms); }

/// The sum of these ranks' numbers in the first communicator, by several algorithms.
void adds_up(Communicator& c, int first_rank, const std::vector<int>& members) {
  CHECK(c.size() == static_cast<int>(members.size()));
  CHECK(members.at(static_cast<std::size_t>(c.rank())) == first_rank);
  int expected = 0;
  for (const int member : members) expected += member;
  for (const char* algorithm : {"", "ring", "tree", "circulant"}) {
    std::vector<std::int32_t> x(1000, first_rank);
    c.all_reduce(x, sum, {algorithm});
    CHECK(x == std::vector<std::int32_t>(1000, expected));
  }
}

std::vector<int> without(int size, const std::set<int>& absent) {
  std::vector<int> ranks;
  for (int r = 0; r < size; ++r)
    if (!absent.contains(r)) ranks.push_back(r);
  return ranks;
}

}  // namespace

TEST_CASE("shrink: ranks that wait for one that has come here get an error, without a timeout") {
  for (const int size : {2, 3, 5, 8}) {
    CAPTURE(size);
    on_ranks(size, [&](Communicator& c) {
      std::vector<float> x(100);
      if (c.rank() > 0) {
        const Error error = error_of([&] { c.all_reduce(x, sum, {"ring", 0}); });
        CHECK(holds(error.what(), {"rank 0 has not entered it", "in shrink for"}));
      }
      Communicator all = c.shrink(1h);
      adds_up(all, c.rank(), without(size, {}));
    });
  }
}

TEST_CASE("shrink: a rank that has left is left out, at once") {
  for (const int size : {2, 3, 4, 7, 16})
    for (const int culprit : {0, size / 2, size - 1})
      for (const std::uint64_t seed : {0, 7}) {
        CAPTURE(size);
        CAPTURE(culprit);
        on_ranks(size,
                 [&](Communicator& c) {
                   std::vector<float> x(100);
                   if (c.rank() == culprit) return;
                   CHECK_THROWS_AS(c.all_reduce(x, sum, {"ring", 0}), Error);
                   // Without the culprit's end it would take an hour.
                   Communicator survivors = c.shrink(1h);
                   adds_up(survivors, c.rank(), without(size, {culprit}));
                 },
                 patient(), {.seed = seed});
      }
}

TEST_CASE("shrink: over staged shared memory, of which messages to a rank that has left fail") {
  for (const int size : {2, 3, 4}) {
    CAPTURE(size);
    const int culprit = size - 1;
    std::latch left(1);
    shm_worlds::on_worlds(size, [&](std::unique_ptr<Transport> host) {
      const int rank = host->rank();
      auto staged = staged_transport(std::move(host), std::make_shared<StandInDevice>());
      {
        Communicator c(std::move(staged), patient());
        c.barrier();
        if (rank != culprit) {
          left.wait();
          std::vector<float> x(100);
          CHECK_THROWS_AS(c.all_reduce(x, sum, {"ring", 0}), Error);
          Communicator survivors = c.shrink(1h);
          adds_up(survivors, rank, without(size, {culprit}));
        }
      }
      if (rank == culprit) left.count_down();
    });
  }
}

TEST_CASE(
    "shrink: a rank that stays away is left out after the patience, and is told when it comes") {
  for (const int size : {2, 3, 5}) {
    const int culprit = size / 2;
    std::latch others(size - 1);
    on_ranks(
        size,
        [&](Communicator& c) {
          if (c.rank() == culprit) {
            others.wait();
            const Error error = error_of([&] { c.shrink(200ms); });
            CHECK(error.code == ErrorCode::timeout);
            CHECK(error.rank == culprit);
            CHECK(holds(error.what(), {"shrink: rank " + std::to_string(culprit), "came too late",
                                       "have gone on without it"}));
            return;
          }
          Communicator survivors = c.shrink(200ms);
          adds_up(survivors, c.rank(), without(size, {culprit}));
          others.count_down();
          others.wait();
        },
        patient());
  }
}

TEST_CASE("shrink: of a sound communicator, again and again, and of the survivors themselves") {
  on_ranks(
      7,
      [&](Communicator& c) {
        for (int i = 0; i < 3; ++i) {
          Communicator all = c.shrink(1h);
          adds_up(all, c.rank(), without(7, {}));
        }
        adds_up(c, c.rank(), without(7, {}));  // still of use
        if (c.rank() == 3) return;
        Communicator six = c.shrink(1h);
        adds_up(six, c.rank(), without(7, {3}));
        if (c.rank() == 0) return;
        std::vector<float> x(10);
        CHECK_THROWS_AS(six.all_reduce(x, sum, {"ring"}), Error);
        Communicator five = six.shrink(1h);
        adds_up(five, c.rank(), without(7, {0, 3}));
        Communicator half = five.split(c.rank() % 2);
        adds_up(half, c.rank(), c.rank() % 2 == 0 ? std::vector{2, 4, 6} : std::vector{1, 5});
      },
      patient());
}

TEST_CASE("shrink: the longest patience is not over at once") {
  for (const int late : {0, 2}) {
    on_ranks(
        3,
        [&](Communicator& c) {
          if (c.rank() == late) std::this_thread::sleep_for(100ms);
          Communicator survivors = c.shrink(std::chrono::milliseconds::max());
          adds_up(survivors, c.rank(), {0, 1, 2});
        },
        giving_up_after(std::chrono::milliseconds::max()));
  }
}

TEST_CASE("shrink: the next begins while others end the one before") {
  for (const int size : {2, 3, 5})
    on_ranks(size, [&](Communicator& c) {
      for (int i = 0; i < 30; ++i) CHECK(c.shrink(1h).size() == size);
    });
}

TEST_CASE("shrink: names of parts and survivors stay apart, however often they follow each other") {
  on_ranks(2, [](Communicator& c) {
    Communicator survivors = c.shrink(1h);
    CHECK(survivors.name() == "world/survivors 1");
    CHECK(c.shrink(1h).name() == "world/survivors 2");
    for (int i = 0; i < 3; ++i) survivors = survivors.shrink(1h);
    CHECK(survivors.name() == "world/survivors 1.1.1.1");
    Communicator part = survivors.split(0);
    CHECK(part.name() == "world/survivors 1.1.1.1/1:0");
    CHECK(part.shrink(1h).name() == "world/survivors 1.1.1.1/1:0/survivors 1");

    // Where names become too long, the middle is left out.
    part.set_name("forests of pines and birches, in the far north of the mainland");  // 62 bytes
    const std::string second = part.split(1).name(), third = part.split(2).name();
    CHECK(second == "forests of pines…irches, in the far north of the mainland/1:1");
    CHECK(third == "forests of pines…irches, in the far north of the mainland/2:2");
    part.set_name(std::string(59, 'x'));
    CHECK(part.split(0).name() == std::string(59, 'x') + "/3:0");  // as long as names may be
    std::string letters;
    for (int i = 0; i < 17; ++i) letters += "ä";  // of two bytes each
    part.set_name("fünfzehn Bäumääääää" + letters + "x");
    CHECK(part.split(30000).name() == "fünfzehn Bäum…" + letters + "x/4:30000");
  });
}

TEST_CASE("shrink: a hang among survivors names its cause") {
  on_ranks(
      4,
      [&](Communicator& c) {
        if (c.rank() == 0) return;
        Communicator three = c.shrink(1h);
        if (c.rank() == 2) return;
        std::vector<float> x(10);
        CHECK(holds(error_of([&] { three.all_reduce(x, sum, {"ring"}); }).what(),
                    {"of communicator 'world/survivors 1'", "rank 1", "left the communicator"}));
      },
      patient());
}

namespace {

/// A transport through which no message arrives any more once `*deaf` is set, while sends succeed:
/// as UCX's shared memory when a process was killed in the middle of a message to this rank.
class Deaf final : public ForwardingTransport {
 public:
  Deaf(std::unique_ptr<Transport> inner, const std::atomic<bool>* deaf)
      : ForwardingTransport(std::move(inner)), deaf_(deaf) {}
  void irecv(int peer, int tag, void* data, std::size_t bytes, Message& message) override {
    inner().irecv(peer, tag, data, bytes, message);
    received_.insert(&message);
  }
  bool test(Message& message, std::size_t& bytes) override {
    if (*deaf_ && received_.contains(&message)) return false;
    const bool done = inner().test(message, bytes);
    if (done) received_.erase(&message);
    return done;
  }
  void cancel(Message& message) override {
    inner().cancel(message);
    received_.erase(&message);
  }

 private:
  std::unique_ptr<Transport> wrapped(std::unique_ptr<Transport> part) override {
    return std::make_unique<Deaf>(std::move(part), deaf_);
  }
  const std::atomic<bool>* deaf_;
  std::set<const Message*> received_;
};

}  // namespace

TEST_CASE("shrink: a rank that nothing reaches any more leaves, and the others go on") {
  for (const int size : {3, 4, 5})
    for (int deaf = 0; deaf < size - 1; ++deaf) {
      CAPTURE(size);
      CAPTURE(deaf);
      const int culprit = size - 1;
      std::atomic<bool> blocked = false;
      const std::atomic<bool> sound = false;
      std::barrier made(size);
      Watchdog watchdog(size, 60s);
      run_threads(size, [&](std::unique_ptr<Transport> t) {
        const int rank = t->rank();
        Communicator c(std::make_unique<Deaf>(std::move(t), rank == deaf ? &blocked : &sound),
                       patient());
        made.arrive_and_wait();
        blocked = true;
        std::vector<float> x(100);
        if (rank != culprit) CHECK_THROWS_AS(c.all_reduce(x, sum, {"ring", 0}), Error);
        if (rank == deaf) {
          const Error error = error_of([&] { c.shrink(300ms); });
          CHECK(error.code == ErrorCode::transport);
          CHECK(holds(error.what(), {"shrink: rank " + std::to_string(deaf), "receives nothing"}));
        } else if (rank != culprit) {
          Communicator survivors = c.shrink(300ms);
          adds_up(survivors, rank, without(size, {deaf, culprit}));
        }
        watchdog.returned(rank);
      });
    }
}

TEST_CASE("shrink: a rank that was left out is waited for in a sound communicator") {
  std::latch alone(1), refused(1);
  on_ranks(2, [&](Communicator& c) {
    std::vector<float> x(10, 1);
    if (c.rank() == 1) {
      CHECK(c.shrink(10ms).size() == 1);
      alone.count_down();
      refused.wait();
    } else {
      alone.wait();
      CHECK_THROWS_AS(c.shrink(10ms), Error);
      refused.count_down();
      std::this_thread::sleep_for(800ms);  // the other looks after 0.4 s
    }
    c.all_reduce(x, sum);
    CHECK(x[0] == 2);
  });
}

TEST_CASE("shrink: refusals send nothing") {
  on_ranks(2, [&](Communicator& c) {
    CHECK(holds(error_of([&] { c.shrink(0ms); }).what(), {"patience of more than 0 ms, found 0"}));
    std::vector<float> x(10, 1);
    c.all_reduce(x, sum);
    CHECK(x[0] == 2);
  });
}

TEST_CASE("survivors: a rank that still waits for a dead leader joins the next one") {
  constexpr int tag = 5;
  constexpr std::uint32_t turn = 9;
  std::vector<std::vector<int>> groups(3);
  std::barrier all(3);
  std::atomic<bool> dead = false;
  run_threads(3, [&](std::unique_ptr<Transport> t) {
    const int rank = t->rank();
    if (rank == 0) {  // greets, proposes, hears that the others accept, and dies
      struct {
        std::uint32_t turn, kind, ballot, ranks;
      } const hello{turn, 0, 0, 0}, proposal{turn, 1, 1, 0b111};
      constexpr std::size_t bytes = 13;
      std::array<Message, 8> messages;
      std::array<std::array<std::byte, bytes>, 4> answers;
      for (std::size_t i = 0; i < 4; ++i) {
        const int peer = i < 2 ? 1 : 2;
        t->isend(peer, tag, i % 2 == 0 ? &hello : &proposal, bytes, messages[i]);
        t->irecv(peer, tag, answers[i].data(), bytes, messages[4 + i]);
      }
      std::size_t got = 0;
      for (Message& message : messages)
        while (!t->test(message, got)) std::this_thread::yield();
      dead = true;
      all.arrive_and_wait();
      return;
    }
    int looks = 0;  // rank 2 sees it when rank 1 has proposed for long
    const auto gone = [&](int other) { return other == 0 && dead && (rank == 1 || ++looks > 10); };
    communicator::Survivors survivors(*t, tag, turn, {2s, gone});
    groups[static_cast<std::size_t>(rank)] = survivors.agree();
    all.arrive_and_wait();
  });
  CHECK(groups[1] == std::vector{1, 2});
  CHECK(groups[2] == std::vector{1, 2});
}

namespace {

/// A message of Survivors among three ranks.
struct Said {
  std::uint32_t turn, kind, ballot;
  std::uint8_t ranks;  // a bit for each
};
constexpr std::size_t said_bytes = 13;
constexpr std::uint32_t hello = 0, propose = 1, accept = 2, reject = 3, commit = 4;

/// Whose commits are under way until `go`.
class SlowCommits final : public ForwardingTransport {
 public:
  SlowCommits(std::unique_ptr<Transport> inner, std::atomic<bool>& begun,
              const std::atomic<bool>& go)
      : ForwardingTransport(std::move(inner)), begun_(begun), go_(go) {}
  void isend(int peer, int tag, const void* data, std::size_t bytes, Message& message) override {
    inner().isend(peer, tag, data, bytes, message);
    if (static_cast<const Said*>(data)->kind != commit) return;
    held_.insert(&message);
    begun_ = true;
  }
  bool test(Message& message, std::size_t& bytes) override {
    return (go_ || !held_.contains(&message)) && inner().test(message, bytes);
  }

 private:
  std::unique_ptr<Transport> wrapped(std::unique_ptr<Transport>) override { return nullptr; }
  std::atomic<bool>& begun_;
  const std::atomic<bool>& go_;
  std::set<const Message*> held_;
};

}  // namespace

TEST_CASE("survivors: while a rank commits a group, it accepts no other one") {
  constexpr int tag = 5;
  constexpr std::uint32_t turn = 9;
  std::atomic<bool> begun = false, go = false;
  run_threads(3, [&](std::unique_ptr<Transport> t) {
    if (t->rank() == 1) {
      const auto gone = [](int other) { return other == 0; };
      SlowCommits slow(std::move(t), begun, go);
      CHECK(communicator::Survivors(slow, tag, turn, {30s, gone}).agree() == std::vector{1, 2});
      return;
    }
    const auto say = [&](const Said& said) {
      Message message;
      std::size_t bytes = 0;
      t->isend(1, tag, &said, said_bytes, message);
      while (!t->test(message, bytes)) std::this_thread::yield();
    };
    const auto hear = [&] {
      Message message;
      std::size_t bytes = 0;
      Said said{};
      t->irecv(1, tag, &said, said_bytes, message);
      while (!t->test(message, bytes)) std::this_thread::yield();
      return said;
    };
    if (t->rank() == 2) {  // a follower
      say({turn, hello, 0, 0});
      CHECK(hear().kind == hello);
      CHECK(hear().kind == propose);
      say({turn, accept, 1, 0});
      CHECK(hear().ranks == 0b110);
    } else {  // comes when the others have agreed
      while (!begun) std::this_thread::yield();
      say({turn, hello, 0, 0});
      say({turn, propose, 1, 0b111});
      CHECK(hear().kind == hello);
      const Said answer = hear();
      CHECK(answer.kind == reject);
      go = true;
    }
  });
}

TEST_CASE("survivors: a rank that answers too late is told") {
  constexpr int tag = 5;
  constexpr std::uint32_t turn = 9;
  std::barrier agreed(3), told(3);
  run_threads(3, [&](std::unique_ptr<Transport> t) {
    if (t->rank() < 2) {
      communicator::Survivors survivors(*t, tag, turn, {100ms, [](int) { return false; }});
      CHECK(survivors.agree() == std::vector{0, 1});
      agreed.arrive_and_wait();
      told.arrive_and_wait();
      return;
    }
    const Said greeting{turn, hello, 0, 0};
    std::array<Message, 2> sent;
    for (int r = 0; r < 2; ++r)
      t->isend(r, tag, &greeting, said_bytes, sent[static_cast<std::size_t>(r)]);
    agreed.arrive_and_wait();
    std::vector<std::uint32_t> heard;
    Said said{};
    Message message;
    std::size_t bytes = 0;
    for (t->irecv(0, tag, &said, said_bytes, message); t->test(message, bytes);
         t->irecv(0, tag, &said, said_bytes, message))
      heard.push_back(said.kind);
    t->cancel(message);
    CHECK(heard == std::vector{hello, propose, commit});
    CHECK(said.ranks == 0b011);
    for (Message& each : sent) t->cancel(each);
    told.arrive_and_wait();
  });
}

TEST_CASE("survivors: a rank that is left out, though it had come before, says whom it heard") {
  constexpr int tag = 5;
  for (const bool late : {false, true}) {
    std::barrier all(3);
    run_threads(3, [&](std::unique_ptr<Transport> t) {
      const auto gone = [](int other) { return other == 1; };
      if (t->rank() == 0) {  // greets, and goes on with others
        CHECK(communicator::Survivors(*t, tag, 9, {30s, gone}).absent() == std::vector{1});
      } else if (t->rank() == 2) {
        int asked = 0;
        const auto left_out = [&] { return late || ++asked > 1; };
        communicator::Survivors survivors(*t, tag, 9,
                                          {30s, gone, [](int) { return false; }, left_out});
        const std::string sentence = error_of([&] { survivors.agree(); }).what();
        CHECK(holds(sentence, {"rank 2 came too late"}));
        CHECK(sentence.ends_with("and has heard rank 0") == !late);
      }
      all.arrive_and_wait();
    });
  }
}

TEST_CASE("survivors: whatever the order and the delays, no rank is in two groups") {
  constexpr int size = 5;
  constexpr auto patience = 20ms;
  for (std::uint32_t seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    std::vector<std::vector<int>> groups(size);
    std::barrier all(size);
    run_threads(
        size,
        [&](std::unique_ptr<Transport> t) {
          std::minstd_rand random(seed * 100 + static_cast<std::uint32_t>(t->rank()) + 1);
          random.discard(3);
          std::this_thread::sleep_for(std::chrono::microseconds(random() % 60'000));
          {
            communicator::Survivors survivors(*t, 5, seed, {patience, [](int) { return false; }});
            try {
              groups[static_cast<std::size_t>(t->rank())] = survivors.agree();
            } catch (const Error& error) {
              CHECK(error.code == ErrorCode::timeout);
            }
            all.arrive_and_wait();
          }
        },
        {.seed = seed % 2});
    int members = 0;
    for (int r = 0; r < size; ++r) {
      const std::vector<int>& group = groups[static_cast<std::size_t>(r)];
      for (const int member : group) CHECK(groups[static_cast<std::size_t>(member)] == group);
      members += group.empty() ? 0 : 1;
    }
    CHECK(members > 0);
  }
}
