#pragma once
/// Ranks as processes of one machine that share memory: short messages by rings, long ones read in
/// the sender's memory. Needs no library, no MPI and no room in /dev/shm; Linux.
///
/// Ranks that meet at a TCP address heed BATON_SECRET, as baton/ucx.hpp says. BATON_SINGLE_COPY=0
/// does without reading in the sender's memory.

#include <chrono>
#include <memory>
#include <string>

#include "baton/exchange.hpp"
#include "baton/transport.hpp"

#pragma GCC visibility push(default)
namespace baton {

/// How long ranks wait for each other, and which threads use them.
struct ShmOptions {
  /// How long ranks wait for each other, at a TCP address and for each other's memory.
  std::chrono::milliseconds meeting{30'000};
  /// Whether different transports of a group and of its splits may be used by different threads at
  /// once (Capabilities::concurrent); their calls then take turns. The same on all ranks.
  bool concurrent = false;
};

/// A transport of the ranks of `bootstrap`, all on one machine, where each may open what the others
/// have open (one user, one container). `bootstrap` carries addresses by its tag 0, must not be in
/// use by anything else meanwhile, and may go afterwards. At most 1,024 ranks, of which
/// each takes 0.3 to 2.5 MiB. Collective. Throws Error(invalid_argument, transport, timeout).
std::unique_ptr<Transport> shm_transport(Transport& bootstrap, const ShmOptions& = {});

/// A transport of `size` processes that meet at "host:port", where rank 0 listens until all others
/// have come. Strangers at the address are passed over. Collective. Throws as above, and
/// Error(mismatch) where ranks differ in size or are equal.
std::unique_ptr<Transport> shm_transport(int rank, int size, const std::string& address,
                                         const ShmOptions& = {});

/// A transport of `size` processes whose addresses `exchange` brings, by any means that the program
/// has. It is called once. Collective. Throws as above, and what `exchange` throws.
std::unique_ptr<Transport> shm_transport(int rank, int size, const Exchange& exchange,
                                         const ShmOptions& = {});

}  // namespace baton
#pragma GCC visibility pop
