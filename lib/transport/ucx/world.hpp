#pragma once
/// Shared by all groups of a process: a worker, and an endpoint to each rank.

#include <sys/types.h>
#include <ucp/api/ucp.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "../groups.hpp"
#include "../place.hpp"
#include "../process.hpp"
#include "baton/ucx.hpp"
#include "message.hpp"

namespace baton::ucx {

/// Ranks are those of the first group, which was bootstrapped.
class World {
 public:
  /// Collective: connects to all ranks. `exchange` brings their addresses.
  World(int rank, int size, const Exchange& exchange, const UcxOptions& options);
  /// Returns when the others have received everything sent to them, or after `farewell`.
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  bool concurrent() const { return options_.concurrent; }
  /// The lock that a group holds while it uses the worker. Locks nothing if one thread uses all
  /// groups.
  std::unique_lock<std::mutex> turn() {
    return concurrent() ? std::unique_lock(mutex_) : std::unique_lock<std::mutex>();
  }
  ucp_worker_h worker() const { return worker_.get(); }
  ucp_ep_h endpoint(int rank) const { return peers_[static_cast<std::size_t>(rank)].endpoint; }
  std::span<const int> hosts() const { return hosts_; }
  bool crowded() const { return crowded_; }
  int cores() const { return cores_; }
  bool takes_cuda_memory() const;

  /// The reason why this rank sends nothing more; UCS_OK: it may.
  ucs_status_t gone(int rank) const { return peers_[static_cast<std::size_t>(rank)].gone; }

  /// The number of completed messages. Any call of the worker may notice a completion.
  std::uint64_t completions() const { return completions_; }
  void completed(const void* request) {
    ++completions_;
    if (blocked_ > 0) [[unlikely]]
      ucp_worker_signal(worker());
    if (!given_up_.empty()) [[unlikely]]
      settle(request);
  }

  /// Takes over a receive from this rank that was abandoned midway.
  void give_up(void* receive, int rank) { given_up_.push_back({receive, rank}); }

  /// Blocks until the worker has work, another thread has completed a message, or the time has
  /// passed. Other threads take their turns meanwhile.
  void block(std::chrono::microseconds at_most, std::unique_lock<std::mutex>& turn);

  /// 0 is for farewells, 1 for the first group.
  transport::Contexts contexts{.next = 2, .end = ucx::contexts};

 private:
  struct Release {
    void operator()(ucp_context_h context) const { ucp_cleanup(context); }
    void operator()(ucp_worker_h worker) const { ucp_worker_destroy(worker); }
  };
  struct Peer {
    World* world;
    int rank;
    transport::ProcessId process;
    ucp_ep_h endpoint = nullptr;
    ucs_status_t gone = UCS_OK;
    bool over = false;      ///< broken or dismissed: messages under way from it may never come
    bool ended = false;     ///< its process has ended, as the system says; known while leaving
    bool has_all = false;   ///< this rank has sent it before leaving
    void* awaited[2] = {};  ///< receives of its control messages
  };

  struct GivenUp {
    void* request;
    int rank;
  };

  struct Contact {
    transport::Place place;
    transport::ProcessId process;
  };
  std::vector<std::byte> contact() const;
  /// `near`: on this machine.
  void connect(Peer& peer, std::span<const std::byte> address, bool near);
  void control(Peer& peer, int kind);
  template <auto Then>
  void await_control(Peer& peer, int kind);
  static void on_bye(Peer& from);
  static void on_received(Peer& from);
  void answer(Peer& peer);
  void settle(const void* request);
  template <class Done>
  void progress_until(std::chrono::steady_clock::time_point end, const Done& done);
  void dismiss_ended();
  void leave();
  void take_back() noexcept;

  int rank_;
  pid_t process_;
  UcxOptions options_;
  std::unique_ptr<ucp_context, Release> context_;
  std::unique_ptr<ucp_worker, Release> worker_;
  int wakeup_ = -1;  // the worker's file descriptor
  std::vector<Peer> peers_;
  std::vector<GivenUp> given_up_;
  std::vector<int> hosts_;
  bool crowded_ = false;
  int cores_ = 0;
  bool leaving_ = false;
  std::uint64_t completions_ = 0;
  std::mutex mutex_;
  int blocked_ = 0;  // threads in block()
};

}  // namespace baton::ucx
