#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "baton/thread.hpp"
#include "cli/common/world.hpp"

namespace baton::cli::bench_device {

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

}  // namespace baton::cli::bench_device
