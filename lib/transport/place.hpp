#pragma once
/// Where ranks run: what every transport of processes tells its group once.

#include <cstdint>
#include <span>
#include <vector>

namespace baton::transport {

/// Hashes. Ranks are on one host if they see the same host name on the same machine. A machine may
/// pose as several hosts (containers, network namespaces), whose ranks share its cores.
struct Place {
  std::uint64_t host, machine;
};

/// Of this process.
Place own_place();

/// The host of each rank, as Transport::hosts() numbers them.
std::vector<int> hosts_in(std::span<const Place> places);

/// Whether the rank's machine has more ranks than cores.
bool crowded(std::span<const Place> places, int rank);

}  // namespace baton::transport
