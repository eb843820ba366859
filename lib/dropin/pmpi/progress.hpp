#pragma once

#include <mpi.h>

#include "drop_in.hpp"

namespace baton::pmpi {

/// Makes a blocking call of MPI by attempts, each of which says whether it is over, and advances
/// operations of ours between them: attempt(int* over) returns an MPI error code.
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

/// Returns when all ranks of `comm`, which may be an intercommunicator, have called it: what blocks
/// next among them waits for nobody that waits for operations of ours.
void meet(DropIn& drop_in, MPI_Comm comm);
void meet(DropIn& drop_in, const Group& group);

}  // namespace baton::pmpi
