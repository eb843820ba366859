#pragma once

#include <memory>

#include "../execute/run.hpp"
#include "../execute/scratch_pool.hpp"
#include "arguments.hpp"
#include "baton/device.hpp"

namespace baton::communicator {

struct State;

/// Calls on a device's memory, in its streams. There are two kinds: those whose messages a thread
/// of the library moves (ThreadedCalls), and those given to the stream as a whole (FusedCalls).
class DeviceCalls {
 public:
  DeviceCalls(State& state, std::shared_ptr<Device> device);
  virtual ~DeviceCalls();
  DeviceCalls(const DeviceCalls&) = delete;
  DeviceCalls& operator=(const DeviceCalls&) = delete;

  Device& device() const { return *device_; }
  /// Throws unless the data of the call lies in the device's memory.
  void check(const Arguments& arguments) const;
  /// Gives a call to a stream.
  virtual void enqueue(const Call& call, Stream stream) = 0;
  /// Returns when all calls so far are complete. Throws what went wrong.
  virtual void synchronize() = 0;
  /// Forgets calls under way; nobody is left to be told of errors.
  virtual void close() noexcept {}
  /// The calls of a part of the communicator, null where `part` is. Collective over the whole.
  virtual std::unique_ptr<DeviceCalls> split(State* part, int color, int key) = 0;

 protected:
  State& state_;
  const std::shared_ptr<Device> device_;
  const execute::DeviceQueue queue_;  // of the library's own folds and copies
  execute::ScratchPool scratch_;
};

}  // namespace baton::communicator
