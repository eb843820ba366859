#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace baton::pmpi {

/// The interposed collectives.
enum class Function : std::uint8_t {
  allgather,
  allgatherv,
  allreduce,
  alltoall,
  alltoallv,
  barrier,
  bcast,
  exscan,
  gather,
  gatherv,
  reduce,
  reduce_scatter,
  reduce_scatter_block,
  scan,
  scatter,
  scatterv
};
inline constexpr std::size_t function_count = 16;

/// Names without "MPI_". The nonblocking form has an "i" in front.
inline constexpr std::array<std::string_view, function_count> function_names{"allgather",
                                                                             "allgatherv",
                                                                             "allreduce",
                                                                             "alltoall",
                                                                             "alltoallv",
                                                                             "barrier",
                                                                             "bcast",
                                                                             "exscan",
                                                                             "gather",
                                                                             "gatherv",
                                                                             "reduce",
                                                                             "reduce_scatter",
                                                                             "reduce_scatter_block",
                                                                             "scan",
                                                                             "scatter",
                                                                             "scatterv"};

/// A call of the program. Members without a parameter of the function keep their defaults. A single
/// count and type are the receiver's, as is MPI_Bcast's buffer.
struct MpiCall {
  Function function{};
  MPI_Comm comm = MPI_COMM_NULL;
  const void* send = nullptr;
  int send_count = 0;
  MPI_Datatype send_type = MPI_DATATYPE_NULL;
  const int* send_counts = nullptr;
  const int* send_displs = nullptr;
  void* recv = nullptr;
  int recv_count = 0;
  MPI_Datatype recv_type = MPI_DATATYPE_NULL;
  const int* recv_counts = nullptr;
  const int* recv_displs = nullptr;
  MPI_Op op = MPI_OP_NULL;
  int root = 0;
};

/// Calls the MPI library's own function.
int own(const MpiCall& call);
/// Calls its own nonblocking function.
int own(const MpiCall& call, MPI_Request* request);

}  // namespace baton::pmpi
