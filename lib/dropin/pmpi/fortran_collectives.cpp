/// The program's collectives, from Fortran.

#include <mutex>
#include <set>

#include "fortran.hpp"

using namespace baton::pmpi::fortran;
using Int = MPI_Fint;

namespace {

/// A datatype for each rank that takes part. Valid until the program ends, since the MPI library
/// reads it until a nonblocking call is complete; equal lists are one.
const MPI_Datatype* types(const Int* handles, const Int* c) {
  static std::mutex mutex;
  static std::set<std::vector<MPI_Datatype>> lists;
  int size = 0, inter = 0;
  if (PMPI_Comm_test_inter(comm(c), &inter) != MPI_SUCCESS) return nullptr;
  inter != 0 ? PMPI_Comm_remote_size(comm(c), &size) : PMPI_Comm_size(comm(c), &size);
  std::vector<MPI_Datatype> all;
  for (int i = 0; i < size; ++i) all.push_back(type(handles + i));
  const std::lock_guard lock(mutex);
  return lists.insert(std::move(all)).first->data();
}

}  // namespace

// A function and its nonblocking form: the arguments of both, then Fortran's parameters.
#define ARGUMENTS(...) __VA_ARGS__
#define COLLECTIVE(name, function, nonblocking, arguments, ...)            \
  FORTRAN(name, __VA_ARGS__, Int* error) { *error = function(arguments); } \
  FORTRAN(i##name, __VA_ARGS__, Int* request, Int* error) {                \
    Out<MPI_Request, PMPI_Request_c2f> out(request, MPI_REQUEST_NULL);     \
    *error = nonblocking(arguments, out);                                  \
  }

COLLECTIVE(barrier, MPI_Barrier, MPI_Ibarrier, ARGUMENTS(comm(c)), Int* c)
COLLECTIVE(bcast, MPI_Bcast, MPI_Ibcast, ARGUMENTS(buffer(data), *count, type(t), *root, comm(c)),
           void* data, Int* count, Int* t, Int* root, Int* c)

#define SENT buffer(send), *send_count, type(send_type)
#define RECEIVED buffer(recv), *recv_count, type(recv_type)
#define SENT_BLOCKS buffer(send), send_counts, send_displs, type(send_type)
#define RECEIVED_BLOCKS buffer(recv), recv_counts, recv_displs, type(recv_type)
#define SEND void *send, Int *send_count, Int *send_type
#define RECV void *recv, Int *recv_count, Int *recv_type
#define SEND_BLOCKS void *send, Int *send_counts, Int *send_displs, Int *send_type
#define RECV_BLOCKS void *recv, Int *recv_counts, Int *recv_displs, Int *recv_type

COLLECTIVE(gather, MPI_Gather, MPI_Igather, ARGUMENTS(SENT, RECEIVED, *root, comm(c)), SEND, RECV,
           Int* root, Int* c)
COLLECTIVE(gatherv, MPI_Gatherv, MPI_Igatherv, ARGUMENTS(SENT, RECEIVED_BLOCKS, *root, comm(c)),
           SEND, RECV_BLOCKS, Int* root, Int* c)
COLLECTIVE(scatter, MPI_Scatter, MPI_Iscatter, ARGUMENTS(SENT, RECEIVED, *root, comm(c)), SEND,
           RECV, Int* root, Int* c)
COLLECTIVE(scatterv, MPI_Scatterv, MPI_Iscatterv, ARGUMENTS(SENT_BLOCKS, RECEIVED, *root, comm(c)),
           SEND_BLOCKS, RECV, Int* root, Int* c)
COLLECTIVE(allgather, MPI_Allgather, MPI_Iallgather, ARGUMENTS(SENT, RECEIVED, comm(c)), SEND, RECV,
           Int* c)
COLLECTIVE(allgatherv, MPI_Allgatherv, MPI_Iallgatherv, ARGUMENTS(SENT, RECEIVED_BLOCKS, comm(c)),
           SEND, RECV_BLOCKS, Int* c)
COLLECTIVE(alltoall, MPI_Alltoall, MPI_Ialltoall, ARGUMENTS(SENT, RECEIVED, comm(c)), SEND, RECV,
           Int* c)
COLLECTIVE(alltoallv, MPI_Alltoallv, MPI_Ialltoallv,
           ARGUMENTS(SENT_BLOCKS, RECEIVED_BLOCKS, comm(c)), SEND_BLOCKS, RECV_BLOCKS, Int* c)

// Lists of datatypes, one for each rank.
COLLECTIVE(alltoallw, MPI_Alltoallw, MPI_Ialltoallw,
           ARGUMENTS(buffer(send), send_counts, send_displs,
                     buffer(send) == MPI_IN_PLACE ? nullptr : types(send_types, c), buffer(recv),
                     recv_counts, recv_displs, types(recv_types, c), comm(c)),
           void* send, Int* send_counts, Int* send_displs, Int* send_types, void* recv,
           Int* recv_counts, Int* recv_displs, Int* recv_types, Int* c)

#define REDUCED buffer(send), buffer(recv), *count, type(t), op(o)
#define REDUCE void *send, void *recv, Int *count, Int *t, Int *o

COLLECTIVE(reduce, MPI_Reduce, MPI_Ireduce, ARGUMENTS(REDUCED, *root, comm(c)), REDUCE, Int* root,
           Int* c)
COLLECTIVE(allreduce, MPI_Allreduce, MPI_Iallreduce, ARGUMENTS(REDUCED, comm(c)), REDUCE, Int* c)
COLLECTIVE(scan, MPI_Scan, MPI_Iscan, ARGUMENTS(REDUCED, comm(c)), REDUCE, Int* c)
COLLECTIVE(exscan, MPI_Exscan, MPI_Iexscan, ARGUMENTS(REDUCED, comm(c)), REDUCE, Int* c)
COLLECTIVE(reduce_scatter_block, MPI_Reduce_scatter_block, MPI_Ireduce_scatter_block,
           ARGUMENTS(REDUCED, comm(c)), REDUCE, Int* c)
COLLECTIVE(reduce_scatter, MPI_Reduce_scatter, MPI_Ireduce_scatter,
           ARGUMENTS(buffer(send), buffer(recv), counts, type(t), op(o), comm(c)), void* send,
           void* recv, Int* counts, Int* t, Int* o, Int* c)

COLLECTIVE(neighbor_allgather, MPI_Neighbor_allgather, MPI_Ineighbor_allgather,
           ARGUMENTS(SENT, RECEIVED, comm(c)), SEND, RECV, Int* c)
COLLECTIVE(neighbor_allgatherv, MPI_Neighbor_allgatherv, MPI_Ineighbor_allgatherv,
           ARGUMENTS(SENT, RECEIVED_BLOCKS, comm(c)), SEND, RECV_BLOCKS, Int* c)
COLLECTIVE(neighbor_alltoall, MPI_Neighbor_alltoall, MPI_Ineighbor_alltoall,
           ARGUMENTS(SENT, RECEIVED, comm(c)), SEND, RECV, Int* c)
COLLECTIVE(neighbor_alltoallv, MPI_Neighbor_alltoallv, MPI_Ineighbor_alltoallv,
           ARGUMENTS(SENT_BLOCKS, RECEIVED_BLOCKS, comm(c)), SEND_BLOCKS, RECV_BLOCKS, Int* c)
