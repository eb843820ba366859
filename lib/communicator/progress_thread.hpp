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
  /// `crowded`: the machine has fewer cores than ranks and such threads.
  ProgressThread(execute::ProgressList& operations, bool crowded)
      : operations_(operations), crowded_(crowded), thread_([this] { run(); }) {}
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
    base::Backoff backoff = crowded_ ? base::Backoff::of_rank(true) : base::Backoff();
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
  const bool crowded_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int under_way_ = 0;
  bool stop_ = false;
  std::thread thread_;  // last: it uses all other members
};

}  // namespace baton::communicator
