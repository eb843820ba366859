#pragma once

#include <functional>
#include <memory>

#include "baton/stream.hpp"
#include "cli/measure/case_runner.hpp"
#include "gpu.hpp"

namespace baton::cli::bench_device {

/// One rank's buffers of a case, in a device's memory too, and the library's calls on these,
/// in a stream of its own. The communicator, the gpu and the case must outlive it.
class DeviceCaseRunner : public measure::CaseBuffers {
 public:
  DeviceCaseRunner(StreamCommunicator& communicator, const Gpu& gpu, const Case& subject);

  Choice chosen(const Choice& choice);
  /// Copies the host's buffers to the device, and the device's output to the host's.
  void upload();
  void download();
  /// Calls in the stream, back to back; returns when they are complete.
  void run(const Choice& choice, int calls);
  /// The same of what somebody else gives to the stream, one call at a time.
  void run(const std::function<void(Stream)>& call, int calls);
  const std::byte* device_input() const { return device_input_.get(); }
  std::byte* device_output() { return device_output_.get(); }

 private:
  using Memory = std::unique_ptr<std::byte, std::function<void(std::byte*)>>;
  Memory allocate(std::size_t bytes);
  void copy(std::byte* to, std::byte* from, std::size_t bytes);
  /// Returns when the stream has done all it was given.
  void wait();

  StreamCommunicator& communicator_;
  Device& device_;
  std::unique_ptr<void, std::function<void(Stream)>> stream_;
  std::unique_ptr<Marker> end_;
  Memory device_input_, device_output_;
  Call call_;
};

}  // namespace baton::cli::bench_device
