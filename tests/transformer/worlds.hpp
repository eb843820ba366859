#pragma once
/// The same tests on threads and under mpirun, and how their results are compared.

#include <functional>
#include <string>
#include <vector>

#include "support/ranks.hpp"
#include "support/sanitizer.hpp"
#include "transformer/training/compare.hpp"
#ifdef BATON_TEST_MPI
#include "baton/mpi.hpp"
#endif

namespace support {

/// Runs `body` on every rank of worlds of 1, 2, 3, 4 and 8 threads (8 not under a sanitizer, where
/// they take a third to two thirds of the time); under mpirun, of its processes.
inline void on_worlds(const std::function<void(baton::Communicator&)>& body) {
#ifdef BATON_TEST_MPI
  baton::Communicator world(baton::mpi_transport(MPI_COMM_WORLD), test_options());
  body(world);
#else
  for (const int size : {1, 2, 3, 4, 8})
    if (size < 8 || !under_sanitizer) on_ranks(size, body);
#endif
}

/// What sums in another order may differ by, relative to the largest element.
template <class T>
constexpr double rounding = sizeof(T) == 8 ? 1e-12 : 1e-5;

template <class T>
bool equal(const baton::transformer::Array<T>& found, const baton::transformer::Array<T>& expected,
           double tolerance = rounding<T>) {
  return baton::transformer::compare_tensors<T>(found, expected, tolerance).match;
}

inline bool equal(double found, double expected, double tolerance) {
  return std::abs(found - expected) <= tolerance * std::abs(expected);
}

}  // namespace support
