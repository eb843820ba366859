/// Programs that end by an error, for errors_test.py. Usage: wrong
/// root|count|differs|late|named|freed|handled|handled_freed

#include <mpi.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

namespace {

/// Rank 1's broadcast receives more than it expects, after its communicator was freed.
void fail_freed(int rank) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  std::vector<float> x(1000);
  MPI_Request request = MPI_REQUEST_NULL;
  if (rank == 0) MPI_Barrier(MPI_COMM_WORLD);
  MPI_Ibcast(x.data(), rank == 1 ? 900 : 1000, MPI_FLOAT, 0, comm, &request);
  MPI_Comm_free(&comm);
  if (rank != 0) MPI_Barrier(MPI_COMM_WORLD);
  const int code = MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (rank == 1) std::printf("%s\n", code == MPI_SUCCESS ? "no error" : "handled");
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const std::string fault = argc > 1 ? argv[1] : "";
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::vector<float> x(1000);
  MPI_Barrier(MPI_COMM_WORLD);
  if (fault == "freed" || fault == "handled_freed") {
    if (fault == "handled_freed") MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    fail_freed(rank);
    MPI_Finalize();
    return 0;
  }
  if (fault == "handled") MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm all = MPI_COMM_WORLD;
  if (fault == "named") {
    MPI_Comm_dup(MPI_COMM_WORLD, &all);
    MPI_Comm_set_name(all, "ocean\nand ice");
  }
  if ((fault == "late" || fault == "named") && rank == 1) sleep(3600);
  const int count = fault == "count" ? -1 : fault == "differs" && rank == 1 ? 900 : 1000;
  const int root = fault == "root" || fault == "handled" ? size : 0;
  const int code = MPI_Bcast(x.data(), count, MPI_FLOAT, root, all);
  if (fault == "handled" && rank == 0)
    std::printf("%s\n", code == MPI_SUCCESS ? "no error" : "handled");
  if (fault == "late" || fault == "named")
    MPI_Allreduce(MPI_IN_PLACE, x.data(), 1000, MPI_FLOAT, MPI_SUM, all);
  MPI_Finalize();
}
