#pragma once

#include <mpi.h>

#include <string_view>

#include "stats.hpp"

namespace baton::pmpi {

inline constexpr const char* not_taken_over = "a function that is not taken over";

/// The drop-in's statistics; null if they are off.
Stats* statistics();

/// Counts a call that the MPI library makes, for statistics. `name`: MPI's, which outlives them.
/// `why`: the reason for passing it on.
void count_passed_on(std::string_view name, MPI_Comm comm, const char* why, double seconds = 0);

/// The same for the call that makes a persistent collective.
void count_persistent(std::string_view name, MPI_Comm comm);

/// Makes a call of the MPI library's and counts it with its time.
template <class Call>
int counted(std::string_view name, MPI_Comm comm, const char* why, const Call& call) {
  const Stopwatch watch(statistics());
  const int code = call();
  count_passed_on(name, comm, why, watch.seconds());
  return code;
}

}  // namespace baton::pmpi
