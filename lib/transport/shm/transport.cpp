#include <fmt/core.h>
#include <sched.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "../../base/raise.hpp"
#include "../groups.hpp"
#include "../idle_turns.hpp"
#include "../tcp/meeting.hpp"
#include "baton/shm.hpp"
#include "message.hpp"
#include "world.hpp"

namespace baton {
namespace {

using namespace shm;
using Bytes = std::vector<std::byte>;

class ShmTransport final : public transport::WorldGroup, public SingleCopy, public Giving {
 public:
  /// `members`: the world's rank of each rank of the group.
  ShmTransport(std::shared_ptr<World> world, std::uint32_t context, int rank,
               std::vector<int> members)
      : WorldGroup(context, rank, std::move(members), user_tags),
        world_(std::move(world)),
        hosts_(hosts_among(transport::hosts_in(world_->places()))) {}
  ~ShmTransport() override {
    const auto turn = world_->turn();
    world_->forget([&](const Arrival& a) { return a.key.context == context_; });
  }

  Capabilities capabilities() const override {
    return {.name = "shm",
            .library = {},
            .tags = user_tags,
            .concurrent = world_->concurrent(),
            .spins = world_->crowded() ? 2 : 2048,
            .probes = true,
            .subgroups = true,
            .hosts = hosts_,
            .cores = transport::shared_cores(world_->places())};
  }

  void isend(int peer, int tag, const void* data, std::size_t bytes, Message& message) override {
    const auto turn = world_->turn();
    Entry& send = start(peer, tag, const_cast<void*>(data), bytes, message);
    if (world_->left(send.peer)) [[unlikely]]
      fail_left(peer);
    world_->send(send);
  }

  void irecv(int peer, int tag, void* data, std::size_t bytes, Message& message) override {
    const auto turn = world_->turn();
    Entry& receive = start(peer, tag, data, bytes, message);
    world_->receive(receive, nullptr);
  }

  bool test(Message& message, std::size_t& bytes) override {
    Entry& entry = entry_in(message);
    const auto turn = world_->turn();
    switch (tested(entry)) {
      case World::Outcome::pending:
        return false;
      case World::Outcome::done:
        break;
      case World::Outcome::failed:
        fail(entry);
      case World::Outcome::left:
        fail_left(group_rank(entry.peer));
    }
    turns_.reset();
    bytes = entry.bytes;
    return true;
  }

  void cancel(Message& message) override {
    const auto turn = world_->turn();
    world_->cancel(entry_in(message));
  }

  void progress() override {
    const auto turn = world_->turn();
    world_->progress();
  }

  int probe(int tag) override {
    const auto turn = world_->turn();
    const int source = world_->probe(context_, members_, tag);
    return source < 0 ? source : group_rank(source);
  }

  void idle(std::chrono::microseconds at_most) override {
    auto turn = world_->turn();
    const std::uint32_t rings = world_->rings();
    if (world_->progress() || world_->events() != seen_events_ || rings != seen_rings_) {
      seen_events_ = world_->events();
      seen_rings_ = rings;
      if (!world_->crowded()) turns_.reset();  // a long message may take many turns
      return;
    }
    using Turn = transport::IdleTurns::Turn;
    switch (turns_.next(world_->crowded())) {
      case Turn::returns:
        return;
      case Turn::blocks:
        return world_->block(rings, at_most, turn);
      case Turn::yields:
        break;
    }
    if (turn) turn.unlock();
    sched_yield();
  }

  SingleCopy* single_copy() override { return this; }
  Giving* giving() override { return this; }
  // Up to the eager size, the receiver takes a message from the ring: a fold needs no second
  // buffer.
  std::size_t least_bytes() const override { return 256; }
  bool reads(int peer) const override { return world_->reads(member(peer)); }
  void offer(int peer, int tag, const void* data, std::size_t bytes, Message& message) override {
    isend(peer, tag, data, bytes, message);
  }
  void fetch(int peer, int tag, const Destination& to, std::size_t bytes,
             Message& message) override {
    if (!to.take) return irecv(peer, tag, to.data, bytes, message);
    const auto turn = world_->turn();
    Entry& receive = start(peer, tag, nullptr, bytes, message);
    receive.fetch = true;
    world_->receive(receive, &to);
  }
  bool gives(int peer, std::size_t unit) const override {
    return world_->gives(member(peer), unit);
  }
  void give(int peer, int tag, const Source& from, std::size_t bytes, Message& message) override {
    const auto turn = world_->turn();
    Entry& send = start(peer, tag, const_cast<Source*>(&from), bytes, message);
    send.given = true;
    if (world_->left(send.peer)) [[unlikely]]
      fail_left(peer);
    world_->send(send);
  }

 private:
  static constexpr int user_tags = std::numeric_limits<int>::max() - transport::group_tags;

  int group_rank(int member) const {
    return static_cast<int>(std::ranges::find(members_, member) - members_.begin());
  }

  Entry& start(int peer, int tag, void* data, std::size_t bytes, Message& message) {
    assert(peer >= 0 && peer < size());
    return *new (message.state) Entry{.next = nullptr,
                                      .data = static_cast<std::byte*>(data),
                                      .bytes = bytes,
                                      .context = context_,
                                      .peer = member(peer),
                                      .tag = tag,
                                      .slot = 0,
                                      .state = Entry::State::done,
                                      .fetch = false,
                                      .given = false};
  }

  std::unique_ptr<Transport> group(std::uint32_t context, int rank,
                                   std::vector<int> members) override {
    return std::make_unique<ShmTransport>(world_, context, rank, std::move(members));
  }
  void with_contexts(const std::function<void(transport::Contexts&)>& use) override {
    const auto turn = world_->turn();
    use(world_->contexts);
  }
  bool concurrent() const override { return world_->concurrent(); }

  /// World::test(); a message is released also where memory is missing.
  World::Outcome tested(Entry& entry) {
    try {
      return world_->test(entry);
    } catch (...) {
      world_->cancel(entry);
      throw;
    }
  }

  [[noreturn]] void fail_left(int peer) const {
    base::raise(ErrorCode::transport,
                fmt::format("rank {}: a message with rank {} was expected, but that rank has left",
                            rank_, peer),
                {.rank = rank_, .peer = peer});
  }
  [[noreturn]] void fail(Entry& entry) const {
    if (entry.bytes == thrown) std::rethrow_exception(world_->exception_of(entry));
    const int peer = group_rank(entry.peer);
    if (entry.bytes == peer_gave_up)
      base::raise(ErrorCode::transport,
                  fmt::format("rank {}: a message with rank {} was expected, but that rank gave it "
                              "up midway",
                              rank_, peer),
                  {.rank = rank_, .peer = peer});
    const int code = static_cast<int>(entry.bytes);
    base::raise(
        ErrorCode::transport,
        fmt::format("rank {}: expected to read rank {}'s memory, but process_vm_readv said: "
                    "{}",
                    rank_, peer, std::strerror(code)),
        {.rank = rank_, .peer = peer, .backend_code = code, .backend_text = std::strerror(code)});
  }

  std::shared_ptr<World> world_;
  std::vector<int> hosts_;
  std::uint64_t seen_events_ = 0;  // when idle() last returned
  std::uint32_t seen_rings_ = 0;
  transport::IdleTurns turns_;
};

std::unique_ptr<Transport> transport_of(int rank, int size, const Exchange& exchange,
                                        const ShmOptions& options) {
  transport::check_meeting("a shared memory transport", rank, size, most_ranks, exchange);
  const auto world = std::make_shared<World>(rank, size, exchange, options);
  std::vector<int> members(static_cast<std::size_t>(size));
  std::iota(members.begin(), members.end(), 0);
  return std::make_unique<ShmTransport>(world, 0, rank, std::move(members));
}

}  // namespace

std::unique_ptr<Transport> shm_transport(Transport& bootstrap, const ShmOptions& options) {
  return transport_of(
      bootstrap.rank(), bootstrap.size(),
      [&](const Bytes& own) { return transport::exchange_through(bootstrap, own); }, options);
}

std::unique_ptr<Transport> shm_transport(int rank, int size, const std::string& address,
                                         const ShmOptions& options) {
  return shm_transport(
      rank, size,
      [&](const Bytes& own) { return tcp::exchange_at(address, rank, size, own, options.meeting); },
      options);
}

std::unique_ptr<Transport> shm_transport(int rank, int size, const Exchange& exchange,
                                         const ShmOptions& options) {
  return transport_of(rank, size, exchange, options);
}

}  // namespace baton
