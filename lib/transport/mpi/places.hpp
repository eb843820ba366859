#pragma once
/// Where the ranks of a communicator run.

#include <cstdint>
#include <span>
#include <vector>

#include "baton/mpi.hpp"

namespace baton::mpi {

/// Hashes. Ranks are on one host if they see the same host name on the same machine. A machine may
/// pose as several hosts (containers, network namespaces), whose ranks share its cores.
struct Place {
  std::uint64_t host, machine;
};

/// The place of each rank, by point-to-point messages in ceil(log2 P) rounds. Collective.
std::vector<Place> gathered_places(MPI_Comm communicator);

/// The host of each rank, as Transport::hosts() numbers them.
std::vector<int> hosts_in(std::span<const Place> places);

/// Whether the rank's machine has more ranks than cores.
bool crowded(std::span<const Place> places, int rank);

}  // namespace baton::mpi
