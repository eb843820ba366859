#pragma once
/// Ranks as threads of one process.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "baton/device.hpp"
#include "baton/fused_transport.hpp"
#include "baton/transport.hpp"

#pragma GCC visibility push(default)
namespace baton {

/// How ranks as threads behave.
struct ThreadOptions {
  /// Not 0, for tests: delivery and completion are delayed at random, as this seed says, and
  /// messages of at most `eager_bytes` wait for their receiver at random.
  std::uint64_t seed = 0;
  /// Messages of at most this many bytes are copied at once and complete without their receiver, as
  /// long as the sender has a free buffer: it has 64.
  std::size_t eager_bytes = 4096;
  /// Not empty: says of each rank which host it is on, as if threads were on several.
  std::vector<int> hosts = {};
  /// Not empty: messages may lie in these devices' memory: each rank's own, or one for all. The
  /// receiver's device, or the sender's if that comes second, copies from one to the other.
  std::vector<std::shared_ptr<Device>> devices = {};
};

/// Transports of `size` ranks in one process, in rank order; each is used by its own thread. Throws
/// Error(invalid_argument) if size is less than 1, or `hosts` or `devices` has another number.
std::vector<std::unique_ptr<Transport>> thread_transports(int size, const ThreadOptions& = {});

/// Messages in fused groups among ranks as threads that share a device, for StreamCommunicator.
/// Messages are copies in the receivers' streams, and streams wait for each other by markers that
/// were set before: no stream is held for the host, so any number of ranks gets along with one
/// hardware queue. end() and this call wait on the host for the peers' calls, for `timeout` at most
/// (0: for any time), and then throw Error(timeout) that names a peer; where a peer has left, or
/// called abort(), end() throws Error(transport). split() waits as host.split() does. So all ranks
/// make their calls in the same order, over all communicators. Collective over `host`, whose ranks
/// are threads of one process; else throws Error(unsupported). Throws Error(invalid_argument) on
/// all ranks unless all pass the same device.
std::unique_ptr<FusedTransport> thread_fused_transport(Transport& host,
                                                       std::shared_ptr<Device> device,
                                                       std::chrono::milliseconds timeout = {});

/// Runs `body` on `size` threads, each with its rank's transport, and returns when all have
/// returned. If any throws, all are joined and the exception of the lowest rank is thrown on.
/// Throws Error(transport), before any `body` runs, if the system does not allow so many threads.
void run_threads(int size, const std::function<void(std::unique_ptr<Transport>)>& body,
                 const ThreadOptions& = {});

}  // namespace baton
#pragma GCC visibility pop
