#pragma once

#include <memory>
#include <span>

#include "../base/block_pool.hpp"
#include "../execute/device_run.hpp"
#include "arguments.hpp"
#include "baton/device.hpp"
#include "baton/stream.hpp"

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
  void check_data(const Arguments& arguments) const;
  /// Gives a call to a stream.
  virtual void enqueue(const Call& call, Stream stream) = 0;
  /// Gives messages to their streams; they progress side by side. `others_came`: as that of
  /// StreamCommunicator::exchange().
  virtual void exchange(std::span<const StreamMessage> messages,
                        const std::function<bool()>& others_came) = 0;
  /// Throws the first unreported failure, once.
  virtual void check() = 0;
  /// Ends a call of another thread that waits for its peers. Any thread may call it.
  virtual void interrupt() noexcept {}
  /// Ends calls under way and lets their streams go on.
  virtual void abort() noexcept = 0;
  /// Returns when all earlier calls are complete. Throws the first unreported failure.
  virtual void synchronize() = 0;
  /// Forgets calls under way and their errors.
  virtual void close() noexcept {}
  /// The calls of a split communicator; null if `part` is null. Collective over the whole.
  virtual std::unique_ptr<DeviceCalls> split(State* part, int color, int key) = 0;

 protected:
  /// Throws unless `data` lies in the device's memory and is aligned.
  void check_residence(const char* call, const char* what, const void* data,
                       std::size_t alignment) const;

  State& state_;
  const std::shared_ptr<Device> device_;
  const execute::DeviceQueue queue_;  // for the library's own folds and copies
  base::BlockPool scratch_;
};

}  // namespace baton::communicator
