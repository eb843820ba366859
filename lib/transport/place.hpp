#pragma once
/// Where ranks run. Ranks of transports between processes exchange this once.

#include <cstdint>
#include <span>
#include <vector>

namespace baton::transport {

/// Two hashes, and the machine's cores. Ranks share a host if they see the same host name on the
/// same machine. A machine may pose as several hosts (containers, network namespaces); their ranks
/// share its cores.
struct Place {
  std::uint64_t host, machine;
  std::int64_t cores;
};

/// This process's place.
Place own_place();

/// The host of each rank, as Transport::hosts() numbers them.
std::vector<int> hosts_in(std::span<const Place> places);

/// Whether the rank's machine has more ranks than cores.
bool crowded(std::span<const Place> places, int rank);

/// The cores of the machine that all ranks share, the fewest that a rank sees; 0 if the ranks run
/// on several.
int shared_cores(std::span<const Place> places);

}  // namespace baton::transport
