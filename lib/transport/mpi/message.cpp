#include "message.hpp"

#include <sched.h>

#include <cassert>

#include "check.hpp"

namespace baton::mpi {

Ending give_up(MPI_Request& request, bool receive, int rank, int peer) {
  if (request == MPI_REQUEST_NULL) return Ending::complete;
  if (receive) check(MPI_Cancel(&request), "MPI_Cancel", rank, peer);
  // A receive that was not matched is complete now. What is under way may still become so.
  for (int attempt = 0; attempt < 100; ++attempt) {
    int complete = 0, cancelled = 0;
    MPI_Status status;
    const int code = MPI_Test(&request, &complete, &status);
    if (complete != 0 || request == MPI_REQUEST_NULL) {
      check(MPI_Test_cancelled(&status, &cancelled), "MPI_Test_cancelled", rank, peer);
      return cancelled != 0 ? Ending::cancelled : Ending::complete;
    }
    if (code != MPI_SUCCESS) break;
    sched_yield();
  }
  check(MPI_Request_free(&request), "MPI_Request_free", rank, peer);
  return Ending::unknown;
}

LongType::LongType(std::size_t bytes, std::size_t block) {
  assert(block <= most_bytes && bytes / block <= most_bytes);
  const auto blocks = static_cast<int>(bytes / block);
  MPI_Datatype one = MPI_DATATYPE_NULL;
  check(MPI_Type_contiguous(static_cast<int>(block), MPI_BYTE, &one), "MPI_Type_contiguous");
  const int lengths[] = {blocks, static_cast<int>(bytes % block)};
  const MPI_Aint offsets[] = {0, static_cast<MPI_Aint>(bytes - bytes % block)};
  const MPI_Datatype types[] = {one, MPI_BYTE};
  const int made = MPI_Type_create_struct(2, lengths, offsets, types, &type_);
  check(MPI_Type_free(&one), "MPI_Type_free");
  check(made, "MPI_Type_create_struct");
  check(MPI_Type_commit(&type_), "MPI_Type_commit");
}

LongType::~LongType() {
  // Nothing can be done about a failure here but to keep the type.
  if (type_ != MPI_DATATYPE_NULL && MPI_Type_free(&type_) != MPI_SUCCESS) type_ = MPI_DATATYPE_NULL;
}

}  // namespace baton::mpi
