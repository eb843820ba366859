/// Programs that end by an error, for errors_test.py. Usage: wrong
/// root|count|differs|late|named|freed|handled|handled_freed|handled_later

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

int class_of(int code) {
  int kind = -1;
  MPI_Error_class(code, &kind);
  return kind;
}

/// Completes a request that succeeds and one that fails, and returns the code of the second.
using Way = int (*)(MPI_Request* requests);

/// The second's code in two statuses; -1 unless the call said that it is there.
int in_statuses(int code, const MPI_Status* statuses) {
  if (code == MPI_SUCCESS) return code;
  return class_of(code) == MPI_ERR_IN_STATUS && statuses[0].MPI_ERROR == MPI_SUCCESS
             ? statuses[1].MPI_ERROR
             : -1;
}

/// MPI_Waitsome or MPI_Testsome until no request is left.
int complete_some(MPI_Request* requests, decltype(MPI_Waitsome)* some) {
  int found = MPI_SUCCESS;
  for (;;) {
    int done = 0, indices[2];
    MPI_Status statuses[2];
    const int code = some(2, requests, &done, indices, statuses);
    if (done == MPI_UNDEFINED) return found;
    if (code == MPI_SUCCESS) continue;
    if (class_of(code) != MPI_ERR_IN_STATUS) return -1;
    for (int i = 0; i < done; ++i) {
      if (indices[i] == 1) found = statuses[i].MPI_ERROR;
      if (indices[i] == 0 && statuses[i].MPI_ERROR != MPI_SUCCESS) return -1;
    }
  }
}

constexpr Way ways[] = {
    [](MPI_Request* requests) {
      MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
      return MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    },
    [](MPI_Request* requests) {
      MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
      int code = MPI_SUCCESS;
      for (int flag = 0; flag == 0 && code == MPI_SUCCESS;)
        code = MPI_Test(&requests[1], &flag, MPI_STATUS_IGNORE);
      return code;
    },
    [](MPI_Request* requests) {
      int index = 0, code = MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
      const int next = MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
      return code != MPI_SUCCESS ? code : next;
    },
    [](MPI_Request* requests) {
      int code = MPI_SUCCESS;
      for (int index = 0; index != MPI_UNDEFINED;) {
        int flag = 0;
        const int next = MPI_Testany(2, requests, &index, &flag, MPI_STATUS_IGNORE);
        if (next != MPI_SUCCESS) code = next;
        if (flag == 0) index = 0;
      }
      return code;
    },
    [](MPI_Request* requests) {
      MPI_Status statuses[2];
      const int code = MPI_Waitall(2, requests, statuses);
      return in_statuses(code, statuses);
    },
    [](MPI_Request* requests) {
      MPI_Status statuses[2];
      int code = MPI_SUCCESS;
      for (int flag = 0; flag == 0 && code == MPI_SUCCESS;)
        code = MPI_Testall(2, requests, &flag, statuses);
      return in_statuses(code, statuses);
    },
    [](MPI_Request* requests) { return MPI_Waitall(2, requests, MPI_STATUSES_IGNORE); },
    [](MPI_Request* requests) { return complete_some(requests, MPI_Waitsome); },
    [](MPI_Request* requests) { return complete_some(requests, MPI_Testsome); },
    [](MPI_Request* requests) {
      for (int i = 0; i < 2; ++i) {
        for (int flag = 0; flag == 0;)
          MPI_Request_get_status(requests[i], &flag, MPI_STATUS_IGNORE);
      }
      MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
      return MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    },
};

struct {
  int calls, code;
  MPI_Comm comm;
} raised;

void note(MPI_Comm* comm, int* code, ...) { raised = {raised.calls + 1, *code, *comm}; }

/// Whether the error of rank 1's broadcast reaches the handler of its communicator, which is freed
/// before or not, once, and whoever completes the request. Errors on MPI_COMM_WORLD end the
/// program.
bool fails_well(Way way, bool freed, int rank) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  const MPI_Comm before = comm;
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_Comm_create_errhandler(note, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  MPI_Errhandler_free(&handler);
  std::vector<float> x(1000);
  MPI_Request requests[2];
  if (rank == 0) MPI_Barrier(MPI_COMM_WORLD);
  MPI_Ibcast(x.data(), rank == 1 ? 900 : 1000, MPI_FLOAT, 0, comm, &requests[1]);
  if (freed) MPI_Comm_free(&comm);
  if (rank != 0) MPI_Barrier(MPI_COMM_WORLD);
  MPI_Ibarrier(MPI_COMM_WORLD, &requests[0]);
  raised = {0, MPI_SUCCESS, MPI_COMM_NULL};
  const int code = way(requests);
  const bool failed = code != MPI_SUCCESS;
  if (!freed) MPI_Comm_free(&comm);
  const bool null = requests[0] == MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL;
  return null && code != -1 && (failed || rank != 1) && raised.calls == (failed ? 1 : 0) &&
         (!failed || (raised.code == code || class_of(code) == MPI_ERR_IN_STATUS)) &&
         (!failed || freed || raised.comm == before);
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
  if (fault == "handled_later") {
    int good = 1, all = 0, number = 0;
    for (Way way : ways) {
      for (bool freed : {false, true}) {
        if (!fails_well(way, freed, rank)) {
          std::printf("way %d%s on rank %d\n", number, freed ? ", freed" : "", rank);
          good = 0;
        }
      }
      ++number;
    }
    MPI_Reduce(&good, &all, 1, MPI_INT, MPI_MIN, 0, MPI_COMM_WORLD);
    if (rank == 0 && all == 1) std::printf("handled\n");
    MPI_Finalize();
    return 0;
  }
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
