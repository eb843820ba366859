// A preload library that announces itself as a drop-in: it counts the calls of MPI_Allreduce that
// programs make, adds them up over all ranks, and writes the sum to the file that STAND_IN_COUNTS
// names. With STAND_IN_WRONG its results are wrong.

#include <mpi.h>

#include <cstdlib>
#include <fstream>

// Looked up by name: no header declares these.
#pragma GCC diagnostic ignored "-Wmissing-declarations"
extern "C" {

const char* baton_pmpi_version() { return "stand-in"; }

static long calls = 0;

int MPI_Allreduce(const void* input, void* output, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm) {
  ++calls;
  const int code = PMPI_Allreduce(input, output, count, type, op, comm);
  if (std::getenv("STAND_IN_WRONG") != nullptr) ++static_cast<unsigned char*>(output)[0];
  return code;
}

int MPI_Finalize() {
  long all = 0;
  int rank = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Reduce(&calls, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  if (const char* file = std::getenv("STAND_IN_COUNTS"); file != nullptr && rank == 0) {
    std::ofstream(file) << all;
  }
  return PMPI_Finalize();
}
}
