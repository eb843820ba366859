/// The program's collectives, from Fortran.

#include "fortran.hpp"

using namespace baton::pmpi::fortran;
using Int = MPI_Fint;

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
