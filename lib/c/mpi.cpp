#include "baton/mpi.hpp"

#include "handles.hpp"

using namespace baton::c;

int baton_mpi_transport(int communicator, baton_transport** transport) {
  return made(transport, [&] {
    int initialized = 0, finalized = 0;
    const bool running = MPI_Initialized(&initialized) == MPI_SUCCESS &&
                         MPI_Finalized(&finalized) == MPI_SUCCESS && initialized && !finalized;
    // MPI_Comm_f2c ends the program where MPI does not run; the transport refuses.
    return baton::mpi_process_transport(running ? MPI_Comm_f2c(communicator) : MPI_COMM_NULL);
  });
}
