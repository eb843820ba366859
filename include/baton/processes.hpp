#pragma once
/// Ranks as processes without MPI, connected in the fastest way that serves them all: by shared
/// memory (baton/shm.hpp) where they run on one host, by UCX (baton/ucx.hpp) otherwise.
///
/// BATON_TRANSPORT=shm or BATON_TRANSPORT=ucx, the same on all ranks, chooses; BATON_UCX_TLS
/// chooses UCX, too.

#include <chrono>
#include <memory>
#include <string>

#include "baton/exchange.hpp"
#include "baton/transport.hpp"

#pragma GCC visibility push(default)
namespace baton {

/// How long ranks wait for each other, and which threads use them.
struct ProcessOptions {
  /// How long ranks wait for each other, at a TCP address and for each other's memory.
  std::chrono::milliseconds meeting{30'000};
  /// UcxOptions::farewell.
  std::chrono::milliseconds farewell{10'000};
  /// Whether different transports of a group and of its splits may be used by different threads at
  /// once (Capabilities::concurrent); their calls then take turns. The same on all ranks.
  bool concurrent = false;
};

/// A transport of `size` processes that meet at "host:port", where rank 0 listens until all others
/// have come; they meet there up to four times. Strangers at the address are passed over.
/// Collective. Throws Error(invalid_argument, transport, timeout, mismatch), and Error(unsupported)
/// if ranks on several machines need UCX, which this library was built without.
std::unique_ptr<Transport> process_transport(int rank, int size, const std::string& address,
                                             const ProcessOptions& = {});

/// A transport of `size` processes. `exchange` is called up to four times, as often on all ranks,
/// each time with another block. Otherwise as above; throws what `exchange` throws, too.
std::unique_ptr<Transport> process_transport(int rank, int size, const Exchange& exchange,
                                             const ProcessOptions& = {});

}  // namespace baton
#pragma GCC visibility pop
