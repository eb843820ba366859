#pragma once
/// A first exchange among all ranks, for example of their places.

#include <algorithm>
#include <type_traits>
#include <vector>

#include "check.hpp"

namespace baton::mpi {

/// The value of each rank, by point-to-point messages in ceil(log2 P) rounds (Bruck's all-gather).
/// Collective.
template <class T>
std::vector<T> gathered(MPI_Comm communicator, const T& own) {
  static_assert(std::is_trivially_copyable_v<T>);
  int rank = 0, size = 1;
  check(MPI_Comm_rank(communicator, &rank), "MPI_Comm_rank");
  check(MPI_Comm_size(communicator, &size), "MPI_Comm_size", rank);
  std::vector<T> values(static_cast<std::size_t>(size));
  values[0] = own;
  // A rank has d values, from its own on; it gets the next d from rank r + d.
  for (int d = 1; d < size; d *= 2) {
    const int bytes = std::min(d, size - d) * static_cast<int>(sizeof(T));
    const int to = (rank - d + size) % size, from = (rank + d) % size;
    check(MPI_Sendrecv(values.data(), bytes, MPI_BYTE, to, 0, values.data() + d, bytes, MPI_BYTE,
                       from, 0, communicator, MPI_STATUS_IGNORE),
          "MPI_Sendrecv", rank, from);
  }
  std::rotate(values.begin(), values.end() - rank, values.end());
  return values;
}

}  // namespace baton::mpi
