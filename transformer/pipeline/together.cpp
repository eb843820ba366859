#include "together.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "baton/error.hpp"
#include "baton/transport.hpp"
#include "baton/wait.hpp"

namespace baton::transformer {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int tag = 1023;
constexpr Axis axes_of_stages[] = {Axis::dp, Axis::tp, Axis::sp};

/// The first word of a message; the second one is the number of the pass.
enum Kind : std::int64_t {
  has_failed,  ///< its place along each axis, the collectives that it has started in each group
  described,   ///< group, number in this group, description
  has_ended,   ///< it starts nothing more of its own
};

}  // namespace

Together* Together::of(const Mesh& mesh) {
  if (!mesh.together_ && mesh.along(Axis::dp | Axis::tp | Axis::sp))
    mesh.together_ = std::shared_ptr<Together>(new Together(mesh));
  return mesh.together_.get();
}

Together::Together(const Mesh& mesh)
    : place_{mesh.rank(Axis::dp), mesh.rank(Axis::tp), mesh.rank(Axis::sp)},
      all_(*mesh.along(Axis::dp | Axis::tp | Axis::sp)),
      transport_(all_.transport()) {
  for (unsigned set = 1; set <= most_groups; ++set) {
    Members members;
    for (unsigned a = 0; a < std::size(axes_of_stages); ++a)
      if ((set >> a & 1u) != 0) members.axes = members.axes | axes_of_stages[a];
    members.ranks = mesh.along(members.axes);
    const bool is_new = std::none_of(groups_.begin(), groups_.end(), [&](const Members& other) {
      return other.ranks == members.ranks;
    });
    if (members.ranks && is_new) groups_.push_back(std::move(members));
  }
  for (int rank = 0; rank < all_.size(); ++rank)
    if (rank != all_.rank()) peers_.emplace_back().rank = rank;
}

Together::~Together() {
  give_up();
  if (!transport_.alive()) return;
  try {
    for (Peer& peer : peers_)
      if (peer.listens) transport_.cancel(peer.message);  // nobody has sent to it
  } catch (const std::exception&) {
    // A destructor cannot report it.
  }
}

void Together::begin() {
  ++pass_;
  failed_ = ended_ = broken_ = false;
  for (Members& group : groups_) {
    group.started = 0;
    group.words.clear();
    group.begins.clear();
  }
  for (Peer& peer : peers_) {
    peer.failed = peer.ended = false;
    peer.member = {};
    if (!peer.listens && !peer.coming.empty()) act(peer);  // its pass began earlier
    if (!peer.listens) listen(peer);
  }
}

void Together::listen(Peer& peer) {
  transport_.irecv(peer.rank, tag, peer.piece.data(), sizeof peer.piece, peer.message);
  peer.listens = true;
}

/// Calls what may find a communicator's failure.
template <class F>
auto Together::watched(const F& function) {
  try {
    return function();
  } catch (const Error& error) {
    broken_ = broken_ || error.code == ErrorCode::transport || error.code == ErrorCode::timeout ||
              error.code == ErrorCode::truncated;
    throw;
  }
}

Request Together::start(Communicator& ranks, const Call& call) {
  Request request = watched([&] { return ranks.start(call); });
  const auto found = std::find_if(groups_.begin(), groups_.end(),
                                  [&](const Members& group) { return group.ranks == &ranks; });
  if (found == groups_.end()) return request;
  ++found->started;
  found->begins.push_back(found->words.size());
  describe(call, found->words);
  const auto group = static_cast<std::size_t>(found - groups_.begin());
  for (Peer& peer : peers_)
    if (peer.failed) describe_to(peer, group);
  return request;
}

void Together::wait(Request& request) {
  watched([&] { baton::wait(request, [this] { poll(); }); });
}

void Together::settle(Request& request) noexcept {
  try {
    if (!broken_ && !request.done()) wait(request);
  } catch (const std::exception&) {
    // The exception that is on its way is thrown.
  }
}

void Together::fail() {
  failed_ = true;
  std::vector<std::int64_t> words{has_failed, pass_};
  words.insert(words.end(), place_.begin(), place_.end());
  for (const Members& group : groups_) words.push_back(group.started);
  const std::int64_t end[] = {has_ended, pass_};
  for (const Peer& peer : peers_) {
    send(peer, words);
    if (peer.failed) send(peer, end);
  }
}

void Together::finish() {
  const std::int64_t end[] = {has_ended, pass_};
  if (!failed_) {
    for (const Peer& peer : peers_)
      if (peer.failed) send(peer, end);
  }
  ended_ = true;
  if (!failed_) return;
  const auto all_have_ended = [&] {
    return std::all_of(peers_.begin(), peers_.end(), [](const Peer& peer) { return peer.ended; });
  };
  const std::chrono::milliseconds timeout = all_.options().timeout;
  auto last = Clock::now();
  std::size_t before = joined_.size();
  arrived_ = 0;
  for (poll(); !all_have_ended() || !joined_.empty(); poll()) {
    if (std::exchange(arrived_, 0) > 0 || std::exchange(before, joined_.size()) != joined_.size()) {
      last = Clock::now();
    } else if (timeout.count() > 0 && Clock::now() - last > timeout) {
      broken_ = true;
      throw Error(
          ErrorCode::timeout,
          fmt::format("rank {} waits for the others to end the pass in which it has failed, "
                      "without progress for {} s",
                      all_.rank(), static_cast<double>(timeout.count()) / 1000));
    }
    all_.progress();
    transport_.idle(std::chrono::microseconds(200));
  }
}

void Together::end() {
  for (; !outgoing_.empty(); poll()) transport_.idle(std::chrono::microseconds(200));
}

void Together::poll() {
  watched([&] {
    std::size_t bytes = 0;
    for (Peer& peer : peers_) {
      while (peer.listens && transport_.test(peer.message, bytes)) {
        peer.listens = false;
        take(peer);
        if (peer.coming.size() < 2 || peer.coming[1] <= pass_) listen(peer);
      }
    }
    for (Outgoing& out : outgoing_)
      if (out.under_way) out.under_way = !transport_.test(out.message, bytes);
    while (!outgoing_.empty() && !outgoing_.front().under_way) outgoing_.pop_front();
    while (!joined_.empty() && joined_.front().request().test()) joined_.pop_front();
  });
}

void Together::send(const Peer& peer, std::span<const std::int64_t> words) {
  while (true) {
    Outgoing& out = outgoing_.emplace_back();
    const std::size_t some = std::min(words.size(), piece_words - 1);
    out.piece[0] = static_cast<std::int64_t>(words.size());
    std::copy_n(words.begin(), some, out.piece.begin() + 1);
    transport_.isend(peer.rank, tag, out.piece.data(), (some + 1) * sizeof out.piece[0],
                     out.message);
    words = words.subspan(some);
    if (words.empty()) return;
  }
}

/// Acts on the piece that has come.
void Together::take(Peer& peer) {
  ++arrived_;
  const auto rest = static_cast<std::size_t>(peer.piece[0]);
  const std::size_t some = std::min(rest, piece_words - 1);
  peer.coming.insert(peer.coming.end(), peer.piece.begin() + 1, peer.piece.begin() + 1 + some);
  if (some == rest && peer.coming[1] <= pass_) act(peer);
}

/// Acts on the message that has come.
void Together::act(Peer& peer) {
  const std::vector<std::int64_t> words = std::exchange(peer.coming, {});
  const std::span<const std::int64_t> all(words);
  if (words[1] < pass_) return;  // of a pass that an exception ended
  switch (words[0]) {
    case has_failed: {
      peer.failed = true;
      for (std::size_t g = 0; g < groups_.size(); ++g) {
        peer.member[g] = true;
        for (std::size_t a = 0; a < std::size(axes_of_stages); ++a) {
          const bool same = words[2 + a] == place_[a];
          peer.member[g] = peer.member[g] && (same || groups_[g].axes.has(axes_of_stages[a]));
        }
        peer.next[g] = words[2 + std::size(axes_of_stages) + g];
        describe_to(peer, g);
      }
      const std::int64_t end[] = {has_ended, pass_};
      if (failed_ || ended_) send(peer, end);
      break;
    }
    case described: {
      Members& group = groups_[static_cast<std::size_t>(words[2])];
      if (words[3] != group.started) break;  // another rank has described it
      joined_.emplace_back(*group.ranks, all.subspan(4));
      ++group.started;
      break;
    }
    default:
      peer.ended = true;
  }
}

/// Those of this rank's own that it has not started.
void Together::describe_to(Peer& peer, std::size_t group) {
  const Members& its = groups_[group];
  if (!peer.member[group]) return;
  for (auto i = static_cast<std::size_t>(peer.next[group]); i < its.begins.size(); ++i) {
    std::vector<std::int64_t> words{described, pass_, static_cast<std::int64_t>(group),
                                    static_cast<std::int64_t>(i)};
    const std::size_t end = i + 1 < its.begins.size() ? its.begins[i + 1] : its.words.size();
    words.insert(words.end(), its.words.begin() + static_cast<std::ptrdiff_t>(its.begins[i]),
                 its.words.begin() + static_cast<std::ptrdiff_t>(end));
    send(peer, words);
    peer.next[group] = static_cast<std::int64_t>(i) + 1;
  }
}

void Together::give_up() noexcept {
  if (outgoing_.empty() && joined_.empty()) return;
  try {
    for (Outgoing& out : outgoing_)
      if (out.under_way) transport_.cancel(out.message);
  } catch (const std::exception&) {
    // The transport has failed, and its caller is told elsewhere.
  }
  outgoing_.clear();
  joined_.clear();
}

}  // namespace baton::transformer
