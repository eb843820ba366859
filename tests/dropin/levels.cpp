// Ranks of different thread levels, which MPI allows, make communicators and use them.

#include <mpi.h>

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  if (rank == nullptr) rank = std::getenv("PMI_RANK");
  const bool first = rank != nullptr && std::atoi(rank) == 0;
  int provided = 0, size = 0, wrong = 0, sum = 0;
  MPI_Init_thread(&argc, &argv, first ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  for (int round = 0; round < 3; ++round) {
    MPI_Comm made = MPI_COMM_NULL;
    const int one = 1;
    MPI_Comm_dup(MPI_COMM_WORLD, &made);
    MPI_Comm_size(made, &size);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, made);
    if (sum != size) ++wrong;
    MPI_Comm_free(&made);
  }
  if (first) std::printf("%d wrong sums\n", wrong);
  MPI_Finalize();
}
