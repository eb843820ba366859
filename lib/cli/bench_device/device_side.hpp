#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "baton/stream.hpp"
#include "cli/measure/checker.hpp"
#include "device_case_runner.hpp"
#include "thread_pool.hpp"

namespace baton::cli::bench_device {

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

/// The same among threads of this process, rank r on gpu r modulo their number: one object for
/// all.
class DeviceThreads {
 public:
  DeviceThreads(const std::vector<Gpu>& gpus, int ranks);
  ~DeviceThreads();

  Choice begin(const Case& subject, const Choice& choice);
  double seconds(int calls);
  measure::CheckResult end();

 private:
  /// What `part` returns on rank 0; all call it.
  template <class Part>
  auto on_all(const Part& part);

  ThreadPool pool_;
  std::vector<std::unique_ptr<DeviceSide>> sides_;
};

}  // namespace baton::cli::bench_device
