#pragma once
/// What every transport promises, as checks that all ranks of a group run together. They use the
/// transport only, so that a new one is tested by calling everything().

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "baton/error.hpp"
#include "baton/transport.hpp"
#include "support/values.hpp"

namespace contract {

using namespace std::chrono_literals;
using baton::Message;
using baton::Transport;
using support::same_bytes;
using Bytes = std::vector<std::byte>;

/// Bytes that nobody else's message has.
inline Bytes pattern(std::size_t bytes, std::uint64_t seed) {
  const std::size_t count = (bytes + 7) / 8;
  const auto words = std::make_unique_for_overwrite<std::uint64_t[]>(count);
  std::uint64_t x = seed * 0x9e3779b97f4a7c15u + 0x632be59bd9b4e019u;
  std::uint64_t* const end = words.get() + count;  // a plain loop, of which a sanitizer sees little
  for (std::uint64_t* word = words.get(); word != end; ++word) {
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    *word = x;
  }
  const auto* const first = reinterpret_cast<const std::byte*>(words.get());
  return {first, first + bytes};
}

/// Waits as an executor does. A hang becomes an error that says who waits for what.
inline std::size_t finish(Transport& t, Message& message, const std::string& what,
                          std::chrono::seconds limit = 60s) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  std::size_t bytes = 0;
  while (!t.test(message, bytes)) {
    t.idle(200us);
    if (std::chrono::steady_clock::now() > deadline)
      throw baton::Error(baton::ErrorCode::timeout,
                         "rank " + std::to_string(t.rank()) + " still waits: " + what);
  }
  return bytes;
}

inline void send(Transport& t, int peer, int tag, const Bytes& data) {
  Message m;
  t.isend(peer, tag, data.data(), data.size(), m);
  finish(t, m, "send to " + std::to_string(peer) + ", tag " + std::to_string(tag));
}

inline Bytes recv(Transport& t, int peer, int tag, std::size_t room) {
  Message m;
  Bytes data(room);
  t.irecv(peer, tag, data.data(), room, m);
  data.resize(std::min(
      room, finish(t, m, "recv from " + std::to_string(peer) + ", tag " + std::to_string(tag))));
  return data;
}

/// Returns when every rank has called it: a token goes round twice.
inline void meet(Transport& t) {
  const int next = (t.rank() + 1) % t.size(), prev = (t.rank() + t.size() - 1) % t.size();
  constexpr int tag = 32000;
  for (int round = 0; round < 2 && t.size() > 1; ++round) {
    if (t.rank() != 0) recv(t, prev, tag, 0);
    send(t, next, tag, {});
    if (t.rank() == 0) recv(t, prev, tag, 0);
  }
}

/// Messages of one source and tag arrive in order, whatever their lengths; also to oneself.
inline void order(Transport& t) {
  const std::size_t lengths[] = {8, 100000, 1, 0, 4096, 4097, 8, 8, 300000, 16};
  for (int distance = 0; distance < std::min(t.size(), 3); ++distance) {
    const int to = (t.rank() + distance) % t.size();
    const int from = (t.rank() + t.size() - distance) % t.size();
    std::deque<Message> messages;
    std::deque<Bytes> sent, got;
    for (std::size_t i = 0; i < std::size(lengths); ++i) {
      sent.push_back(pattern(lengths[i], static_cast<std::uint64_t>(t.rank()) * 100 + i));
      t.isend(to, 3, sent[i].data(), lengths[i], messages.emplace_back());
    }
    for (std::size_t i = 0; i < std::size(lengths); ++i) {
      got.emplace_back(lengths[i]);
      t.irecv(from, 3, got[i].data(), lengths[i], messages.emplace_back());
    }
    // The last one is waited for first.
    for (std::size_t i = messages.size(); i-- > 0;)
      CHECK(finish(t, messages[i], "order") == lengths[i % std::size(lengths)]);
    for (std::size_t i = 0; i < std::size(lengths); ++i)
      CHECK(same_bytes(got[i], pattern(lengths[i], static_cast<std::uint64_t>(from) * 100 + i)));
  }
}

/// A receive takes the message of its own tag, in whatever order they are asked for.
inline void tags(Transport& t) {
  const int next = (t.rank() + 1) % t.size(), prev = (t.rank() + t.size() - 1) % t.size();
  const int last = std::min(t.capabilities().tags, 32000) - 1;
  const int used[] = {0, last, 1, 17, last / 2};
  for (const std::size_t length : {std::size_t{24}, std::size_t{50000}}) {
    const auto seed = [](int rank, int tag) {
      return static_cast<std::uint64_t>(rank) << 32 | static_cast<std::uint32_t>(tag);
    };
    std::deque<Message> messages;
    std::deque<Bytes> sent;
    for (int tag : used) {
      sent.push_back(pattern(length, seed(t.rank(), tag)));
      t.isend(next, tag, sent.back().data(), length, messages.emplace_back());
    }
    for (std::size_t i = std::size(used); i-- > 0;)
      CHECK(same_bytes(recv(t, prev, used[i], length), pattern(length, seed(prev, used[i]))));
    for (Message& m : messages) finish(t, m, "tags: send");
  }
}

/// Neither who comes first nor how long the message is makes a difference.
inline void early_and_late(Transport& t) {
  if (t.size() < 2 || t.rank() > 1) return;
  const int peer = 1 - t.rank();
  for (const std::size_t length : {0u, 1u, 8u, 4096u, 4097u, 1u << 20}) {
    for (const bool receive_first : {false, true}) {
      Message m;
      Bytes data = t.rank() == 0 ? pattern(length, length) : Bytes(length);
      const auto post = [&] {
        if (t.rank() == 0)
          t.isend(1, 9, data.data(), length, m);
        else
          t.irecv(0, 9, data.data(), length, m);
      };
      const bool first = receive_first == (t.rank() == 1);
      if (first) {
        post();
        t.progress();
        send(t, peer, 10, Bytes(1));
      } else {
        recv(t, peer, 10, 1);
        post();
      }
      CHECK(finish(t, m, "early and late") == length);
      CHECK(same_bytes(data, pattern(length, length)));
    }
  }
}

/// send() and recv() are isend() and irecv(), and test() until it is true.
inline void waits(Transport& t, bool exact) {
  if (t.size() < 2 || t.rank() > 1) return;
  const std::size_t pairs[][2] = {{0, 0},  {8, 8}, {5000, 5000}, {1 << 20, 1 << 20},
                                  {8, 16}, {0, 4}, {16, 10}};
  for (const auto& [sent, room] : pairs) {
    if (t.rank() == 0) {
      const Bytes data = pattern(sent, sent);
      baton::send(t, {1, 11, data.data(), sent});
      continue;
    }
    Bytes data(room), expected = pattern(sent, sent);
    const std::size_t found = baton::recv(t, {0, 11, data.data(), room});
    if (exact || sent <= room)
      CHECK(found == sent);
    else
      CHECK(found > room);
    const std::size_t both = std::min(sent, room);
    if (sent <= room)
      CHECK(same_bytes(std::span(data).first(both), std::span(expected).first(both)));
  }
}

/// send_recv() is isend() and recv() at once: ranks that wait for each other's messages get them.
inline void exchanges(Transport& t) {
  if (t.size() < 2) return;
  const int next = (t.rank() + 1) % t.size(), last = (t.rank() + t.size() - 1) % t.size();
  for (const std::size_t length : {0u, 8u, 5000u, 1u << 20}) {
    const auto seed = [&](int rank) { return length + static_cast<unsigned>(rank) + 1; };
    const Bytes out = pattern(length, seed(t.rank()));
    Bytes in(length);
    CHECK(send_recv(t, {next, 12, out.data(), length}, {last, 12, in.data(), length}) == length);
    CHECK(same_bytes(in, pattern(length, seed(last))));
  }
}

/// A message shorter or longer than the room is reported by `bytes`. `exact`: a longer one by its
/// very length, and the room is filled but nothing beyond it.
inline void lengths(Transport& t, bool exact) {
  if (t.size() < 2 || t.rank() > 1) return;
  const std::size_t pairs[][2] = {{10, 16}, {0, 16},          {16, 10},         {16, 0},
                                  {0, 0},   {100000, 200000}, {200000, 100000}, {5000, 100}};
  for (const bool receive_first : {false, true})
    for (const auto& [sent, room] : pairs) {
      if (t.rank() == 0) {
        if (receive_first) recv(t, 1, 10, 0);
        Message m;
        const Bytes data = pattern(sent, sent);
        t.isend(1, 9, data.data(), sent, m);
        if (!receive_first) send(t, 1, 10, {});
        CHECK(finish(t, m, "lengths: send") == sent);
        continue;
      }
      Message m;
      Bytes data(std::max(sent, room) + 64);
      if (!receive_first) recv(t, 0, 10, 0);
      t.irecv(0, 9, data.data(), room, m);
      if (receive_first) send(t, 0, 10, {});
      const std::size_t bytes = finish(t, m, "lengths");
      if (sent > room && !exact) {
        CHECK(bytes > room);
        continue;
      }
      CHECK(bytes == sent);
      const Bytes whole = pattern(sent, sent);
      const std::size_t filled = std::min(sent, room);
      CHECK(same_bytes(std::span(data).first(filled), std::span(whole).first(filled)));
      const Bytes untouched(data.size() - filled);
      CHECK(same_bytes(std::span(data).subspan(filled), untouched));
    }
}

/// A receive that was given up takes no message and writes nothing.
inline void cancelled_receive(Transport& t) {
  if (t.size() < 2 || t.rank() > 1) return;
  for (const std::size_t length : {std::size_t{16}, std::size_t{100000}}) {
    if (t.rank() == 0) {
      recv(t, 1, 6, 0);
      send(t, 1, 5, pattern(length, 1));
      continue;
    }
    Message m;
    Bytes given_up(length);
    t.irecv(0, 5, given_up.data(), length, m);
    t.cancel(m);
    send(t, 0, 6, {});
    CHECK(same_bytes(recv(t, 0, 5, length), pattern(length, 1)));
    CHECK(given_up == Bytes(length));
  }
}

/// A send that was given up before its receiver came is not received.
inline void cancelled_send(Transport& t, std::size_t length) {
  if (t.size() < 2 || t.rank() > 1 || !t.capabilities().cancels) return;
  if (t.rank() == 0) {
    Bytes data = pattern(length, 1);
    Message m;
    t.isend(1, 7, data.data(), length, m);
    t.cancel(m);
    std::fill(data.begin(), data.end(), std::byte{0xff});
    send(t, 1, 8, {});
    send(t, 1, 7, pattern(length, 2));
  } else {
    recv(t, 0, 8, 0);
    CHECK(same_bytes(recv(t, 0, 7, length), pattern(length, 2)));
  }
}

/// Random messages between all pairs, posted and tested in random order: each arrives once, in
/// order, with the bytes that were sent.
inline void traffic(Transport& t, int per_pair, std::uint64_t seed, std::size_t longest = 70000) {
  struct Plan {
    int tag;
    std::size_t length;
  };
  // What rank a sends to rank b, as both know.
  const auto plans = [&](int a, int b) {
    std::mt19937_64 random(seed * 1000003 + static_cast<std::uint64_t>(a * t.size() + b));
    const std::size_t choice[] = {0, 1, 8, 100, 4096, 4097, 20000, longest};
    std::vector<Plan> list;
    for (int i = 0; i < per_pair; ++i)
      list.push_back({static_cast<int>(random() % 3),
                      std::min(longest, choice[random() % std::size(choice)])});
    return list;
  };
  const auto content = [&](int a, int b, std::size_t index) {
    return seed * 1000003 + static_cast<std::uint64_t>((a * t.size() + b) * 1000) + index;
  };
  struct InFlight {
    Message message;
    Bytes data;
    bool receive;
    std::size_t length;
    std::uint64_t content;
  };
  struct Post {
    int peer;
    std::size_t index;
    Plan plan;
  };
  // Sends of a pair in order; receives of a pair in any order that keeps the tags' own.
  std::mt19937_64 random(seed * 7919 + static_cast<std::uint64_t>(t.rank()));
  std::vector<std::deque<Post>> strands;
  const auto sends = static_cast<std::size_t>(t.size());
  for (int peer = 0; peer < t.size(); ++peer) {
    auto& strand = strands.emplace_back();
    for (const Plan& p : plans(t.rank(), peer)) strand.push_back({peer, strand.size(), p});
  }
  for (int peer = 0; peer < t.size(); ++peer) {
    std::map<int, std::deque<Post>> by_tag;
    std::size_t index = 0;
    for (const Plan& p : plans(peer, t.rank())) by_tag[p.tag].push_back({peer, index++, p});
    for (auto& [tag, strand] : by_tag) strands.push_back(std::move(strand));
  }
  std::vector<std::size_t> left;
  for (std::size_t s = 0; s < strands.size(); ++s)
    if (!strands[s].empty()) left.push_back(s);

  std::vector<std::unique_ptr<InFlight>> flying;
  const auto sweep = [&] {
    bool any = false;
    for (std::size_t i = flying.size(); i-- > 0;) {
      std::size_t bytes = 0;
      if (!t.test(flying[i]->message, bytes)) continue;
      any = true;
      CHECK(bytes == flying[i]->length);
      CHECK(same_bytes(flying[i]->data, pattern(flying[i]->length, flying[i]->content)));
      std::swap(flying[i], flying.back());
      flying.pop_back();
    }
    return any;
  };
  while (!left.empty()) {
    const std::size_t at = random() % left.size();
    const bool receive = left[at] >= sends;
    auto& strand = strands[left[at]];
    const Post post = strand.front();
    strand.pop_front();
    if (strand.empty()) left.erase(left.begin() + static_cast<std::ptrdiff_t>(at));
    const auto what = receive ? content(post.peer, t.rank(), post.index)
                              : content(t.rank(), post.peer, post.index);
    const auto length = post.plan.length;
    auto& f = *flying.emplace_back(
        new InFlight{{}, receive ? Bytes(length) : pattern(length, what), receive, length, what});
    if (receive)
      t.irecv(post.peer, post.plan.tag, f.data.data(), length, f.message);
    else
      t.isend(post.peer, post.plan.tag, f.data.data(), length, f.message);
    if (random() % 4 == 0) sweep();
  }
  const auto deadline = std::chrono::steady_clock::now() + 120s;
  while (!flying.empty())
    if (!sweep()) {
      t.idle(200us);
      if (std::chrono::steady_clock::now() > deadline)
        throw baton::Error(baton::ErrorCode::timeout,
                           "rank " + std::to_string(t.rank()) + " still waits: random traffic");
    }
}

/// Groups are ordered by key, then by rank; their messages do not meet those of other groups.
inline void split(Transport& t) {
  // Ties of the key are ordered by rank.
  const auto same = t.split(0, 0);
  REQUIRE(same != nullptr);
  CHECK(same->rank() == t.rank());
  CHECK(same->size() == t.size());

  const auto half = t.split(t.rank() % 2, -t.rank());
  REQUIRE(half != nullptr);
  const int members = (t.size() + 1 - t.rank() % 2) / 2;
  CHECK(half->size() == members);
  CHECK(half->rank() == members - 1 - t.rank() / 2);

  // The same tag, and where possible the same rank, in three groups at once.
  Transport* const groups[] = {half.get(), same.get(), &t};
  std::deque<Message> messages;
  std::deque<Bytes> sent, got;
  for (std::size_t g = 0; g < 3; ++g) {
    Transport& group = *groups[g];
    sent.push_back(pattern(32, static_cast<std::uint64_t>(group.rank()) * 10 + g));
    group.isend((group.rank() + 1) % group.size(), 4, sent[g].data(), 32, messages.emplace_back());
  }
  for (std::size_t g = 3; g-- > 0;) {
    Transport& group = *groups[g];
    const int prev = (group.rank() + group.size() - 1) % group.size();
    CHECK(same_bytes(recv(group, prev, 4, 32),
                     pattern(32, static_cast<std::uint64_t>(prev) * 10 + g)));
  }
  for (std::size_t g = 0; g < 3; ++g) finish(*groups[g], messages[g], "split: send");

  // A part of a part, and ranks that are in none.
  const auto quarter = half->split(half->rank() / 2, 0);
  REQUIRE(quarter != nullptr);
  CHECK(quarter->rank() == half->rank() % 2);
  order(*quarter);
  const auto without_first = t.split(t.rank() == 0 ? -1 : 7, 0);
  CHECK((without_first == nullptr) == (t.rank() == 0));
  if (without_first != nullptr) {
    CHECK(without_first->size() == t.size() - 1);
    CHECK(without_first->rank() == t.rank() - 1);
    traffic(*without_first, 2, 5);
  }
}

/// Hosts are numbered by first appearance, and a part's are those of its ranks.
/// Some ranks make a group of their own, in any order, while the others call nothing; their tags
/// are apart from the whole group's.
inline void subgroup(Transport& t) {
  if (!t.capabilities().subgroups) return;
  for (int number = 0; number < 3; ++number) {
    std::vector<int> ranks;  // every third is left out, then every second, then none
    for (int r = t.size() - 1; r >= 0; --r)
      if (number == 2 || r % (3 - number) != 1) ranks.push_back(r);
    const auto own = std::find(ranks.begin(), ranks.end(), t.rank());
    if (own == ranks.end()) continue;
    const auto part = t.subgroup(ranks, number);
    CHECK(part->rank() == own - ranks.begin());
    CHECK(part->size() == static_cast<int>(ranks.size()));
    CHECK(part->capabilities().subgroups);
    traffic(*part, 2, static_cast<std::uint64_t>(number));
    const auto again = part->split(0, 0);
    exchanges(*again);
    meet(*again);
  }
}

/// Hosts are numbered by first appearance, and a part's are those of its ranks.
inline void hosts(Transport& t) {
  const auto hosts = t.capabilities().hosts;
  if (!hosts.empty()) REQUIRE(hosts.size() == static_cast<std::size_t>(t.size()));
  int next = 0;
  for (const int host : hosts) {
    CHECK(host >= 0);
    CHECK(host <= next);
    next = std::max(next, host + 1);
  }
  const auto reverse = t.split(0, -t.rank());
  const auto others = reverse->capabilities().hosts;
  REQUIRE(others.size() == hosts.size());
  for (std::size_t a = 0; a < hosts.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      const std::size_t last = hosts.size() - 1;
      CHECK((hosts[a] == hosts[b]) == (others[last - a] == others[last - b]));
    }
  }
}

inline void everything(Transport& t, bool exact_lengths) {
  CHECK(t.rank() >= 0);
  CHECK(t.rank() < t.size());
  CHECK(t.capabilities().tags >= 32767);
  order(t);
  meet(t);
  tags(t);
  meet(t);
  early_and_late(t);
  lengths(t, exact_lengths);
  waits(t, exact_lengths);
  exchanges(t);
  cancelled_receive(t);
  cancelled_send(t, 1 << 20);
  meet(t);
  traffic(t, 6, 1);
  split(t);
  subgroup(t);
  hosts(t);
  traffic(t, 6, 2);
}

}  // namespace contract
