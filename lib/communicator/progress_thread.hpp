#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "../execute/progress.hpp"

namespace baton::communicator {

/// Advances a family's operations while any of them is in a device's stream.
class ProgressThread {
 public:
  explicit ProgressThread(execute::ProgressList& operations);
  ~ProgressThread();
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

  /// One more operation is under way, or one less.
  void began();
  void ended() noexcept;

 private:
  void run();

  execute::ProgressList& operations_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int under_way_ = 0;
  bool stop_ = false;
  std::thread thread_;  // last: it uses all other members
};

}  // namespace baton::communicator
