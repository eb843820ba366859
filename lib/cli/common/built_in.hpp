#pragma once

#include <vector>

#include "case.hpp"
#include "world.hpp"

namespace baton::cli {

/// The case by the MPI library's own collectives, out of place: as one would call them, so with
/// derived datatypes where data is strided. Of several, the one that one would call is the first.
/// Empty where MPI has none: reductions of 8- and 16-bit floats, counts beyond int. Call it on all
/// ranks in the same order. Each may be run, on all ranks, any number of times, before MPI is
/// finalised.
std::vector<BuiltIn> mpi_built_ins(const Case& subject, int rank, const void* input, void* output,
                                   Entry entry);

/// Throws Error(transport) unless `code` is MPI_SUCCESS.
void mpi_checked(int code, const char* function);

}  // namespace baton::cli
