/// Messages over shared memory that are so long that both sides copy them where both wait.

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <vector>

#include "baton/communicator.hpp"
#include "baton/shm.hpp"
#include "contract.hpp"
#include "shm_worlds.hpp"
#include "support/sanitizer.hpp"

using namespace baton;
using namespace std::chrono_literals;
using contract::Bytes;
using contract::finish;
using contract::pattern;
using shm_worlds::on_worlds;
using support::same_bytes;

TEST_CASE("shm transport: messages that both sides copy where both wait") {
  constexpr std::size_t longest = 9 << 20;
  for (const int size : {2, 3})
    on_worlds(size, [&](const std::unique_ptr<Transport>& t) {
      contract::traffic(*t, 12, 5, longest);
      contract::cancelled_send(*t, longest);
      contract::meet(*t);
    });
}

TEST_CASE("shm transport: a very long message of a sender that computes is read") {
  constexpr std::size_t bytes = 9 << 20;
  std::atomic<bool> received = false;
  on_worlds(2, [&](const std::unique_ptr<Transport>& t) {
    Bytes data = t->rank() == 0 ? pattern(bytes, 1) : Bytes(bytes);
    Message m;
    if (t->rank() == 0) {
      t->isend(1, 0, data.data(), bytes, m);
      received.wait(false);  // it calls nothing meanwhile
    } else {
      t->irecv(0, 0, data.data(), bytes, m);
    }
    CHECK(finish(*t, m, "message") == bytes);
    if (t->rank() == 1) {
      CHECK(same_bytes(data, pattern(bytes, 1)));
      received = true;
      received.notify_all();
    }
  });
}

namespace {

constexpr std::size_t very_long = 9 << 20;

/// Two very long messages at once from rank 0 to rank 1, for which both wait; they are as sent.
void send_across(Transport& t, const Bytes& content) {
  std::vector<Message> messages(2);
  std::vector<Bytes> rooms(2, Bytes(t.rank() == 1 ? very_long : 0));
  for (std::size_t i = 0; i < 2; ++i) {
    if (t.rank() == 0)
      t.isend(1, 2, content.data(), very_long, messages[i]);
    else
      t.irecv(0, 2, rooms[i].data(), very_long, messages[i]);
  }
  for (Message& m : messages) CHECK(finish(t, m, "message") == very_long);
  if (t.rank() == 1)
    for (const Bytes& room : rooms) CHECK(same_bytes(room, content));
}

/// Both sides have posted a message from rank 0 to rank 1. This one gives it up after `patience`,
/// unless it is over.
void give_up(Transport& t, Message& m, std::chrono::microseconds patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  std::size_t length = 0;
  while (!t.test(m, length))
    if (std::chrono::steady_clock::now() > until) return t.cancel(m);
}

/// The other one may have given it up, and then sends a word: the message, or an error, or nothing
/// comes. True: the message was complete.
bool await(Transport& t, Message& m) {
  Message told;
  t.irecv(1 - t.rank(), 1, nullptr, 0, told);
  std::size_t length = 0;
  bool word = false, complete = false, failed = false;
  while (!word) {
    word = t.test(told, length);
    if (complete || failed) continue;
    try {
      complete = t.test(m, length);
    } catch (const Error&) {
      failed = true;
    }
  }
  if (!complete && !failed) t.cancel(m);
  return complete;
}

}  // namespace

TEST_CASE("shm transport: a very long message that either side gives up at any point") {
  const Bytes content = pattern(very_long, 1);
  on_worlds(2, [&](const std::unique_ptr<Transport>& t) {
    constexpr int rounds = support::under_sanitizer ? 20 : 60;
    for (int round = 0; round < rounds; ++round)
      for (const int who : {0, 1}) {
        Bytes room(t->rank() == 1 ? very_long : 0);
        contract::meet(*t);
        Message m;
        if (t->rank() == 0)
          t->isend(1, 0, content.data(), very_long, m);
        else
          t->irecv(0, 0, room.data(), very_long, m);
        if (t->rank() == who) {
          give_up(*t, m, 1800us / rounds * round);
          contract::send(*t, 1 - who, 1, {});
        } else if (await(*t, m) && t->rank() == 1) {
          CHECK(same_bytes(room, content));
        }
        const Bytes left = room;
        send_across(*t, content);
        CHECK(same_bytes(room, left));  // nobody writes there any more
      }
  });
}

TEST_CASE("shm transport: very long messages, several at once, for which both sides wait") {
  const Bytes content = pattern(very_long, 2);
  on_worlds(2, [&](const std::unique_ptr<Transport>& t) {
    for (int round = 0; round < 10; ++round) {
      send_across(*t, content);
      std::vector<Message> messages(4);
      std::vector<Bytes> rooms(2, Bytes(very_long));
      for (std::size_t i = 0; i < 2; ++i) {  // both ways
        t->irecv(1 - t->rank(), 3, rooms[i].data(), very_long, messages[i]);
        t->isend(1 - t->rank(), 3, content.data(), very_long, messages[2 + i]);
      }
      for (Message& m : messages) CHECK(finish(*t, m, "message") == very_long);
      for (const Bytes& room : rooms) CHECK(same_bytes(room, content));
    }
  });
}

TEST_CASE("shm transport: tensors that change hands along any dimensions, gathered while they go") {
  shm_worlds::both_ways([] {
    for (const int size : support::under_sanitizer ? std::vector{2, 3} : std::vector{2, 3, 4})
      on_worlds(size, [&](std::unique_ptr<Transport> t) {
        const std::int64_t p = size, me = t->rank();
        Communicator c(std::move(t));
        // Rows shorter and longer than a part, and, on most machines, blocks that outgrow the
        // cache.
        for (const std::int64_t inner : {3, 700, 5000, 90'000}) {
          const Shape before{2, 5, 2 * p, inner}, after{2, 5 * p, 2, inner};
          std::vector<std::int32_t> in, out(static_cast<std::size_t>(after.elements()), -1), back;
          const auto number = [&](std::int64_t b, std::int64_t s, std::int64_t h, std::int64_t i) {
            return static_cast<std::int32_t>(((b * 5 * p + s) * 2 * p + h) * inner + i);
          };
          for (std::int64_t b = 0; b < 2; ++b)
            for (std::int64_t s = 0; s < 5; ++s)
              for (std::int64_t h = 0; h < 2 * p; ++h)
                for (std::int64_t i = 0; i < inner; ++i) in.push_back(number(b, me * 5 + s, h, i));
          back.resize(in.size(), -1);
          c.all_to_all(ConstTensor(in.data(), before), Tensor(out.data(), after), 2, 1);
          bool good = true;
          std::size_t at = 0;
          for (std::int64_t b = 0; b < 2; ++b)
            for (std::int64_t s = 0; s < 5 * p; ++s)
              for (std::int64_t h = 0; h < 2; ++h)
                for (std::int64_t i = 0; i < inner; ++i)
                  good &= out[at++] == number(b, s, me * 2 + h, i);
          CHECK(good);
          c.all_to_all(ConstTensor(out.data(), after), Tensor(back.data(), before), 1, 2);
          CHECK(back == in);
        }
      });
  });
}
