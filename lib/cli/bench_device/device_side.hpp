#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "baton/stream.hpp"
#include "baton/thread.hpp"
#include "cli/measure/case_runner.hpp"
#include "peer_library.hpp"

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
  /// One call, from the host's buffers to these.
  template <class Call>
  void run_on_host(const Call& call) {
    upload();
    run(call, 1);
    download();
  }
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

/// One rank's part of this library's collectives in a device's streams, a case at a time. All
/// functions are collective. World, gpu and case must outlive what is done with them.
class DeviceSide {
 public:
  DeviceSide(World& world, const Gpu& gpu, StreamCommunicator communicator)
      : world_(world), gpu_(gpu), communicator_(std::move(communicator)) {}

  /// Makes the buffers and checks results on exact and on random values; what was chosen.
  Choice begin(const Case& subject, const Choice& choice);
  /// Seconds of the slowest rank for so many calls, back to back in one stream.
  double seconds(int calls);
  /// Checks the last result once more; what all checks have found.
  measure::CheckResult end();

  StreamCommunicator& communicator() { return communicator_; }

 private:
  World& world_;
  const Gpu& gpu_;
  StreamCommunicator communicator_;
  Choice choice_;
  std::optional<DeviceCaseRunner> runner_;
  std::optional<measure::Checker> checker_;
  measure::CheckResult result_;
};

/// Ranks as threads of this process that do one piece of work after another, and sleep between.
class ThreadPool {
 public:
  ThreadPool(int ranks, const ThreadOptions& options);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Calls work(world) on every rank; returns when all have returned. Throws what one of them
  /// threw.
  void run(const std::function<void(World&)>& work);

 private:
  void serve(World& world);

  const int ranks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void(World&)>* work_ = nullptr;  // null: go home
  std::uint64_t turn_ = 0;
  int busy_ = 0;
  std::exception_ptr wrong_;
  bool gone_ = false;  // the threads could not be started
  std::thread thread_;
};

/// DeviceSide among threads of this process, rank r on gpu r modulo their number: one object for
/// all.
class DeviceThreads {
 public:
  DeviceThreads(const std::vector<Gpu>& gpus, int ranks);
  ~DeviceThreads();

  /// The result of `part(side)` on rank 0; all call it.
  template <class Part>
  auto on_all(const Part& part) {
    decltype(part(*sides_[0])) first{};
    pool_.run([&](World& world) {
      const auto own = part(*sides_[static_cast<std::size_t>(world.rank())]);
      if (world.rank() == 0) first = own;
    });
    return first;
  }

 private:
  ThreadPool pool_;
  std::vector<std::unique_ptr<DeviceSide>> sides_;
};

}  // namespace baton::cli::bench_device
