#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "../execute/progress.hpp"

namespace baton::communicator {

/// A thread that advances the operations of a family of communicators while any operation that was
/// given to a device's stream is under way.
class ProgressThread {
 public:
  explicit ProgressThread(execute::ProgressList& operations);
  ~ProgressThread();
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

  /// One more operation, or one less, is under way.
  void began();
  void ended() noexcept;

 private:
  void run();

  execute::ProgressList& operations_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int under_way_ = 0;
  bool stop_ = false;
  std::thread thread_;  // last: it uses all the others
};

}  // namespace baton::communicator
