/// The program's collectives.

#include "function.hpp"

using baton::pmpi::Function;
using baton::pmpi::MpiCall;
using baton::pmpi::run;
using baton::pmpi::start;

namespace {

MpiCall gathering(Function function, const void* send, int send_count, MPI_Datatype send_type,
                  void* recv, int recv_count, MPI_Datatype recv_type, int root, MPI_Comm comm) {
  return {.function = function,
          .comm = comm,
          .send = send,
          .send_count = send_count,
          .send_type = send_type,
          .recv = recv,
          .recv_count = recv_count,
          .recv_type = recv_type,
          .root = root};
}

MpiCall reduction(Function function, const void* send, void* recv, int count, MPI_Datatype type,
                  MPI_Op op, int root, MPI_Comm comm) {
  return {.function = function,
          .comm = comm,
          .send = send,
          .recv = recv,
          .recv_count = count,
          .recv_type = type,
          .op = op,
          .root = root};
}

MpiCall with_recv_blocks(MpiCall call, const int* counts, const int* displs) {
  call.recv_counts = counts;
  call.recv_displs = displs;
  return call;
}

MpiCall with_send_blocks(MpiCall call, const int* counts, const int* displs) {
  call.send_counts = counts;
  call.send_displs = displs;
  return call;
}

MpiCall barrier(MPI_Comm comm) { return {.function = Function::barrier, .comm = comm}; }

MpiCall bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  return {.function = Function::bcast,
          .comm = comm,
          .recv = buffer,
          .recv_count = count,
          .recv_type = type,
          .root = root};
}

}  // namespace

// A function and its nonblocking form, which takes the same parameters and a request.
#define INTERPOSE(name, nonblocking, call, ...)                         \
  extern "C" int MPI_##name(__VA_ARGS__) { return run(call); }          \
  extern "C" int MPI_##nonblocking(__VA_ARGS__, MPI_Request* request) { \
    return start(call, request);                                        \
  }

INTERPOSE(Barrier, Ibarrier, barrier(comm), MPI_Comm comm)
INTERPOSE(Bcast, Ibcast, bcast(buffer, count, type, root, comm), void* buffer, int count,
          MPI_Datatype type, int root, MPI_Comm comm)

#define GATHERING(function)                                                                     \
  gathering(Function::function, send, send_count, send_type, recv, recv_count, recv_type, root, \
            comm)
INTERPOSE(Gather, Igather, GATHERING(gather), const void* send, int send_count,
          MPI_Datatype send_type, void* recv, int recv_count, MPI_Datatype recv_type, int root,
          MPI_Comm comm)
INTERPOSE(Scatter, Iscatter, GATHERING(scatter), const void* send, int send_count,
          MPI_Datatype send_type, void* recv, int recv_count, MPI_Datatype recv_type, int root,
          MPI_Comm comm)
#undef GATHERING
#define GATHERING(function) \
  gathering(Function::function, send, send_count, send_type, recv, recv_count, recv_type, 0, comm)
INTERPOSE(Allgather, Iallgather, GATHERING(allgather), const void* send, int send_count,
          MPI_Datatype send_type, void* recv, int recv_count, MPI_Datatype recv_type, MPI_Comm comm)
INTERPOSE(Alltoall, Ialltoall, GATHERING(alltoall), const void* send, int send_count,
          MPI_Datatype send_type, void* recv, int recv_count, MPI_Datatype recv_type, MPI_Comm comm)
#undef GATHERING

INTERPOSE(Gatherv, Igatherv,
          with_recv_blocks(gathering(Function::gatherv, send, send_count, send_type, recv, 0,
                                     recv_type, root, comm),
                           recv_counts, recv_displs),
          const void* send, int send_count, MPI_Datatype send_type, void* recv,
          const int* recv_counts, const int* recv_displs, MPI_Datatype recv_type, int root,
          MPI_Comm comm)
INTERPOSE(Allgatherv, Iallgatherv,
          with_recv_blocks(gathering(Function::allgatherv, send, send_count, send_type, recv, 0,
                                     recv_type, 0, comm),
                           recv_counts, recv_displs),
          const void* send, int send_count, MPI_Datatype send_type, void* recv,
          const int* recv_counts, const int* recv_displs, MPI_Datatype recv_type, MPI_Comm comm)
INTERPOSE(Scatterv, Iscatterv,
          with_send_blocks(gathering(Function::scatterv, send, 0, send_type, recv, recv_count,
                                     recv_type, root, comm),
                           send_counts, send_displs),
          const void* send, const int* send_counts, const int* send_displs, MPI_Datatype send_type,
          void* recv, int recv_count, MPI_Datatype recv_type, int root, MPI_Comm comm)
INTERPOSE(Alltoallv, Ialltoallv,
          with_recv_blocks(with_send_blocks(gathering(Function::alltoallv, send, 0, send_type, recv,
                                                      0, recv_type, 0, comm),
                                            send_counts, send_displs),
                           recv_counts, recv_displs),
          const void* send, const int* send_counts, const int* send_displs, MPI_Datatype send_type,
          void* recv, const int* recv_counts, const int* recv_displs, MPI_Datatype recv_type,
          MPI_Comm comm)

INTERPOSE(Reduce, Ireduce, reduction(Function::reduce, send, recv, count, type, op, root, comm),
          const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op, int root,
          MPI_Comm comm)
#define REDUCTION(function) reduction(Function::function, send, recv, count, type, op, 0, comm)
INTERPOSE(Allreduce, Iallreduce, REDUCTION(allreduce), const void* send, void* recv, int count,
          MPI_Datatype type, MPI_Op op, MPI_Comm comm)
INTERPOSE(Scan, Iscan, REDUCTION(scan), const void* send, void* recv, int count, MPI_Datatype type,
          MPI_Op op, MPI_Comm comm)
INTERPOSE(Exscan, Iexscan, REDUCTION(exscan), const void* send, void* recv, int count,
          MPI_Datatype type, MPI_Op op, MPI_Comm comm)
INTERPOSE(Reduce_scatter_block, Ireduce_scatter_block, REDUCTION(reduce_scatter_block),
          const void* send, void* recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
INTERPOSE(Reduce_scatter, Ireduce_scatter,
          with_recv_blocks(reduction(Function::reduce_scatter, send, recv, 0, type, op, 0, comm),
                           counts, nullptr),
          const void* send, void* recv, const int* counts, MPI_Datatype type, MPI_Op op,
          MPI_Comm comm)
