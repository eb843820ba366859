#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "../base/backoff.hpp"
#include "../execute/progress.hpp"

namespace baton::communicator {

/// Advances a family's operations while any of them is in a device's stream.
class ProgressThread {
 public:
  explicit ProgressThread(execute::ProgressList& operations)
      : operations_(operations), thread_([this] { run(); }) {}
  ~ProgressThread() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

  /// One more operation is under way, or one less.
  void began() {
    {
      const std::lock_guard lock(mutex_);
      ++under_way_;
    }
    changed_.notify_one();
  }
  void ended() noexcept {
    const std::lock_guard lock(mutex_);
    --under_way_;
  }

 private:
  void run() {
    base::Backoff backoff;
    for (std::unique_lock lock(mutex_);;) {
      changed_.wait(lock, [&] { return stop_ || under_way_ > 0; });
      if (stop_) return;
      lock.unlock();
      if (operations_.advance(nullptr)) {
        backoff.reset();
      } else {
        backoff.wait();
      }
      lock.lock();
    }
  }

  execute::ProgressList& operations_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int under_way_ = 0;
  bool stop_ = false;
  std::thread thread_;  // last: it uses all other members
};

}  // namespace baton::communicator
