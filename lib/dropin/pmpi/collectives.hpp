#pragma once

#include "function.hpp"

namespace baton::pmpi {

/// Runs a collective call of the program by our collectives, or passes it on. Returns an MPI error
/// code.
int run(const MpiCall& call);
/// The same, nonblocking.
int start(const MpiCall& call, MPI_Request* request);

}  // namespace baton::pmpi
