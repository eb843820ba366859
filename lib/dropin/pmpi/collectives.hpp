#pragma once

#include "function.hpp"

namespace baton::pmpi {

/// A collective call of the program, by our collectives or passed on; an MPI error code.
int run(const MpiCall& call);
/// The same, nonblocking.
int start(const MpiCall& call, MPI_Request* request);

}  // namespace baton::pmpi
