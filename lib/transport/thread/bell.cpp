#include "bell.hpp"

#include <algorithm>
#include <thread>

namespace baton::threads {
namespace {

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

void Bell::ring() {
  // Sequentially consistent with wait(): at least one side sees the other's write.
  rings_.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) == 0) return;
  { std::lock_guard between_check_and_sleep(mutex_); }
  rung_.notify_all();
}

void Bell::wait(std::uint32_t seen, std::chrono::microseconds at_most,
                std::chrono::microseconds spin) {
  using Clock = std::chrono::steady_clock;
  if (rings() != seen) return;
  const auto start = Clock::now();
  const auto spin_until = start + std::min(spin, at_most);
  for (auto now = start; now < spin_until; now = Clock::now()) {
    for (int i = 0; i < 32; ++i) {
      if (rings() != seen) return;
      pause();
    }
    // The awaited rank may be on this very core.
    if (now - start > std::chrono::microseconds(1)) std::this_thread::yield();
  }

  std::unique_lock lock(mutex_);
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  rung_.wait_until(lock, start + at_most,
                   [&] { return rings_.load(std::memory_order_seq_cst) != seen; });
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace baton::threads
