#pragma once
/// Ranks as threads that share memory as processes do, each with a mapping of its own.

#include <doctest/doctest.h>

#include <barrier>
#include <exception>
#include <functional>
#include <memory>
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

}  // namespace shm_worlds
