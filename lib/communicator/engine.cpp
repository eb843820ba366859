#include "engine.hpp"

#include <chrono>

namespace baton {
namespace {

// Rounds without progress after which the thread leaves its core to others, and then sleeps: a
// stream may take long to come to a collective.
constexpr int spins = 256, yields = 4096;
constexpr std::chrono::microseconds nap(20);

}  // namespace

Engine::Engine(ProgressList& operations) : operations_(operations), thread_([this] { run(); }) {}

Engine::~Engine() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Engine::began() {
  {
    const std::lock_guard lock(mutex_);
    ++under_way_;
  }
  changed_.notify_one();
}

void Engine::ended() noexcept {
  const std::lock_guard lock(mutex_);
  --under_way_;
}

void Engine::run() {
  int quiet = 0;
  for (std::unique_lock lock(mutex_);;) {
    changed_.wait(lock, [&] { return stop_ || under_way_ > 0; });
    if (stop_) return;
    lock.unlock();
    if (operations_.advance(nullptr)) {
      quiet = 0;
    } else if (++quiet > yields) {
      std::this_thread::sleep_for(nap);
    } else if (quiet > spins) {
      std::this_thread::yield();
    }
    lock.lock();
  }
}

}  // namespace baton
