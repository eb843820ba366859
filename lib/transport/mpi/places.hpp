#pragma once
/// Where the ranks of a communicator run.

#include <vector>

#include "../place.hpp"
#include "baton/mpi.hpp"

namespace baton::mpi {

/// The place of each rank, by point-to-point messages in ceil(log2 P) rounds. Collective.
std::vector<Place> gathered_places(MPI_Comm communicator);

}  // namespace baton::mpi
