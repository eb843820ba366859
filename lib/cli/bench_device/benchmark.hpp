#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/bench/options.hpp"
#include "peer_library.hpp"

namespace baton::cli::bench_device {

/// The devices and the peer library of one rank of bench_on().
struct Setup {
  int ranks = 0;  ///< of a collective
  /// On rank 0, of its threads: rank r on GPU r modulo their number.
  std::vector<Gpu> gpus;
  /// This rank's device for the peer library, and the way that its messages go.
  Gpu own = {};
  std::string way = {};
  /// Makes the peer library. Collective. Throws Error(unsupported) on all ranks where there is
  /// none.
  std::function<std::unique_ptr<PeerLibrary>(Transport& host, const Gpu& own)> peer;
};

/// The benchmark: ours by `setup.ranks` threads of rank 0's process and, among the ranks of
/// `world`, ours by the peer library's messages and the peer library's own. Returns the exit code.
int bench_on(World& world, const Setup& setup, const bench::BenchOptions& options);

}  // namespace baton::cli::bench_device
