#pragma once
/// Counts the calls of MPI's functions in this program, whoever makes them.

#include <cstdint>
#include <string>

namespace interposed {

std::int64_t collective_calls();  ///< of MPI_Allreduce, PMPI_Ibcast and so on
std::int64_t send_calls();        ///< of MPI_Isend, MPI_Send and MPI_Sendrecv
std::int64_t sent_bytes();        ///< by these
std::string last_collective();    ///< the name of the last of them

}  // namespace interposed
