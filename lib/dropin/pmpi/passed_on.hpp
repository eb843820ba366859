#pragma once

#include <mpi.h>

#include <chrono>
#include <string>

namespace baton::pmpi {

inline constexpr const char* not_taken_over = "a function that is not taken over";

/// Counts a call that the MPI library makes, for statistics. `name`: MPI's. `why`: the reason for
/// passing it on.
void count_passed_on(const std::string& name, MPI_Comm comm, const char* why, double seconds = 0);

/// The same for the call that makes a persistent collective.
void count_persistent(const std::string& name, MPI_Comm comm);

/// Makes a call of the MPI library's and counts it with its time.
template <class Call>
int counted(const std::string& name, MPI_Comm comm, const char* why, const Call& call) {
  const auto begin = std::chrono::steady_clock::now();
  const int code = call();
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  count_passed_on(name, comm, why, taken.count());
  return code;
}

}  // namespace baton::pmpi
