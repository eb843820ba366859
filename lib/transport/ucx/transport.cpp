#include <fmt/core.h>
#include <sched.h>

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../../base/raise.hpp"
#include "../groups.hpp"
#include "../idle_turns.hpp"
#include "../last_polls.hpp"
#include "../tcp/meeting.hpp"
#include "baton/ucx.hpp"
#include "check.hpp"
#include "message.hpp"
#include "world.hpp"

namespace baton {
namespace {

using namespace ucx;
using tcp::Bytes;
static_assert(most_ranks == tcp::most_ranks);

class UcxTransport final : public transport::WorldGroup {
 public:
  /// `members`: the world's rank of each rank of the group.
  UcxTransport(std::shared_ptr<World> world, std::uint32_t context, int rank,
               std::vector<int> members)
      : WorldGroup(context, rank, std::move(members), user_tags),
        world_(std::move(world)),
        hosts_(hosts_among(world_->hosts())) {
    sending_.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    sending_.user_data = world_.get();
    sending_.cb.send = [](void* request, ucs_status_t, void* world) {
      static_cast<World*>(world)->completed(request);
    };
    receiving_ = sending_;
    // If a receive completes at once, UCX 1.13 does not tell its length.
    receiving_.op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
    receiving_.cb.recv = [](void* request, ucs_status_t, const ucp_tag_recv_info_t*, void* world) {
      static_cast<World*>(world)->completed(request);
    };
  }

  Capabilities capabilities() const override {
    unsigned major = 0, minor = 0, release = 0;
    ucp_get_version(&major, &minor, &release);
    return {.name = "ucx",
            .library = fmt::format("UCX {}.{}.{}", major, minor, release),
            .tags = user_tags,
            .concurrent = world_->concurrent(),
            .cancels = false,  // sends cannot be cancelled
            .spins = world_->crowded() ? 64 : 2048,
            .device_memory = world_->takes_cuda_memory(),
            .probes = true,
            .subgroups = true,
            .hosts = hosts_,
            .cores = world_->cores()};
  }

  void isend(int peer, int tag, const void* data, std::size_t bytes, Message& message) override {
    assert(peer >= 0 && peer < size());
    const auto turn = world_->turn();
    auto& send = *new (message.state) Pending{nullptr, bytes, peer, false};
    const int to = member(peer);
    if (world_->gone(to) != UCS_OK) [[unlikely]]
      fail(world_->gone(to), "a send", rank_, peer);
    void* request = ucp_tag_send_nbx(world_->endpoint(to), data, bytes,
                                     tag_of(context_, rank_, tag), &sending_);
    if (UCS_PTR_IS_ERR(request)) [[unlikely]]
      fail(UCS_PTR_STATUS(request), "ucp_tag_send_nbx", rank_, peer);
    send.request = request;
  }

  void irecv(int peer, int tag, void* data, std::size_t bytes, Message& message) override {
    assert(peer >= 0 && peer < size());
    const auto turn = world_->turn();
    auto& recv = *new (message.state) Pending{nullptr, bytes, peer, true};
    void* request = ucp_tag_recv_nbx(world_->worker(), data, bytes, tag_of(context_, peer, tag),
                                     ~ucp_tag_t{0}, &receiving_);
    if (UCS_PTR_IS_ERR(request)) [[unlikely]]
      fail(UCS_PTR_STATUS(request), "ucp_tag_recv_nbx", rank_, peer);
    recv.request = request;
  }

  bool test(Message& message, std::size_t& bytes) override {
    Pending& pending = pending_in(message);
    const auto turn = world_->turn();
    if (pending.request != nullptr) {
      ucp_tag_recv_info_t info{};
      ucs_status_t status = status_of(pending, info);
      if (status == UCS_INPROGRESS) {
        const unsigned events = ucp_worker_progress(world_->worker());
        status = status_of(pending, info);
        if (status == UCS_INPROGRESS) {
          if (events == 0) check_peer(pending);
          return false;
        }
      }
      ucp_request_free(std::exchange(pending.request, nullptr));
      if (pending.receive)
        pending.bytes = length(status, info, pending);
      else
        check(status, "ucp_tag_send_nbx", rank_, pending.peer);
    }
    turns_.reset();
    bytes = pending.bytes;
    return true;
  }

  void cancel(Message& message) override {
    Pending& pending = pending_in(message);
    const auto turn = world_->turn();
    if (pending.request == nullptr) return;
    // An unmatched receive is complete after this. A message under way may still complete.
    if (pending.receive) ucp_request_cancel(world_->worker(), pending.request);
    for (transport::LastPolls polls; polls.again();) {
      if (ucp_request_check_status(pending.request) != UCS_INPROGRESS) break;
      if (ucp_worker_progress(world_->worker()) == 0) sched_yield();
    }
    void* request = std::exchange(pending.request, nullptr);
    if (pending.receive && ucp_request_check_status(request) == UCS_INPROGRESS)
      world_->give_up(request, members_[static_cast<std::size_t>(pending.peer)]);
    else
      ucp_request_free(request);
  }

  void progress() override {
    const auto turn = world_->turn();
    ucp_worker_progress(world_->worker());
  }

  int probe(int tag) override {
    const auto turn = world_->turn();
    ucp_worker_progress(world_->worker());
    ucp_tag_recv_info_t info{};
    if (ucp_tag_probe_nb(world_->worker(), tag_of(context_, 0, tag), any_source, 0, &info) ==
        nullptr)
      return -1;
    return source_of(info.sender_tag);
  }

  void idle(std::chrono::microseconds at_most) override {
    auto turn = world_->turn();
    const bool something = ucp_worker_progress(world_->worker()) != 0;
    if (something || world_->completions() != seen_) {
      seen_ = world_->completions();
      return;
    }
    switch (turns_.next(world_->crowded())) {
      case Turn::returns:
        return;
      case Turn::blocks:
        return world_->block(at_most, turn);
      case Turn::yields:
        break;
    }
    if (turn) turn.unlock();
    sched_yield();
  }

 private:
  std::unique_ptr<Transport> group(std::uint32_t context, int rank,
                                   std::vector<int> members) override {
    return std::make_unique<UcxTransport>(world_, context, rank, std::move(members));
  }
  void with_contexts(const std::function<void(transport::Contexts&)>& use) override {
    const auto turn = world_->turn();
    use(world_->contexts);
  }
  bool concurrent() const override { return world_->concurrent(); }

  static ucs_status_t status_of(const Pending& pending, ucp_tag_recv_info_t& info) {
    return pending.receive ? ucp_tag_recv_request_test(pending.request, &info)
                           : ucp_request_check_status(pending.request);
  }

  /// The length of a received message. Throws failures, except for a message longer than its room.
  std::size_t length(ucs_status_t status, const ucp_tag_recv_info_t& info,
                     const Pending& pending) const {
    if (status == UCS_ERR_MESSAGE_TRUNCATED) return std::max(info.length, pending.bytes + 1);
    check(status, "ucp_tag_recv_nbx", rank_, pending.peer);
    return info.length;
  }

  /// Throws if the message can no longer complete.
  void check_peer(Pending& pending) const {
    const ucs_status_t gone = world_->gone(members_[static_cast<std::size_t>(pending.peer)]);
    if (gone == UCS_OK) [[likely]]
      return;
    if (pending.receive) ucp_request_cancel(world_->worker(), pending.request);
    ucp_request_free(std::exchange(pending.request, nullptr));
    fail(gone, pending.receive ? "a receive" : "a send", rank_, pending.peer);
  }

  using Turn = transport::IdleTurns::Turn;

  std::shared_ptr<World> world_;
  std::vector<int> hosts_;
  ucp_request_param_t sending_{}, receiving_{};
  std::uint64_t seen_ = 0;  // the world's completions when idle() last returned
  transport::IdleTurns turns_;
};

std::unique_ptr<Transport> transport_of(int rank, int size, const Exchange& exchange,
                                        const UcxOptions& options) {
  transport::check_meeting("a UCX transport", rank, size, most_ranks, exchange);
  std::vector<int> members(static_cast<std::size_t>(size));
  std::iota(members.begin(), members.end(), 0);
  return std::make_unique<UcxTransport>(std::make_shared<World>(rank, size, exchange, options), 1,
                                        rank, std::move(members));
}

}  // namespace

std::unique_ptr<Transport> ucx_transport(Transport& bootstrap, const UcxOptions& options) {
  return transport_of(
      bootstrap.rank(), bootstrap.size(),
      [&](const Bytes& own) { return transport::exchange_through(bootstrap, own); }, options);
}

std::unique_ptr<Transport> ucx_transport(int rank, int size, const std::string& address,
                                         const UcxOptions& options) {
  return ucx_transport(
      rank, size,
      [&](const Bytes& own) { return tcp::exchange_at(address, rank, size, own, options.meeting); },
      options);
}

std::unique_ptr<Transport> ucx_transport(int rank, int size, const Exchange& exchange,
                                         const UcxOptions& options) {
  return transport_of(rank, size, exchange, options);
}

}  // namespace baton
