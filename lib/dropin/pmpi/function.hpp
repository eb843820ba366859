#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "baton/collective.hpp"
#include "numbers.hpp"

namespace baton::pmpi {

/// The interposed collectives.
enum class Function : std::uint8_t {
  allgather,
  allgatherv,
  allreduce,
  alltoall,
  alltoallv,
  alltoallw,
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

struct FunctionRow {
  std::string_view name;  ///< without "MPI_"; the nonblocking form has an "i" in front
  Collective collective;  ///< ours
};
/// Indexed by Function.
inline constexpr FunctionRow functions[] = {
    {"allgather", Collective::all_gather},
    {"allgatherv", Collective::all_gather},
    {"allreduce", Collective::all_reduce},
    {"alltoall", Collective::all_to_all},
    {"alltoallv", Collective::all_to_all},
    {"alltoallw", Collective::all_to_all},
    {"barrier", Collective::barrier},
    {"bcast", Collective::broadcast},
    {"exscan", Collective::exscan},
    {"gather", Collective::gather},
    {"gatherv", Collective::gather},
    {"reduce", Collective::reduce},
    {"reduce_scatter", Collective::reduce_scatter},
    {"reduce_scatter_block", Collective::reduce_scatter},
    {"scan", Collective::scan},
    {"scatter", Collective::scatter},
    {"scatterv", Collective::scatter},
};
inline constexpr std::size_t function_count = std::size(functions);

/// A call of the program. Members without a parameter of the function keep their defaults. A single
/// count and type are the receiver's, as is MPI_Bcast's buffer.
struct MpiCall {
  Function function{};
  MPI_Comm comm = MPI_COMM_NULL;
  const void* send = nullptr;
  std::int64_t send_count = 0;
  MPI_Datatype send_type = MPI_DATATYPE_NULL;
  Numbers send_counts{}, send_displs{};
  const MPI_Datatype* send_types = nullptr;  ///< of MPI_Alltoallw, whose displacements are bytes
  void* recv = nullptr;
  std::int64_t recv_count = 0;
  MPI_Datatype recv_type = MPI_DATATYPE_NULL;
  Numbers recv_counts{}, recv_displs{};
  const MPI_Datatype* recv_types = nullptr;
  MPI_Op op = MPI_OP_NULL;
  int root = 0;
  /// Makes the call by the MPI library's own function or, with a request, its nonblocking form.
  int (*own)(const MpiCall& call, MPI_Request* request) = nullptr;
};

/// Runs a call of the program by our collectives, or passes it on. Returns an MPI error code.
int run(const MpiCall& call);
/// The same, nonblocking.
int start(const MpiCall& call, MPI_Request* request);

}  // namespace baton::pmpi
