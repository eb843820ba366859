#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "../execute/progress.hpp"

namespace baton {

/// A thread that advances the operations of a family of communicators while any that was given to a
/// device's stream is under way.
class Engine {
 public:
  explicit Engine(ProgressList& operations);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// One more, or one less, is under way.
  void began();
  void ended() noexcept;

 private:
  void run();

  ProgressList& operations_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int under_way_ = 0;
  bool stop_ = false;
  std::thread thread_;  // last: it uses all the others
};

}  // namespace baton
