#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../base/marker_pool.hpp"
#include "../execute/run_fused.hpp"
#include "baton/error.hpp"
#include "baton/fused_transport.hpp"
#include "device_calls.hpp"
#include "launcher.hpp"

namespace baton::communicator {

/// Calls enqueued as a whole in a device's streams. A marker behind each call protects its scratch
/// from other streams; a later call in the same stream may reuse the scratch at once.
class FusedCalls final : public DeviceCalls {
 public:
  FusedCalls(State& state, std::shared_ptr<Device> device,
             std::unique_ptr<FusedTransport> transport);
  ~FusedCalls() override;

  void enqueue(const Call& call, Stream stream) override;
  void exchange(std::span<const StreamMessage> messages,
                const std::function<bool()>& others_came) override;
  void check() override;
  void interrupt() noexcept override { transport_->interrupt(); }
  void abort() noexcept override;
  void synchronize() override;
  std::unique_ptr<DeviceCalls> split(State* part, int color, int key) override;

 private:
  struct Given {
    std::shared_ptr<const execute::Plan> plan;
    const char* name;
    std::uint64_t number;
    Stream stream;
    std::byte* block;  // scratch
    std::size_t bytes;
    /// One behind the call. With a timeout, also one before it and one behind each fused group.
    std::vector<std::unique_ptr<Marker>> markers;
    std::uint64_t place = 0;  // on the rank's page
    std::size_t passed = 0;   // markers passed

    bool watched() const { return markers.size() > 1; }
  };

  /// Compares the call among all ranks; `wrong`: this rank's own error. Throws the verdict.
  void compare(const Choice& choice, const Error* wrong, int tag);
  void give(const Work& work, Stream stream);
  std::byte* take_block(Stream stream, std::size_t bytes);
  /// Forgets complete calls. Throws their first failure.
  void reap();
  /// Returns when all calls are complete. Throws their failures, and Error(timeout) if the oldest
  /// call has begun and made no progress for Options::timeout.
  void wait();
  /// wait(), inside a call.
  void synchronize_in_use();
  /// Releases all streams, refuses further calls, and throws. Never reuses the scratch of calls
  /// under way.
  [[noreturn]] void give_up(const Error& error);
  /// The oldest call does not complete.
  Error hung() const;
  std::pair<std::string, int> waits_for() const;  // and the peer; -1: none
  Error named(const Error& error) const;

  const std::unique_ptr<FusedTransport> transport_;
  execute::FusedQueue fused_queue_;
  std::deque<Given> calls_;  // calls under way, oldest first
  base::MarkerPool markers_;
};

}  // namespace baton::communicator
