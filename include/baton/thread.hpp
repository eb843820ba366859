#pragma once
/// Ranks as threads of one process.

#include <functional>
#include <memory>
#include <vector>

#include "baton/transport.hpp"

namespace baton {

/// How thread ranks may be disturbed, for tests: delivery and completion are delayed at random.
struct ThreadOptions {
  std::uint64_t seed = 0;  ///< 0: no delays
  /// Messages of at most this many bytes are copied at once and complete without their receiver.
  std::size_t eager_bytes = 4096;
};

/// Transports of `size` ranks in one process, in rank order; each is used by its own thread.
std::vector<std::unique_ptr<Transport>> thread_transports(int size, const ThreadOptions& = {});

/// Runs `body` on `size` threads, each with its rank's transport, and returns when all have
/// returned. If any throws, all are joined and the exception of the lowest rank is thrown on.
void run_threads(int size, const std::function<void(std::unique_ptr<Transport>)>& body,
                 const ThreadOptions& = {});

}  // namespace baton
