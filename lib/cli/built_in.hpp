#pragma once

#include <functional>

#include "exercise.hpp"

namespace baton::cli {

/// The exercise by the MPI library's own collective, out of place: as one would call it, so with
/// derived datatypes where data is strided. Empty where MPI has none: reductions of 16-bit floats,
/// counts beyond int. Call it on all ranks in the same order. The result may be run, on all ranks,
/// any number of times, before MPI is finalised.
std::function<void()> mpi_built_in(const Exercise& exercise, int rank, const void* input,
                                   void* output);

/// Throws Error(transport) unless `code` is MPI_SUCCESS.
void mpi_checked(int code, const char* function);

}  // namespace baton::cli
