#pragma once

#include <mpi.h>

#include <memory>
#include <mutex>

#include "baton/communicator.hpp"

namespace baton::pmpi {

/// The ranks of one communicator of the program, with a private communicator for their collectives.
/// It outlives the program's communicator while an operation on it is under way.
struct Group {
  Group(MPI_Comm own, const Transport& messages, Communicator communicator, const Group* family)
      : own(own),
        messages(messages),
        communicator(std::move(communicator)),
        family(family ? family->family : this),
        rank(this->communicator.rank()),
        size(this->communicator.size()) {}
  ~Group() {
    if (handler != MPI_ERRHANDLER_NULL) PMPI_Errhandler_free(&handler);
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  const MPI_Comm own;         ///< the private communicator; the transport frees it
  const Transport& messages;  ///< the communicator's, beneath checksums
  Communicator communicator;
  const void* const family;  ///< equal for groups that advance together
  const int rank, size;
  std::mutex mutex;                              ///< held while `communicator` is in use
  MPI_Comm comm = MPI_COMM_NULL;                 ///< the program's; null once it is freed
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;  ///< that of `comm` when it was freed
};

}  // namespace baton::pmpi
