/// The program's collectives, in all their forms.

#include "forms.hpp"
#include "function.hpp"
#include "passed_on.hpp"

namespace baton::pmpi {
namespace {

MpiCall gathering(Function function, const void* send, std::int64_t send_count,
                  MPI_Datatype send_type, void* recv, std::int64_t recv_count,
                  MPI_Datatype recv_type, int root, MPI_Comm comm) {
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

MpiCall reduction(Function function, const void* send, void* recv, std::int64_t count,
                  MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm) {
  return {.function = function,
          .comm = comm,
          .send = send,
          .recv = recv,
          .recv_count = count,
          .recv_type = type,
          .op = op,
          .root = root};
}

MpiCall with_recv_blocks(MpiCall call, Numbers counts, Numbers displs) {
  call.recv_counts = counts;
  call.recv_displs = displs;
  return call;
}

MpiCall with_send_blocks(MpiCall call, Numbers counts, Numbers displs) {
  call.send_counts = counts;
  call.send_displs = displs;
  return call;
}

MpiCall with_types(MpiCall call, const MPI_Datatype* send, const MPI_Datatype* recv) {
  call.send_types = send;
  call.recv_types = recv;
  return call;
}

MpiCall barrier(MPI_Comm comm) { return {.function = Function::barrier, .comm = comm}; }

MpiCall bcast(void* buffer, std::int64_t count, MPI_Datatype type, int root, MPI_Comm comm) {
  return {.function = Function::bcast,
          .comm = comm,
          .recv = buffer,
          .recv_count = count,
          .recv_type = type,
          .root = root};
}

}  // namespace
}  // namespace baton::pmpi

// A function and its nonblocking form, which takes the same parameters and a request. `arguments`
// are those of the MPI library's own functions for a call c.
#define TWO_FORMS(name, nonblocking, own_form, call, parameters, arguments) \
  static int own_form(const MpiCall& c, MPI_Request* request) {             \
    if (request) return P##nonblocking(UNPACK arguments, request);          \
    return P##name arguments;                                               \
  }                                                                         \
  DEFINE(name, parameters) {                                                \
    MpiCall called = call;                                                  \
    called.own = own_form;                                                  \
    return run(called);                                                     \
  }                                                                         \
  DEFINE(nonblocking, (UNPACK parameters, MPI_Request * request)) {         \
    MpiCall called = call;                                                  \
    called.own = own_form;                                                  \
    return start(called, request);                                          \
  }

#define PERSISTENT_FORM(name, call, parameters, arguments) \
  PERSISTENT_NAMED(name, call, parameters, arguments)
#define PERSISTENT_NAMED(name, call, parameters, arguments)                 \
  DEFINE(name, (UNPACK parameters, MPI_Info info, MPI_Request * request)) { \
    const MpiCall c = call;                                                 \
    const int code = P##name(UNPACK arguments, info, request);              \
    count_persistent(#name, c.comm);                                        \
    return code;                                                            \
  }

#define INTERPOSE(name, nonblocking, call, parameters, arguments)                               \
  INTERPOSE_NARROW(name, nonblocking, call, parameters, arguments)                              \
  WITH_LARGE_FORMS(namespace baton::pmpi::wide{                                                 \
      TWO_FORMS(MPI_##name##_c, MPI_##nonblocking##_c, own_##name, call, parameters, arguments) \
          PERSISTENT_FORM(MPI_##name##_init_c, call, parameters, arguments)})
#define INTERPOSE_NARROW(name, nonblocking, call, parameters, arguments)            \
  namespace baton::pmpi::narrow {                                                   \
  TWO_FORMS(MPI_##name, MPI_##nonblocking, own_##name, call, parameters, arguments) \
  WITH_PERSISTENT(PERSISTENT_FORM(PERSISTENT(name), call, parameters, arguments))   \
  }

#define SEND const void *send, Count send_count, MPI_Datatype send_type
#define RECV void *recv, Count recv_count, MPI_Datatype recv_type
#define SEND_LISTS const void *send, const Count *send_counts, const Displacement *send_displs
#define RECV_LISTS void *recv, const Count *recv_counts, const Displacement *recv_displs
#define SEND_BLOCKS SEND_LISTS, MPI_Datatype send_type
#define RECV_BLOCKS RECV_LISTS, MPI_Datatype recv_type
#define REDUCE const void *send, void *recv, Count count, MPI_Datatype type, MPI_Op op

#define SENT c.send, static_cast<Count>(c.send_count), c.send_type
#define RECEIVED c.recv, static_cast<Count>(c.recv_count), c.recv_type
#define SENT_LISTS c.send, c.send_counts.as<Count>(), c.send_displs.as<Displacement>()
#define RECEIVED_LISTS c.recv, c.recv_counts.as<Count>(), c.recv_displs.as<Displacement>()
#define SENT_BLOCKS SENT_LISTS, c.send_type
#define RECEIVED_BLOCKS RECEIVED_LISTS, c.recv_type
#define REDUCED c.send, c.recv, static_cast<Count>(c.recv_count), c.recv_type, c.op

INTERPOSE_NARROW(Barrier, Ibarrier, barrier(comm), (MPI_Comm comm), (c.comm))
INTERPOSE(Bcast, Ibcast, bcast(buffer, count, type, root, comm),
          (void* buffer, Count count, MPI_Datatype type, int root, MPI_Comm comm),
          (RECEIVED, c.root, c.comm))

#define GATHERING(function, send_count, recv_count, root)                                       \
  gathering(Function::function, send, send_count, send_type, recv, recv_count, recv_type, root, \
            comm)
INTERPOSE(Gather, Igather, GATHERING(gather, send_count, recv_count, root),
          (SEND, RECV, int root, MPI_Comm comm), (SENT, RECEIVED, c.root, c.comm))
INTERPOSE(Scatter, Iscatter, GATHERING(scatter, send_count, recv_count, root),
          (SEND, RECV, int root, MPI_Comm comm), (SENT, RECEIVED, c.root, c.comm))
INTERPOSE(Allgather, Iallgather, GATHERING(allgather, send_count, recv_count, 0),
          (SEND, RECV, MPI_Comm comm), (SENT, RECEIVED, c.comm))
INTERPOSE(Alltoall, Ialltoall, GATHERING(alltoall, send_count, recv_count, 0),
          (SEND, RECV, MPI_Comm comm), (SENT, RECEIVED, c.comm))

INTERPOSE(Gatherv, Igatherv,
          with_recv_blocks(GATHERING(gatherv, send_count, 0, root), recv_counts, recv_displs),
          (SEND, RECV_BLOCKS, int root, MPI_Comm comm), (SENT, RECEIVED_BLOCKS, c.root, c.comm))
INTERPOSE(Allgatherv, Iallgatherv,
          with_recv_blocks(GATHERING(allgatherv, send_count, 0, 0), recv_counts, recv_displs),
          (SEND, RECV_BLOCKS, MPI_Comm comm), (SENT, RECEIVED_BLOCKS, c.comm))
INTERPOSE(Scatterv, Iscatterv,
          with_send_blocks(GATHERING(scatterv, 0, recv_count, root), send_counts, send_displs),
          (SEND_BLOCKS, RECV, int root, MPI_Comm comm), (SENT_BLOCKS, RECEIVED, c.root, c.comm))
INTERPOSE(Alltoallv, Ialltoallv,
          with_recv_blocks(with_send_blocks(GATHERING(alltoallv, 0, 0, 0), send_counts,
                                            send_displs),
                           recv_counts, recv_displs),
          (SEND_BLOCKS, RECV_BLOCKS, MPI_Comm comm), (SENT_BLOCKS, RECEIVED_BLOCKS, c.comm))
INTERPOSE(Alltoallw, Ialltoallw,
          with_types(with_recv_blocks(with_send_blocks(gathering(Function::alltoallw, send, 0,
                                                                 MPI_DATATYPE_NULL, recv, 0,
                                                                 MPI_DATATYPE_NULL, 0, comm),
                                                       send_counts, send_displs),
                                      recv_counts, recv_displs),
                     send_types, recv_types),
          (SEND_LISTS, const MPI_Datatype* send_types, RECV_LISTS, const MPI_Datatype* recv_types,
           MPI_Comm comm),
          (SENT_LISTS, c.send_types, RECEIVED_LISTS, c.recv_types, c.comm))

#define REDUCTION(function, root) \
  reduction(Function::function, send, recv, count, type, op, root, comm)
INTERPOSE(Reduce, Ireduce, REDUCTION(reduce, root), (REDUCE, int root, MPI_Comm comm),
          (REDUCED, c.root, c.comm))
INTERPOSE(Allreduce, Iallreduce, REDUCTION(allreduce, 0), (REDUCE, MPI_Comm comm),
          (REDUCED, c.comm))
INTERPOSE(Scan, Iscan, REDUCTION(scan, 0), (REDUCE, MPI_Comm comm), (REDUCED, c.comm))
INTERPOSE(Exscan, Iexscan, REDUCTION(exscan, 0), (REDUCE, MPI_Comm comm), (REDUCED, c.comm))
INTERPOSE(Reduce_scatter_block, Ireduce_scatter_block, REDUCTION(reduce_scatter_block, 0),
          (REDUCE, MPI_Comm comm), (REDUCED, c.comm))
INTERPOSE(Reduce_scatter, Ireduce_scatter,
          with_recv_blocks(reduction(Function::reduce_scatter, send, recv, 0, type, op, 0, comm),
                           counts, {}),
          (const void* send, void* recv, const Count* counts, MPI_Datatype type, MPI_Op op,
           MPI_Comm comm),
          (c.send, c.recv, c.recv_counts.as<Count>(), c.recv_type, c.op, c.comm))
