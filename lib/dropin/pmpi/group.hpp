#pragma once

#include <mpi.h>

#include <memory>
#include <mutex>

#include "baton/communicator.hpp"

namespace baton::pmpi {

/// The ranks of one communicator of the program, and the private one over which their collectives
/// run. It outlives the program's while an operation on it is under way.
struct Group {
  Group(MPI_Comm own, Communicator communicator, const Group* family)
      : own(own),
        communicator(std::move(communicator)),
        family(family ? family->family : this),
        rank(this->communicator.rank()),
        size(this->communicator.size()) {}

  const MPI_Comm own;  ///< the private communicator; the transport frees it
  Communicator communicator;
  const void* const family;  ///< the same where to progress one is to progress all
  const int rank, size;
  std::mutex mutex;  ///< held while `communicator` is used
};

}  // namespace baton::pmpi
