#include "survivors.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "../base/raise.hpp"

namespace baton::communicator {

using std::chrono::milliseconds;

namespace {

constexpr milliseconds between_looks{10};
/// Proposals and waits for others', each as long as the patience, before a rank gives up.
constexpr int attempts = 6;

[[noreturn]] void fail_deaf(int rank, const std::string& peers) {
  base::raise(
      ErrorCode::transport,
      fmt::format("shrink: rank {} receives nothing from {}: perhaps a process has ended in "
                  "the middle of a message to it",
                  rank, peers),
      {.rank = rank});
}

}  // namespace

Survivors::Survivors(Transport& transport, int tag, std::uint32_t turn, Limits limits)
    : transport_(transport),
      tag_(tag),
      rank_(transport.rank()),
      size_(transport.size()),
      turn_(turn),
      limits_(std::move(limits)),
      peers_(static_cast<std::size_t>(size_)) {
  const std::size_t bytes = sizeof(Head) + (static_cast<std::size_t>(size_) + 7) / 8;
  for (int r = 0; r < size_; ++r) {
    peer(r).bytes.resize(bytes);
    if (r != rank_) listen(r);
  }
}

Survivors::~Survivors() {
  for (Sent& sent : sent_) transport_.cancel(sent.message);
  bool listening = false;
  for (Peer& peer : peers_) {
    if (!peer.listening) continue;
    transport_.cancel(peer.message);
    listening = true;
  }
  if (transport_.capabilities().cancels) return;
  // The transport may use these buffers for ever.
  if (!sent_.empty()) new std::list<Sent>(std::move(sent_));
  if (listening) new std::vector<Peer>(std::move(peers_));
}

void Survivors::listen(int rank) {
  Peer& from = peer(rank);
  try {
    transport_.irecv(rank, tag_, from.bytes.data(), from.bytes.size(), from.message);
    from.listening = true;
  } catch (const Error&) {
    from.gone = true;
  }
}

void Survivors::send(int to, Kind kind, std::uint32_t ballot, const Ranks& ranks) {
  if (to == rank_ || peer(to).gone) return;
  Sent& sent = sent_.emplace_back();
  sent.to = to;
  sent.bytes.resize(peer(to).bytes.size());
  const Head head{turn_, kind, ballot};
  std::memcpy(sent.bytes.data(), &head, sizeof head);
  for (std::size_t r = 0; r < ranks.size(); ++r)
    if (ranks[r]) sent.bytes[sizeof head + r / 8] |= std::byte(1u << r % 8);
  try {
    transport_.isend(to, tag_, sent.bytes.data(), sent.bytes.size(), sent.message);
  } catch (const Error&) {
    sent_.pop_back();
    peer(to).gone = true;
  }
}

void Survivors::take(int from) {
  const std::vector<std::byte> bytes = peer(from).bytes;
  listen(from);
  Head head;
  std::memcpy(&head, bytes.data(), sizeof head);
  if (head.turn != turn_) return;  // of an agreement that it gave up
  Ranks ranks(static_cast<std::size_t>(size_));
  for (std::size_t r = 0; r < ranks.size(); ++r)
    ranks[r] = (bytes[sizeof head + r / 8] >> r % 8 & std::byte(1)) != std::byte(0);
  peer(from).heard = true;
  peer(from).gone = peer(from).silent = false;
  switch (head.kind) {
    case Kind::hello:
      break;
    case Kind::propose:
      consider(from, head.ballot, ranks);
      break;
    case Kind::accept:
      if (head.ballot == ballot_) peer(from).accepted = true;
      break;
    case Kind::reject:
      if (head.ballot == ballot_) leading_ = false;
      break;
    case Kind::commit:
      if (ranks[static_cast<std::size_t>(rank_)]) {
        group_ = ranks;
        committed_ = true;
      } else {
        left_out_by_ = from;
      }
      break;
  }
}

void Survivors::consider(int from, std::uint32_t ballot, const Ranks& ranks) {
  const int bound = leading_ ? rank_ : accepted_;
  const bool free = bound < 0 || bound == from || ranks[static_cast<std::size_t>(bound)];
  if (committing_ || !ranks[static_cast<std::size_t>(rank_)] || !free || (leading_ && from > rank_))
    return send(from, Kind::reject, ballot);
  leading_ = false;
  accepted_ = from;
  send(from, Kind::accept, ballot);
}

void Survivors::poll() {
  std::size_t bytes = 0;
  for (auto sent = sent_.begin(); sent != sent_.end();) {
    bool over = false;
    try {
      over = transport_.test(sent->message, bytes);
    } catch (const Error&) {
      peer(sent->to).gone = over = true;
    }
    sent = over ? sent_.erase(sent) : std::next(sent);
  }
  for (int r = 0; r < size_; ++r) {
    Peer& from = peer(r);
    if (!from.listening) continue;
    try {
      if (!transport_.test(from.message, bytes)) continue;
      from.listening = false;
      bytes == from.bytes.size() ? take(r) : listen(r);
    } catch (const Error&) {
      from.listening = false;
      from.gone = true;
    }
  }
}

bool Survivors::wait(milliseconds at_most, const std::function<bool()>& done) {
  const auto end = Clock::now() + at_most;
  for (;;) {
    poll();
    if (done() || settled()) return true;
    const auto now = Clock::now();
    if (now > end) return false;
    if (now > look_at_) {
      look_at_ = now + between_looks;
      for (int r = 0; r < size_; ++r)
        if (r != rank_ && !peer(r).gone && limits_.gone(r)) {
          poll();  // what it sent before
          peer(r).gone = true;
        }
    }
    transport_.idle(std::chrono::microseconds(200));
  }
}

Survivors::Ranks Survivors::view() const {
  Ranks ranks(peers_.size());
  for (std::size_t r = 0; r < ranks.size(); ++r)
    ranks[r] = static_cast<int>(r) == rank_ || (peers_[r].heard && !peers_[r].lost());
  return ranks;
}

void Survivors::commit(const Ranks& ranks) {
  committing_ = true;
  for (int r = 0; r < size_; ++r) send(r, Kind::commit, ballot_, ranks);
  // Members must have it before this rank leaves; the others may.
  wait(limits_.patience, [&] {
    return std::ranges::none_of(
        sent_, [&](const Sent& sent) { return ranks[static_cast<std::size_t>(sent.to)]; });
  });
  group_ = ranks;
  committed_ = true;
}

bool Survivors::propose(const Ranks& ranks) {
  ++ballot_;
  leading_ = true;
  accepted_ = -1;
  for (Peer& each : peers_) each.accepted = false;
  peer(rank_).accepted = true;
  for (int r = 0; r < size_; ++r)
    if (ranks[static_cast<std::size_t>(r)]) send(r, Kind::propose, ballot_, ranks);
  const auto missing = [&](int r) {
    return ranks[static_cast<std::size_t>(r)] && !peer(r).accepted;
  };
  const auto all = [&] {
    for (int r = 0; r < size_; ++r)
      if (missing(r) && !peer(r).lost()) return false;
    return true;
  };
  wait(limits_.patience, [&] { return !leading_ || all(); });
  if (settled()) return true;
  if (!leading_) return false;
  leading_ = false;
  bool complete = true;
  for (int r = 0; r < size_; ++r)
    if (missing(r)) {
      peer(r).silent = true;
      complete = false;
    }
  if (complete) commit(ranks);
  return true;
}

void Survivors::lead(const Ranks& ranks) {
  const auto end = Clock::now() + limits_.patience;
  const auto overtaken = [&] { return accepted_ >= 0 || view() != ranks; };
  // Who rejects may wait for another one, of which it has yet to see that it is gone.
  while (!propose(ranks))
    if (wait(between_looks, overtaken) || Clock::now() > end) return;
}

void Survivors::follow(int leader) {
  const bool answered = wait(2 * limits_.patience, [&] { return peer(leader).gone; });
  if (answered && settled()) return;
  peer(leader).silent = true;
  if (accepted_ == leader) accepted_ = -1;
}

bool Survivors::deaf() const { return std::ranges::none_of(peers_, &Peer::heard); }

int Survivors::unheard() const {
  if (!deaf()) return -1;
  for (int r = 0; r < size_; ++r)
    if (r != rank_ && !peers_[static_cast<std::size_t>(r)].gone && limits_.takes_part(r)) return r;
  return -1;
}

void Survivors::fail_if_left_out(bool late) const {
  if (!limits_.left_out()) return;
  if (deaf() && !late) fail_deaf(rank_, "the others, which have gone on without it");
  std::string sentence =
      fmt::format("shrink: rank {} came too late: others have gone on without it", rank_);
  if (!late) {
    std::vector<int> heard;
    for (std::size_t r = 0; r < peers_.size(); ++r)
      if (peers_[r].heard) heard.push_back(static_cast<int>(r));
    sentence += fmt::format(", though it had come before, and has heard {} {}",
                            heard.size() == 1 ? "rank" : "ranks", fmt::join(heard, ", "));
  }
  base::raise(ErrorCode::timeout, sentence, {.rank = rank_});
}

void Survivors::greet() {
  for (int r = 0; r < size_; ++r) send(r, Kind::hello, 0);
  wait(limits_.patience, [&] {
    return std::ranges::all_of(
        peers_, [&](const Peer& each) { return &each == &peer(rank_) || each.heard || each.gone; });
  });
}

std::vector<int> Survivors::absent() {
  const auto end = Clock::now() + limits_.patience;
  greet();
  // Those that were heard must hear this rank before it leaves.
  wait(std::chrono::ceil<milliseconds>(end - Clock::now()), [&] {
    return std::ranges::none_of(sent_, [&](const Sent& sent) { return peer(sent.to).heard; });
  });
  std::vector<int> ranks;
  for (int r = 0; r < size_; ++r)
    if (r != rank_ && !peer(r).heard) ranks.push_back(r);
  return ranks;
}

std::vector<int> Survivors::agree() {
  const bool late = limits_.left_out();
  greet();
  // A rank that takes part may have come a moment ago.
  for (int r; (r = unheard()) >= 0;)
    if (!wait(limits_.patience, [&] { return !deaf() || peer(r).gone; }))
      fail_deaf(rank_, fmt::format("rank {}, which takes part", r));
  fail_if_left_out(late);
  for (int attempt = 0; attempt < attempts && !settled(); ++attempt) {
    const Ranks ranks = view();
    const auto leader = static_cast<int>(std::ranges::find(ranks, true) - ranks.begin());
    leader == rank_ ? lead(ranks) : follow(leader);
  }
  if (!committed_) {
    base::raise(
        ErrorCode::timeout,
        left_out_by_ >= 0
            ? fmt::format("shrink: rank {} came too late: rank {} and others have gone on "
                          "without it",
                          rank_, left_out_by_)
            : fmt::format("shrink: rank {} found no agreement with the others within {} s", rank_,
                          static_cast<double>(attempts * limits_.patience.count()) / 1000),
        {.rank = rank_});
  }
  // Messages to a rank that had stopped may be lost: it must not go on alone.
  fail_if_left_out(late);
  std::vector<int> members;
  for (int r = 0; r < size_; ++r)
    if (group_[static_cast<std::size_t>(r)]) members.push_back(r);
  return members;
}

}  // namespace baton::communicator
