#pragma once
/// Ranks as processes that UCX connects: shared memory, TCP, InfiniBand, as UCX finds them and as
/// its own environment (UCX_TLS, UCX_NET_DEVICES …) says. BATON_UCX_TLS and the like go before
/// these, and are not heeded by an MPI library that uses UCX too. Needs no MPI.
///
/// With BATON_SECRET set, ranks that meet at a TCP address prove to each other that they have the
/// same text, without sending it: others are refused. Choose one that nobody guesses, such as 32
/// random hexadecimal digits. What ranks send afterwards is neither encrypted nor signed.

#include <chrono>
#include <memory>
#include <string>

#include "baton/exchange.hpp"
#include "baton/transport.hpp"

#pragma GCC visibility push(default)
namespace baton {

/// How long ranks wait for each other, and which threads use them.
struct UcxOptions {
  /// How long ranks wait for each other at a TCP address.
  std::chrono::milliseconds meeting{30'000};
  /// How long the last transport of a group waits, when it is destroyed, for the others to have
  /// received what it sent. They need to call their transport meanwhile, or destroy it. Nobody
  /// waits for processes of the same machine that have ended.
  std::chrono::milliseconds farewell{10'000};
  /// Whether different transports of a group and of its splits may be used by different threads at
  /// once (Capabilities::concurrent), as collectives in streams need (baton/stream.hpp); their
  /// calls then take turns. The same on all ranks.
  bool concurrent = false;
};

/// A transport of the ranks of `bootstrap`, which carries the addresses by its tag 0, must not be
/// in use by anything else meanwhile, and may go afterwards. Collective over `bootstrap`.
/// Throws Error(transport).
std::unique_ptr<Transport> ucx_transport(Transport& bootstrap, const UcxOptions& = {});

/// A transport of `size` processes that meet at "host:port", where rank 0 listens until all others
/// have come. Strangers at the address are passed over. Collective. Throws Error(invalid_argument,
/// transport, timeout): where ranks differ in size, are equal or missing, all that came raise the
/// same sentence; a rank with another BATON_SECRET is told so, and the others wait on.
std::unique_ptr<Transport> ucx_transport(int rank, int size, const std::string& address,
                                         const UcxOptions& = {});

/// A transport of `size` processes whose addresses `exchange` brings, by any means that the program
/// has: a key-value store, files, another library's all-gather. `exchange` is called once, before
/// this returns. Collective. Throws Error(invalid_argument, transport), and what `exchange` throws.
std::unique_ptr<Transport> ucx_transport(int rank, int size, const Exchange& exchange,
                                         const UcxOptions& = {});

}  // namespace baton
#pragma GCC visibility pop
