#include <cstdio>

#include "conformance.hpp"

// Calls that are wrong on all ranks: the class of the error is the MPI library's, and the
// communicator's error handler gets it once.

namespace dropin {

namespace {

struct Handled {
  int calls = 0, code = MPI_SUCCESS;
  MPI_Comm comm = MPI_COMM_NULL;
} handled;

void handle(MPI_Comm* comm, int* code, ...) { handled = {handled.calls + 1, *code, *comm}; }

constexpr int count = 4;

/// A wrong call on `comm`, whose buffers are large enough if it is made nevertheless.
struct Wrong {
  const char* name;
  int (*call)(MPI_Comm comm, int size, int* in, int* out);
};

MPI_Request unused;

constexpr Wrong wrong[] = {
    {"bcast root",
     [](MPI_Comm c, int size, int*, int* out) { return MPI_Bcast(out, count, MPI_INT, size, c); }},
    {"bcast negative root",
     [](MPI_Comm c, int, int*, int* out) { return MPI_Bcast(out, count, MPI_INT, -5, c); }},
    {"bcast count",
     [](MPI_Comm c, int, int*, int* out) { return MPI_Bcast(out, -1, MPI_INT, 0, c); }},
    {"bcast datatype", [](MPI_Comm c, int, int*,
                          int* out) { return MPI_Bcast(out, count, MPI_DATATYPE_NULL, 0, c); }},
    {"bcast communicator",
     [](MPI_Comm, int, int*, int* out) {
       return MPI_Bcast(out, count, MPI_INT, 0, MPI_COMM_NULL);
     }},
    {"ibcast root", [](MPI_Comm c, int size, int*,
                       int* out) { return MPI_Ibcast(out, count, MPI_INT, size, c, &unused); }},
    {"reduce root", [](MPI_Comm c, int size, int* in,
                       int* out) { return MPI_Reduce(in, out, count, MPI_INT, MPI_SUM, size, c); }},
    {"reduce operation",
     [](MPI_Comm c, int, int* in, int* out) {
       return MPI_Reduce(in, out, count, MPI_INT, MPI_OP_NULL, 0, c);
     }},
    {"allreduce operation",
     [](MPI_Comm c, int, int* in, int* out) {
       return MPI_Allreduce(in, out, count, MPI_INT, MPI_OP_NULL, c);
     }},
    {"allreduce operation on datatype",
     [](MPI_Comm c, int, int* in, int* out) {
       return MPI_Allreduce(in, out, 1, MPI_DOUBLE, MPI_BAND, c);
     }},
    {"allreduce datatype",
     [](MPI_Comm c, int, int* in, int* out) {
       return MPI_Allreduce(in, out, count, MPI_DATATYPE_NULL, MPI_SUM, c);
     }},
    {"allreduce communicator",
     [](MPI_Comm, int, int* in, int* out) {
       return MPI_Allreduce(in, out, count, MPI_INT, MPI_SUM, MPI_COMM_NULL);
     }},
    {"iallreduce operation on datatype",
     [](MPI_Comm c, int, int* in, int* out) {
       return MPI_Iallreduce(in, out, 1, MPI_DOUBLE, MPI_BAND, c, &unused);
     }},
    {"gather root",
     [](MPI_Comm c, int size, int* in, int* out) {
       return MPI_Gather(in, count, MPI_INT, out, count, MPI_INT, size, c);
     }},
    {"gather count",
     [](MPI_Comm c, int, int* in, int* out) {
       return MPI_Gather(in, -1, MPI_INT, out, count, MPI_INT, 0, c);
     }},
    {"scatter root",
     [](MPI_Comm c, int size, int* in, int* out) {
       return MPI_Scatter(in, count, MPI_INT, out, count, MPI_INT, size, c);
     }},
    {"allgather count",
     [](MPI_Comm c, int, int* in, int* out) {
       return MPI_Allgather(in, count, MPI_INT, out, -1, MPI_INT, c);
     }},
    {"alltoall datatype",
     [](MPI_Comm c, int, int* in, int* out) {
       return MPI_Alltoall(in, count, MPI_DATATYPE_NULL, out, count, MPI_INT, c);
     }},
    {"scan operation", [](MPI_Comm c, int, int* in,
                          int* out) { return MPI_Scan(in, out, count, MPI_INT, MPI_OP_NULL, c); }},
    {"barrier communicator", [](MPI_Comm, int, int*, int*) { return MPI_Barrier(MPI_COMM_NULL); }},
};

// MPICH 4.0 does not look at the counts of reductions and crashes.
constexpr Wrong unseen_by_mpich[] = {
    {"allreduce count", [](MPI_Comm c, int, int* in,
                           int* out) { return MPI_Allreduce(in, out, -2, MPI_INT, MPI_SUM, c); }},
    {"iallreduce count",
     [](MPI_Comm c, int, int* in, int* out) {
       return MPI_Iallreduce(in, out, -2, MPI_INT, MPI_SUM, c, &unused);
     }},
    {"reduce_scatter counts",
     [](MPI_Comm c, int, int* in, int* out) {
       return MPI_Reduce_scatter(in, out, nullptr, MPI_INT, MPI_SUM, c);
     }},
    {"reduce_scatter_block count",
     [](MPI_Comm c, int, int* in, int* out) {
       return MPI_Reduce_scatter_block(in, out, -1, MPI_INT, MPI_SUM, c);
     }},
};

int class_of(int code) {
  int kind = -1;
  MPI_Error_class(code, &kind);
  return kind;
}

void returned(Results& results, const Wrong& call, MPI_Comm comm, int rank, int size) {
  std::vector<int> in(count * size, 1), out(count * size, -9);
  MPI_Errhandler handler;
  MPI_Comm_create_errhandler(handle, &handler);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  const int kind = class_of(call.call(comm, size, in.data(), out.data()));
  if (rank == 0) std::printf("errors/%s: class %d\n", call.name, kind);
  results.expect(kind != MPI_SUCCESS, true, "an error is returned");
  results.add(kind);

  // A handler of the program's, on the communicator of the call; a null one has MPI_COMM_WORLD's.
  handled = {};
  MPI_Comm_set_errhandler(comm, handler);
  const int code = call.call(comm, size, in.data(), out.data());
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Errhandler_free(&handler);
  results.expect(class_of(code), kind, "class with a handler");
  results.add(handled.calls);
  if (handled.calls > 0) {
    results.expect(class_of(handled.code), kind, "class that the handler gets");
    results.expect(handled.comm == comm, true, "communicator that the handler gets");
  }
  for (int word : out) results.expect(word, -9, "the buffer is untouched");
}

}  // namespace

void errors(Suite& suite) {
  const int rank = suite.rank(), size = suite.size();
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  const auto run = [&](const Wrong& call) {
    suite.run(std::string("errors/") + call.name,
              [&](Results& results) { returned(results, call, comm, rank, size); });
  };
  for (const Wrong& call : wrong) run(call);
  if constexpr (mpi_library == MpiLibrary::openmpi)
    for (const Wrong& call : unseen_by_mpich) run(call);
  suite.run("errors/right_again", [&](Results& results) {
    int mine = 1, sum = 0;
    results.succeeds(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, comm), "Allreduce");
    results.expect(sum, size, "sum");
  });
  MPI_Comm_free(&comm);
}

}  // namespace dropin
