#pragma once
/// MPI's return codes as errors, and the MPI library's version.

#include <string>

#include "baton/mpi.hpp"

namespace baton::mpi {

/// Throws Error(transport) with the code, MPI's own text for it, and the call's name.
[[noreturn]] void fail(int code, const char* call, int rank = -1, int peer = -1);

/// Consumes the code of an MPI call.
inline void check(int code, const char* call, int rank = -1, int peer = -1) {
  if (code != MPI_SUCCESS) [[unlikely]]
    fail(code, call, rank, peer);
}

/// For example "Open MPI v4.1.4".
std::string library_version();

}  // namespace baton::mpi
