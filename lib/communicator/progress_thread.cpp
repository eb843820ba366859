#include "progress_thread.hpp"

#include "../base/backoff.hpp"

namespace baton::communicator {

ProgressThread::ProgressThread(execute::ProgressList& operations)
    : operations_(operations), thread_([this] { run(); }) {}

ProgressThread::~ProgressThread() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void ProgressThread::began() {
  {
    const std::lock_guard lock(mutex_);
    ++under_way_;
  }
  changed_.notify_one();
}

void ProgressThread::ended() noexcept {
  const std::lock_guard lock(mutex_);
  --under_way_;
}

void ProgressThread::run() {
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

}  // namespace baton::communicator
