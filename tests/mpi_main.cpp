/// doctest under mpirun: every rank runs all cases and rank 0 prints the summary. The first failure
/// on any rank ends all ranks: what it leaves half done on the others could only hang.

#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>
#include <mpi.h>

int main(int argc, char** argv) {
  if (MPI_Init(&argc, &argv) != MPI_SUCCESS) return 1;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);

  doctest::Context context(argc, argv);
  context.setOption("abort-after", 1);
  context.setOption("minimal", rank != 0);
  const int failed = context.run();
  if (failed != 0) MPI_Abort(MPI_COMM_WORLD, failed);
  return MPI_Finalize() == MPI_SUCCESS ? 0 : 1;
}
