#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "../execute/marker_pool.hpp"
#include "../execute/plan_cache.hpp"
#include "../execute/run_fused.hpp"
#include "../execute/scratch_pool.hpp"
#include "baton/error.hpp"
#include "baton/fused_transport.hpp"

namespace baton {

/// Calls that were given to a device's streams as a whole, the oldest first. What they need of
/// scratch they have until a marker behind them has been passed; a later call in the same stream
/// may have it before.
class FusedCalls {
 public:
  /// Device and pool outlive this.
  FusedCalls(Device& device, ScratchPool& pool, std::unique_ptr<FusedTransport> transport)
      : device_(device),
        pool_(pool),
        transport_(std::move(transport)),
        queue_(device, *transport_) {}
  ~FusedCalls();

  FusedTransport& transport() { return *transport_; }

  /// Gives a plan to a stream. `tensors` are the base addresses of input and output; of a barrier,
  /// whose token is the host's, none. `watched`: wait() shall find out how far it is.
  void give(const CachedPlan& plan, const Kernels& kernels, std::span<std::byte* const> tensors,
            Stream stream, const char* what, std::uint64_t number, bool watched);
  /// Forgets calls that are complete. Throws what went wrong in any.
  void reap();
  /// Returns when all are complete. Throws what went wrong; Error(timeout) where the oldest call
  /// has begun, is watched, and came no further for so long (0: for ever).
  void wait(std::chrono::milliseconds timeout);
  /// Lets all streams go on. Scratch of what is under way is kept for good.
  void give_up() noexcept;

 private:
  struct Given {
    std::shared_ptr<const Plan> plan;
    const char* what;
    std::uint64_t number;
    Stream stream;
    std::byte* block;
    std::size_t bytes;
    /// One behind all; where the call is watched, also one before all and one behind each group.
    std::vector<std::unique_ptr<Marker>> markers;
    std::size_t passed = 0;  // of these

    bool watched() const { return markers.size() > 1; }
  };

  std::byte* take_block(Stream stream, std::size_t bytes);
  /// Throws `error` in the name of the oldest call.
  [[noreturn]] void fail(const Error& error) const;
  [[noreturn]] void fail_timeout(std::chrono::milliseconds timeout) const;

  Device& device_;
  ScratchPool& pool_;
  std::unique_ptr<FusedTransport> transport_;
  FusedQueue queue_;
  std::deque<Given> calls_;
  MarkerPool markers_;
};

}  // namespace baton
