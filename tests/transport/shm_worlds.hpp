#pragma once
/// Ranks as threads that share memory as processes do, each with a mapping of its own.

#include <doctest/doctest.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "baton/error.hpp"
#include "baton/shm.hpp"

namespace shm_worlds {

/// Calls `body` with the exchange of addresses of each rank's thread.
inline void on_exchanges(int size,
                         const std::function<void(int rank, const baton::Exchange&)>& body) {
  std::vector<std::vector<std::byte>> blocks(static_cast<std::size_t>(size));
  std::barrier all(size);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        body(rank, [&, rank](const std::vector<std::byte>& own) {
          blocks[static_cast<std::size_t>(rank)] = own;
          all.arrive_and_wait();
          return blocks;
        });
      } catch (const std::exception& error) {
        FAIL_CHECK("rank " << rank << " of " << size << ": " << std::string(error.what()));
      }
    });
}

/// Calls `body` with each rank's transport.
inline void on_worlds(int size, const std::function<void(std::unique_ptr<baton::Transport>)>& body,
                      const baton::ShmOptions& options = {}) {
  on_exchanges(size, [&](int rank, const baton::Exchange& exchange) {
    body(baton::shm_transport(rank, size, exchange, options));
  });
}

/// While it lives, ranks do not read each other's memory.
struct InParts {
  InParts() { setenv("BATON_SINGLE_COPY", "0", 1); }
  ~InParts() { unsetenv("BATON_SINGLE_COPY"); }
};

inline void both_ways(const std::function<void()>& body) {
  SUBCASE("read in the sender's memory") { body(); }
  SUBCASE("in parts") {
    const InParts in_parts;
    body();
  }
}

/// Two ranks act in turn, amid a message.
class Turns {
 public:
  /// Waits for the turn `mine`; the next one, which is the other rank's, follows `act`.
  void take(int mine, const std::function<void()>& act) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (turn_ != mine) {
      if (std::chrono::steady_clock::now() > end)
        throw std::runtime_error("the other rank is late");
      std::this_thread::yield();
    }
    act();
    turn_ = mine + 1;
  }

 private:
  std::atomic<int> turn_{0};
};

}  // namespace shm_worlds
