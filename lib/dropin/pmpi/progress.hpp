#pragma once

#include <mpi.h>

#include "drop_in.hpp"

namespace baton::pmpi {

/// Makes a blocking call of MPI by attempts and advances our operations between them. attempt(int*
/// over) sets `over` at the end and returns an MPI error code.
template <class Attempt>
int advancing(DropIn& drop_in, const Attempt& attempt) {
  int code = MPI_SUCCESS;
  drop_in.until([&] {
    int over = 0;
    code = attempt(&over);
    return over != 0 || code != MPI_SUCCESS;
  });
  return code;
}

/// MPI_Wait on a request of the drop-in's own.
inline int wait_for(DropIn& drop_in, MPI_Request& request, MPI_Status* status) {
  return advancing(drop_in, [&](int* over) { return PMPI_Test(&request, over, status); });
}

/// Returns when all ranks of `comm`, also an intercommunicator, have called it. A blocking call
/// among them can follow: none of them then waits for a rank that waits for an operation of ours.
void meet(DropIn& drop_in, MPI_Comm comm);
void meet(DropIn& drop_in, const Group& group);

}  // namespace baton::pmpi
