/// The program's collectives among neighbours, which the MPI library makes.

#include "forms.hpp"
#include "passed_on.hpp"
#include "progress.hpp"

namespace baton::pmpi {
namespace {

/// Passes a blocking call on as its nonblocking form, in which operations of ours advance. All
/// ranks choose the same form, so the choice depends on settings alone. own(request) makes the call
/// in one of its two forms.
template <class Own>
int among_neighbours(const char* name, MPI_Comm comm, const Own& own) {
  return counted(name, comm, not_taken_over, [&] {
    DropIn* const drop_in = DropIn::now();
    if (!drop_in || !drop_in->can_be_pending()) return own(nullptr);
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = own(&request);
    return code != MPI_SUCCESS ? code : wait_for(*drop_in, request, MPI_STATUS_IGNORE);
  });
}

}  // namespace
}  // namespace baton::pmpi

// A function and its nonblocking form.
#define TWO_FORMS(name, nonblocking, parameters, arguments)                           \
  DEFINE(name, parameters) {                                                          \
    return among_neighbours(#name, comm, [&](MPI_Request* request) {                  \
      return request ? P##nonblocking(UNPACK arguments, request) : P##name arguments; \
    });                                                                               \
  }                                                                                   \
  PASSED_ON(nonblocking, (UNPACK parameters, MPI_Request * request), (UNPACK arguments, request))

#define PASSED_ON(name, parameters, arguments)    \
  DEFINE(name, parameters) {                      \
    const int code = P##name arguments;           \
    count_passed_on(#name, comm, not_taken_over); \
    return code;                                  \
  }
#define PERSISTENT_FORM(name, parameters, arguments) PERSISTENT_NAMED(name, parameters, arguments)
#define PERSISTENT_NAMED(name, parameters, arguments)                       \
  DEFINE(name, (UNPACK parameters, MPI_Info info, MPI_Request * request)) { \
    const int code = P##name(UNPACK arguments, info, request);              \
    count_persistent(#name, comm);                                          \
    return code;                                                            \
  }

#define NEIGHBOURS(name, parameters, arguments)                                           \
  namespace baton::pmpi::narrow {                                                         \
  TWO_FORMS(MPI_Neighbor_##name, MPI_Ineighbor_##name, parameters, arguments)             \
  WITH_PERSISTENT(PERSISTENT_FORM(PERSISTENT(Neighbor_##name), parameters, arguments))    \
  }                                                                                       \
  WITH_LARGE_FORMS(namespace baton::pmpi::wide{                                           \
      TWO_FORMS(MPI_Neighbor_##name##_c, MPI_Ineighbor_##name##_c, parameters, arguments) \
          PERSISTENT_FORM(MPI_Neighbor_##name##_init_c, parameters, arguments)})

#define SEND const void *send, Count send_count, MPI_Datatype send_type
#define SENT send, send_count, send_type
#define TO_EACH(At) const void *send, const Count *send_counts, const At *send_displs
#define FROM_EACH(At) void *recv, const Count *recv_counts, const At *recv_displs
#define RECV void *recv, Count recv_count, MPI_Datatype recv_type
#define RECEIVED recv, recv_count, recv_type
#define SENT_TO_EACH send, send_counts, send_displs
#define RECEIVED_FROM_EACH recv, recv_counts, recv_displs

NEIGHBOURS(allgather, (SEND, RECV, MPI_Comm comm), (SENT, RECEIVED, comm))
NEIGHBOURS(allgatherv, (SEND, FROM_EACH(Displacement), MPI_Datatype recv_type, MPI_Comm comm),
           (SENT, RECEIVED_FROM_EACH, recv_type, comm))
NEIGHBOURS(alltoall, (SEND, RECV, MPI_Comm comm), (SENT, RECEIVED, comm))
NEIGHBOURS(alltoallv,
           (TO_EACH(Displacement), MPI_Datatype send_type, FROM_EACH(Displacement),
            MPI_Datatype recv_type, MPI_Comm comm),
           (SENT_TO_EACH, send_type, RECEIVED_FROM_EACH, recv_type, comm))
NEIGHBOURS(alltoallw,
           (TO_EACH(MPI_Aint), const MPI_Datatype* send_types, FROM_EACH(MPI_Aint),
            const MPI_Datatype* recv_types, MPI_Comm comm),
           (SENT_TO_EACH, send_types, RECEIVED_FROM_EACH, recv_types, comm))
