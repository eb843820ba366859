#pragma once

#include <memory>

#include "../base/block_pool.hpp"
#include "../execute/device_run.hpp"
#include "arguments.hpp"
#include "baton/device.hpp"

namespace baton::communicator {

struct State;

/// Calls on a device's memory, in its streams. A thread of the library moves the messages of
/// ThreadedCalls; FusedCalls are enqueued as a whole.
class DeviceCalls {
 public:
  DeviceCalls(State& state, std::shared_ptr<Device> device);
  virtual ~DeviceCalls();
  DeviceCalls(const DeviceCalls&) = delete;
  DeviceCalls& operator=(const DeviceCalls&) = delete;

  Device& device() const { return *device_; }
  /// Throws unless all data of the call lies in the device's memory.
  void check(const Arguments& arguments) const;
  /// Gives a call to a stream.
  virtual void enqueue(const Call& call, Stream stream) = 0;
  /// Returns when all earlier calls are complete. Throws the first unreported failure.
  virtual void synchronize() = 0;
  /// Forgets calls under way and their errors.
  virtual void close() noexcept {}
  /// The calls of a split communicator; null if `part` is null. Collective over the whole.
  virtual std::unique_ptr<DeviceCalls> split(State* part, int color, int key) = 0;

 protected:
  State& state_;
  const std::shared_ptr<Device> device_;
  const execute::DeviceQueue queue_;  // for the library's own folds and copies
  base::BlockPool scratch_;
};

}  // namespace baton::communicator
