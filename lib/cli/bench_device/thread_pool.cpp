#include "thread_pool.hpp"

#include <utility>

namespace baton::cli::bench_device {

ThreadPool::ThreadPool(int ranks, const ThreadOptions& options)
    : ranks_(ranks), thread_([this, options] {
        try {
          run_as_threads(ranks_, options, [this](World& world) { serve(world); });
        } catch (...) {
          const std::lock_guard lock(mutex_);
          wrong_ = std::current_exception();
          gone_ = true;
          changed_.notify_all();
        }
      }) {}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    work_ = nullptr;
    ++turn_;
  }
  changed_.notify_all();
  thread_.join();
}

void ThreadPool::run(const std::function<void(World&)>& work) {
  std::unique_lock lock(mutex_);
  work_ = &work;
  busy_ = ranks_;
  ++turn_;
  changed_.notify_all();
  changed_.wait(lock, [&] { return busy_ == 0 || gone_; });
  if (wrong_) std::rethrow_exception(gone_ ? wrong_ : std::exchange(wrong_, nullptr));
}

void ThreadPool::serve(World& world) {
  for (std::uint64_t turn = 1;; ++turn) {
    const std::function<void(World&)>* work = nullptr;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return turn_ == turn; });
      work = work_;
    }
    if (!work) return;
    std::exception_ptr wrong;
    try {
      (*work)(world);
    } catch (...) {
      wrong = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    if (wrong && !wrong_) wrong_ = wrong;
    if (--busy_ == 0) changed_.notify_all();
  }
}

}  // namespace baton::cli::bench_device
