#include "places.hpp"

#include <algorithm>

#include "check.hpp"

namespace baton::mpi {

// Bruck's all-gather: having d places from its own on, each rank gets the next d from rank r + d.
std::vector<Place> gathered_places(MPI_Comm communicator) {
  int rank = 0, size = 1;
  check(MPI_Comm_rank(communicator, &rank), "MPI_Comm_rank");
  check(MPI_Comm_size(communicator, &size), "MPI_Comm_size", rank);
  std::vector<Place> places(static_cast<std::size_t>(size));
  places[0] = own_place();
  for (int d = 1; d < size; d *= 2) {
    const int bytes = std::min(d, size - d) * static_cast<int>(sizeof(Place));
    const int to = (rank - d + size) % size, from = (rank + d) % size;
    check(MPI_Sendrecv(places.data(), bytes, MPI_BYTE, to, 0, places.data() + d, bytes, MPI_BYTE,
                       from, 0, communicator, MPI_STATUS_IGNORE),
          "MPI_Sendrecv", rank, from);
  }
  std::rotate(places.begin(), places.end() - rank, places.end());
  return places;
}

}  // namespace baton::mpi
