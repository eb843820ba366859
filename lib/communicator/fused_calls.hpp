#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "../base/marker_pool.hpp"
#include "../execute/run_fused.hpp"
#include "baton/error.hpp"
#include "baton/fused_transport.hpp"
#include "device_calls.hpp"
#include "launcher.hpp"

namespace baton::communicator {

/// Calls given to the device's streams as a whole. A call has its scratch until a marker behind it
/// has been passed; a later call in the same stream may have it before.
class FusedCalls final : public DeviceCalls {
 public:
  FusedCalls(State& state, std::shared_ptr<Device> device,
             std::unique_ptr<FusedTransport> transport);
  ~FusedCalls() override;

  void enqueue(const Call& call, Stream stream) override;
  void synchronize() override;
  std::unique_ptr<DeviceCalls> split(State* part, int color, int key) override;

 private:
  struct Given {
    std::shared_ptr<const execute::Plan> plan;
    const char* name;
    std::uint64_t number;
    Stream stream;
    std::byte* block;  // of scratch
    std::size_t bytes;
    /// One behind all; with a timeout, also one before all and one behind each fused group.
    std::vector<std::unique_ptr<Marker>> markers;
    std::size_t passed = 0;  // of these

    bool watched() const { return markers.size() > 1; }
  };

  /// Compares the call among all ranks; `wrong`: this rank's own error. Throws the verdict.
  void compare(const Choice& choice, const Error* wrong, int tag);
  void give(const Work& work, Stream stream);
  std::byte* take_block(Stream stream, std::size_t bytes);
  /// Forgets calls that are complete. Throws what went wrong in any.
  void reap();
  /// Returns when all are complete. Throws what went wrong; Error(timeout) where the oldest call
  /// has begun and came no further for as long as Options::timeout says.
  void wait();
  /// The same, in a call.
  void synchronize_in_use();
  /// Lets all streams go on, refuses further calls, and throws. Scratch of calls under way is kept
  /// for good.
  [[noreturn]] void give_up(const Error& error);
  Error timeout_error() const;
  Error named(const Error& error) const;

  const std::unique_ptr<FusedTransport> transport_;
  execute::FusedQueue fused_queue_;
  std::deque<Given> calls_;  // under way, the oldest first
  base::MarkerPool markers_;
};

}  // namespace baton::communicator
