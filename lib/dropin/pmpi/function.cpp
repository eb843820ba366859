#include "function.hpp"

namespace baton::pmpi {

int own(const MpiCall& c) {
  switch (c.function) {
    case Function::allgather:
      return PMPI_Allgather(c.send, c.send_count, c.send_type, c.recv, c.recv_count, c.recv_type,
                            c.comm);
    case Function::allgatherv:
      return PMPI_Allgatherv(c.send, c.send_count, c.send_type, c.recv, c.recv_counts,
                             c.recv_displs, c.recv_type, c.comm);
    case Function::allreduce:
      return PMPI_Allreduce(c.send, c.recv, c.recv_count, c.recv_type, c.op, c.comm);
    case Function::alltoall:
      return PMPI_Alltoall(c.send, c.send_count, c.send_type, c.recv, c.recv_count, c.recv_type,
                           c.comm);
    case Function::alltoallv:
      return PMPI_Alltoallv(c.send, c.send_counts, c.send_displs, c.send_type, c.recv,
                            c.recv_counts, c.recv_displs, c.recv_type, c.comm);
    case Function::barrier:
      return PMPI_Barrier(c.comm);
    case Function::bcast:
      return PMPI_Bcast(c.recv, c.recv_count, c.recv_type, c.root, c.comm);
    case Function::exscan:
      return PMPI_Exscan(c.send, c.recv, c.recv_count, c.recv_type, c.op, c.comm);
    case Function::gather:
      return PMPI_Gather(c.send, c.send_count, c.send_type, c.recv, c.recv_count, c.recv_type,
                         c.root, c.comm);
    case Function::gatherv:
      return PMPI_Gatherv(c.send, c.send_count, c.send_type, c.recv, c.recv_counts, c.recv_displs,
                          c.recv_type, c.root, c.comm);
    case Function::reduce:
      return PMPI_Reduce(c.send, c.recv, c.recv_count, c.recv_type, c.op, c.root, c.comm);
    case Function::reduce_scatter:
      return PMPI_Reduce_scatter(c.send, c.recv, c.recv_counts, c.recv_type, c.op, c.comm);
    case Function::reduce_scatter_block:
      return PMPI_Reduce_scatter_block(c.send, c.recv, c.recv_count, c.recv_type, c.op, c.comm);
    case Function::scan:
      return PMPI_Scan(c.send, c.recv, c.recv_count, c.recv_type, c.op, c.comm);
    case Function::scatter:
      return PMPI_Scatter(c.send, c.send_count, c.send_type, c.recv, c.recv_count, c.recv_type,
                          c.root, c.comm);
    case Function::scatterv:
      return PMPI_Scatterv(c.send, c.send_counts, c.send_displs, c.send_type, c.recv, c.recv_count,
                           c.recv_type, c.root, c.comm);
  }
  return MPI_ERR_INTERN;
}

int own(const MpiCall& c, MPI_Request* request) {
  switch (c.function) {
    case Function::allgather:
      return PMPI_Iallgather(c.send, c.send_count, c.send_type, c.recv, c.recv_count, c.recv_type,
                             c.comm, request);
    case Function::allgatherv:
      return PMPI_Iallgatherv(c.send, c.send_count, c.send_type, c.recv, c.recv_counts,
                              c.recv_displs, c.recv_type, c.comm, request);
    case Function::allreduce:
      return PMPI_Iallreduce(c.send, c.recv, c.recv_count, c.recv_type, c.op, c.comm, request);
    case Function::alltoall:
      return PMPI_Ialltoall(c.send, c.send_count, c.send_type, c.recv, c.recv_count, c.recv_type,
                            c.comm, request);
    case Function::alltoallv:
      return PMPI_Ialltoallv(c.send, c.send_counts, c.send_displs, c.send_type, c.recv,
                             c.recv_counts, c.recv_displs, c.recv_type, c.comm, request);
    case Function::barrier:
      return PMPI_Ibarrier(c.comm, request);
    case Function::bcast:
      return PMPI_Ibcast(c.recv, c.recv_count, c.recv_type, c.root, c.comm, request);
    case Function::exscan:
      return PMPI_Iexscan(c.send, c.recv, c.recv_count, c.recv_type, c.op, c.comm, request);
    case Function::gather:
      return PMPI_Igather(c.send, c.send_count, c.send_type, c.recv, c.recv_count, c.recv_type,
                          c.root, c.comm, request);
    case Function::gatherv:
      return PMPI_Igatherv(c.send, c.send_count, c.send_type, c.recv, c.recv_counts, c.recv_displs,
                           c.recv_type, c.root, c.comm, request);
    case Function::reduce:
      return PMPI_Ireduce(c.send, c.recv, c.recv_count, c.recv_type, c.op, c.root, c.comm, request);
    case Function::reduce_scatter:
      return PMPI_Ireduce_scatter(c.send, c.recv, c.recv_counts, c.recv_type, c.op, c.comm,
                                  request);
    case Function::reduce_scatter_block:
      return PMPI_Ireduce_scatter_block(c.send, c.recv, c.recv_count, c.recv_type, c.op, c.comm,
                                        request);
    case Function::scan:
      return PMPI_Iscan(c.send, c.recv, c.recv_count, c.recv_type, c.op, c.comm, request);
    case Function::scatter:
      return PMPI_Iscatter(c.send, c.send_count, c.send_type, c.recv, c.recv_count, c.recv_type,
                           c.root, c.comm, request);
    case Function::scatterv:
      return PMPI_Iscatterv(c.send, c.send_counts, c.send_displs, c.send_type, c.recv, c.recv_count,
                            c.recv_type, c.root, c.comm, request);
  }
  return MPI_ERR_INTERN;
}

}  // namespace baton::pmpi
