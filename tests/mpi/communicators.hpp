#pragma once
/// Communicators over MPI for tests.

#include <cstdlib>

#include "baton/mpi.hpp"
#include "support/ranks.hpp"

namespace support {

/// A communicator of all processes.
inline baton::Communicator world(const baton::Options& options = test_options()) {
  return baton::Communicator(baton::mpi_transport(MPI_COMM_WORLD), options);
}

}  // namespace support
