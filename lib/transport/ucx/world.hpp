#pragma once
/// What all groups of one process share: a worker, and an endpoint to each rank.

#include <ucp/api/ucp.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "baton/ucx.hpp"

namespace baton::ucx {

using Bytes = std::vector<std::byte>;

/// Gives all ranks' blocks, in rank order, for this rank's own. Blocks may differ in length.
using Exchange = std::function<std::vector<Bytes>(const Bytes& own)>;

/// Ranks here are those of the first group, the one that was bootstrapped.
class World {
 public:
  /// Collective: connects to all ranks, whose addresses `exchange` brings.
  World(int rank, int size, const Exchange& exchange, const UcxOptions& options);
  /// Returns when the others have all that was sent to them, or `farewell` has passed.
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  bool concurrent() const { return options_.concurrent; }
  /// What every use of the worker by a group holds. Locks nothing where one thread uses them all.
  std::unique_lock<std::mutex> turn() {
    return concurrent() ? std::unique_lock(mutex_) : std::unique_lock<std::mutex>();
  }
  ucp_worker_h worker() const { return worker_.get(); }
  ucp_ep_h endpoint(int rank) const { return peers_[static_cast<std::size_t>(rank)].endpoint; }
  std::span<const int> hosts() const { return hosts_; }
  bool crowded() const { return crowded_; }
  bool takes_cuda_memory() const;

  /// Why nothing will come from this rank any more; UCS_OK: it may.
  ucs_status_t gone(int rank) const { return peers_[static_cast<std::size_t>(rank)].gone; }

  /// Counts the messages that were completed. Completion is noticed in any call of the worker.
  std::uint64_t completions() const { return completions_; }
  void completed(const void* request) {
    ++completions_;
    if (blocked_ > 0) [[unlikely]]
      ucp_worker_signal(worker());
    if (!given_up_.empty()) [[unlikely]]
      settle(request);
  }

  /// Takes over a receive from this rank that was given up amid its message.
  void give_up(void* receive, int rank) { given_up_.push_back({receive, rank}); }

  /// Blocks until the worker has something to do, another thread has completed a message, or the
  /// time has passed. Other threads have their turns meanwhile.
  void block(std::chrono::microseconds at_most, std::unique_lock<std::mutex>& turn);

  /// Contexts below this one were given to groups; 0 is the farewell's.
  std::uint32_t next_context = 2;

 private:
  struct Release {
    void operator()(ucp_context_h context) const { ucp_cleanup(context); }
    void operator()(ucp_worker_h worker) const { ucp_worker_destroy(worker); }
  };
  struct Peer {
    World* world;
    int rank;
    ucp_ep_h endpoint = nullptr;
    ucs_status_t gone = UCS_OK;
    bool over = false;      ///< broken, or let go: what is under way from there may never come
    bool has_all = false;   ///< that this rank sent it before leaving
    void* awaited[2] = {};  ///< receives of its control messages
  };

  struct GivenUp {
    void* request;
    int rank;
  };

  Bytes contact() const;
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
  void leave();
  void take_back() noexcept;

  int rank_;
  UcxOptions options_;
  std::unique_ptr<ucp_context, Release> context_;
  std::unique_ptr<ucp_worker, Release> worker_;
  int wakeup_ = -1;  // a file descriptor of the worker's
  std::vector<Peer> peers_;
  std::vector<GivenUp> given_up_;
  std::vector<int> hosts_;
  bool crowded_ = false;
  bool leaving_ = false;
  std::uint64_t completions_ = 0;
  std::mutex mutex_;
  int blocked_ = 0;  // threads in block()
};

}  // namespace baton::ucx
