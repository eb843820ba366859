#include "function.hpp"

namespace baton::pmpi {
namespace {

/// call(blocking, nonblocking, arguments...): both functions of MPI's own for the program's call,
/// and the arguments that they share.
template <class Call>
int forward(const MpiCall& c, const Call& call) {
  switch (c.function) {
    case Function::allgather:
      return call(PMPI_Allgather, PMPI_Iallgather, c.send, c.send_count, c.send_type, c.recv,
                  c.recv_count, c.recv_type, c.comm);
    case Function::allgatherv:
      return call(PMPI_Allgatherv, PMPI_Iallgatherv, c.send, c.send_count, c.send_type, c.recv,
                  c.recv_counts, c.recv_displs, c.recv_type, c.comm);
    case Function::allreduce:
      return call(PMPI_Allreduce, PMPI_Iallreduce, c.send, c.recv, c.recv_count, c.recv_type, c.op,
                  c.comm);
    case Function::alltoall:
      return call(PMPI_Alltoall, PMPI_Ialltoall, c.send, c.send_count, c.send_type, c.recv,
                  c.recv_count, c.recv_type, c.comm);
    case Function::alltoallv:
      return call(PMPI_Alltoallv, PMPI_Ialltoallv, c.send, c.send_counts, c.send_displs,
                  c.send_type, c.recv, c.recv_counts, c.recv_displs, c.recv_type, c.comm);
    case Function::barrier:
      return call(PMPI_Barrier, PMPI_Ibarrier, c.comm);
    case Function::bcast:
      return call(PMPI_Bcast, PMPI_Ibcast, c.recv, c.recv_count, c.recv_type, c.root, c.comm);
    case Function::exscan:
      return call(PMPI_Exscan, PMPI_Iexscan, c.send, c.recv, c.recv_count, c.recv_type, c.op,
                  c.comm);
    case Function::gather:
      return call(PMPI_Gather, PMPI_Igather, c.send, c.send_count, c.send_type, c.recv,
                  c.recv_count, c.recv_type, c.root, c.comm);
    case Function::gatherv:
      return call(PMPI_Gatherv, PMPI_Igatherv, c.send, c.send_count, c.send_type, c.recv,
                  c.recv_counts, c.recv_displs, c.recv_type, c.root, c.comm);
    case Function::reduce:
      return call(PMPI_Reduce, PMPI_Ireduce, c.send, c.recv, c.recv_count, c.recv_type, c.op,
                  c.root, c.comm);
    case Function::reduce_scatter:
      return call(PMPI_Reduce_scatter, PMPI_Ireduce_scatter, c.send, c.recv, c.recv_counts,
                  c.recv_type, c.op, c.comm);
    case Function::reduce_scatter_block:
      return call(PMPI_Reduce_scatter_block, PMPI_Ireduce_scatter_block, c.send, c.recv,
                  c.recv_count, c.recv_type, c.op, c.comm);
    case Function::scan:
      return call(PMPI_Scan, PMPI_Iscan, c.send, c.recv, c.recv_count, c.recv_type, c.op, c.comm);
    case Function::scatter:
      return call(PMPI_Scatter, PMPI_Iscatter, c.send, c.send_count, c.send_type, c.recv,
                  c.recv_count, c.recv_type, c.root, c.comm);
    case Function::scatterv:
      return call(PMPI_Scatterv, PMPI_Iscatterv, c.send, c.send_counts, c.send_displs, c.send_type,
                  c.recv, c.recv_count, c.recv_type, c.root, c.comm);
  }
  return MPI_ERR_INTERN;
}

}  // namespace

int own(const MpiCall& call) {
  return forward(call,
                 [](auto* blocking, auto*, auto... arguments) { return blocking(arguments...); });
}

int own(const MpiCall& call, MPI_Request* request) {
  return forward(call, [&](auto*, auto* nonblocking, auto... arguments) {
    return nonblocking(arguments..., request);
  });
}

}  // namespace baton::pmpi
