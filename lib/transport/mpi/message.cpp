#include "message.hpp"

#include <sched.h>

#include <algorithm>
#include <cassert>

#include "../last_polls.hpp"
#include "check.hpp"

namespace baton::mpi {

std::size_t length(const MPI_Status& status) {
  int few = 0;
  check(MPI_Get_count(&status, MPI_BYTE, &few), "MPI_Get_count");
  if (few >= 0) [[likely]]
    return static_cast<std::size_t>(few);
  MPI_Count bytes = 0;
  check(MPI_Get_elements_x(&status, MPI_BYTE, &bytes), "MPI_Get_elements_x");
  return static_cast<std::size_t>(bytes);
}

std::size_t failed(int code, const char* call, Pending& pending, const MPI_Status& status,
                   int rank) {
  int kind = MPI_ERR_UNKNOWN;
  check(MPI_Error_class(code, &kind), "MPI_Error_class", rank, pending.peer);
  if (pending.request != MPI_REQUEST_NULL)
    check(MPI_Request_free(&pending.request), "MPI_Request_free", rank, pending.peer);
  if (kind != MPI_ERR_TRUNCATE || !pending.receive) fail(code, call, rank, pending.peer);
  return std::max(length(status), pending.bytes + 1);
}

Ending give_up(MPI_Request& request, bool receive, int rank, int peer) {
  if (request == MPI_REQUEST_NULL) return Ending::complete;
  if (receive) check(MPI_Cancel(&request), "MPI_Cancel", rank, peer);
  // An unmatched receive is complete now. A message under way may still complete.
  for (transport::LastPolls polls; polls.again();) {
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

void Elements::make_type(std::size_t bytes) {
  constexpr std::size_t block = std::size_t{1} << 30;
  assert(bytes / block <= std::numeric_limits<int>::max());
  MPI_Datatype one = MPI_DATATYPE_NULL;
  check(MPI_Type_contiguous(static_cast<int>(block), MPI_BYTE, &one), "MPI_Type_contiguous");
  const int lengths[] = {static_cast<int>(bytes / block), static_cast<int>(bytes % block)};
  const MPI_Aint offsets[] = {0, static_cast<MPI_Aint>(bytes - bytes % block)};
  const MPI_Datatype types[] = {one, MPI_BYTE};
  const int made = MPI_Type_create_struct(2, lengths, offsets, types, &type_);
  check(MPI_Type_free(&one), "MPI_Type_free");
  check(made, "MPI_Type_create_struct");
  check(MPI_Type_commit(&type_), "MPI_Type_commit");
  count_ = 1;
}

void Elements::free_type() noexcept {
  // A destructor cannot report this failure: the type is kept.
  if (MPI_Type_free(&type_) != MPI_SUCCESS) type_ = MPI_DATATYPE_NULL;
}

}  // namespace baton::mpi
