#pragma once
/// Ranks as threads for tests: errors are reported with their rank, and a hang becomes a failure.

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "baton/communicator.hpp"
#include "baton/error.hpp"
#include "baton/thread.hpp"
#include "sanitizer.hpp"

namespace support {

/// Options under which a hang becomes an error that says who waits for whom: after BATON_TIMEOUT,
/// or a minute.
inline baton::Options test_options() {
  baton::Options options;
  options.timeout = baton::Options::from_environment().timeout;
  if (options.timeout.count() == 0) options.timeout = std::chrono::seconds(60);
  return options;
}

/// Options under which an operation is given up after this long without progress.
inline baton::Options giving_up_after(std::chrono::milliseconds silence) {
  baton::Options options;
  options.timeout = silence;
  return options;
}

/// Aborts the program with a table of what each rank does if it lives for longer than `limit`, or
/// five times as long under a sanitizer: for hangs that no timeout of a communicator ends.
class Watchdog {
 public:
  Watchdog(int ranks, std::chrono::seconds limit)
      : returned_(static_cast<std::size_t>(ranks)),
        thread_([this, limit] { watch(limit * slowness); }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  void returned(int rank) { returned_[static_cast<std::size_t>(rank)] = true; }

 private:
#ifdef UNDER_SANITIZER
  static constexpr int slowness = 5;
#else
  static constexpr int slowness = 1;
#endif
  void watch(std::chrono::seconds limit) {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, limit, [&] { return done_; })) return;
    std::fprintf(stderr, "no end within %lld s; ranks that have not returned:",
                 static_cast<long long>(limit.count()));
    for (std::size_t rank = 0; rank < returned_.size(); ++rank) {
      if (!returned_[rank]) std::fprintf(stderr, " %zu", rank);
    }
    std::fputs("\n", stderr);
    std::abort();
  }

  std::vector<std::atomic<bool>> returned_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::thread thread_;
};

/// Runs `body` on `size` threads, each with its rank's communicator. Whatever a rank throws fails
/// the test and names the rank.
inline void on_ranks(int size, const std::function<void(baton::Communicator&)>& body,
                     const baton::Options& options = test_options(),
                     const baton::ThreadOptions& thread_options = {}) {
  Watchdog watchdog(size, std::chrono::seconds(240));
  baton::run_threads(
      size,
      [&](std::unique_ptr<baton::Transport> transport) {
        const int rank = transport->rank();
        try {
          baton::Communicator communicator(std::move(transport), options);
          body(communicator);
        } catch (const std::exception& error) {
          FAIL_CHECK("rank " << rank << " of " << size << ": " << std::string(error.what()));
        }
        watchdog.returned(rank);
      },
      thread_options);
}

/// What `call` throws as Error; the test fails if it does not.
inline baton::Error error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const baton::Error& error) {
    return error;
  }
  FAIL_CHECK("expected an Error, found none");
  return {baton::ErrorCode::unsupported, "no error"};
}

/// Whether `text` holds all of `parts`, in this order.
inline bool holds(const std::string& text, const std::vector<std::string>& parts) {
  std::size_t at = 0;
  for (const std::string& part : parts) {
    at = text.find(part, at);
    if (at == std::string::npos) return false;
    at += part.size();
  }
  return true;
}

}  // namespace support
