/// The program's messages and completions, from Fortran.

#include "fortran.hpp"

using namespace baton::pmpi::fortran;
using Int = MPI_Fint;

namespace {

/// Fortran counts from 1.
void to_fortran(Int& index) {
  if (index != MPI_UNDEFINED) ++index;
}

}  // namespace

#define SENT buffer(data), *count, type(t), *peer, *tag, comm(c)
#define SEND void *data, Int *count, Int *t, Int *peer, Int *tag, Int *c

FORTRAN(send, SEND, Int* error) { *error = MPI_Send(SENT); }
FORTRAN(ssend, SEND, Int* error) { *error = MPI_Ssend(SENT); }
FORTRAN(rsend, SEND, Int* error) { *error = MPI_Rsend(SENT); }
FORTRAN(recv, SEND, Int* status, Int* error) {
  Statuses statuses(status, 1);
  *error = MPI_Recv(SENT, statuses.one());
}
FORTRAN(mrecv, void* data, Int* count, Int* t, Int* message, Int* status, Int* error) {
  Statuses statuses(status, 1);
  Out<MPI_Message, PMPI_Message_c2f> out(message, PMPI_Message_f2c(*message));
  *error = MPI_Mrecv(buffer(data), *count, type(t), out, statuses.one());
}
FORTRAN(probe, Int* peer, Int* tag, Int* c, Int* status, Int* error) {
  Statuses statuses(status, 1);
  *error = MPI_Probe(*peer, *tag, comm(c), statuses.one());
}
FORTRAN(iprobe, Int* peer, Int* tag, Int* c, Int* found, Int* status, Int* error) {
  Statuses statuses(status, 1);
  *error = MPI_Iprobe(*peer, *tag, comm(c), found, statuses.one());
  statuses.ignored = statuses.ignored || *found == 0;
}
FORTRAN(mprobe, Int* peer, Int* tag, Int* c, Int* message, Int* status, Int* error) {
  Statuses statuses(status, 1);
  Out<MPI_Message, PMPI_Message_c2f> out(message, MPI_MESSAGE_NULL);
  *error = MPI_Mprobe(*peer, *tag, comm(c), out, statuses.one());
}
FORTRAN(improbe, Int* peer, Int* tag, Int* c, Int* found, Int* message, Int* status, Int* error) {
  Statuses statuses(status, 1);
  Out<MPI_Message, PMPI_Message_c2f> out(message, MPI_MESSAGE_NULL);
  *error = MPI_Improbe(*peer, *tag, comm(c), found, out, statuses.one());
  statuses.ignored = statuses.ignored || *found == 0;
}
FORTRAN(sendrecv, void* send, Int* send_count, Int* send_type, Int* to, Int* send_tag, void* recv,
        Int* recv_count, Int* recv_type, Int* from, Int* recv_tag, Int* c, Int* status,
        Int* error) {
  Statuses statuses(status, 1);
  *error = MPI_Sendrecv(buffer(send), *send_count, type(send_type), *to, *send_tag, buffer(recv),
                        *recv_count, type(recv_type), *from, *recv_tag, comm(c), statuses.one());
}
FORTRAN(sendrecv_replace, void* data, Int* count, Int* t, Int* to, Int* send_tag, Int* from,
        Int* recv_tag, Int* c, Int* status, Int* error) {
  Statuses statuses(status, 1);
  *error = MPI_Sendrecv_replace(buffer(data), *count, type(t), *to, *send_tag, *from, *recv_tag,
                                comm(c), statuses.one());
}

FORTRAN(wait, Int* request, Int* status, Int* error) {
  Requests requests(request, 1);
  Statuses statuses(status, 1);
  *error = MPI_Wait(requests.all.data(), statuses.one());
}
FORTRAN(waitall, Int* count, Int* request, Int* status, Int* error) {
  Requests requests(request, *count);
  Statuses statuses(status, *count);
  *error = MPI_Waitall(*count, requests.all.data(), statuses.many());
}
FORTRAN(waitany, Int* count, Int* request, Int* index, Int* status, Int* error) {
  Requests requests(request, *count);
  Statuses statuses(status, 1);
  *error = MPI_Waitany(*count, requests.all.data(), index, statuses.one());
  to_fortran(*index);
}
FORTRAN(waitsome, Int* count, Int* request, Int* done, Int* indices, Int* status, Int* error) {
  Requests requests(request, *count);
  Statuses statuses(status, *count);
  *error = MPI_Waitsome(*count, requests.all.data(), done, indices, statuses.many());
  statuses.limit(*done);
  for (int i = 0; *done != MPI_UNDEFINED && i < *done; ++i) to_fortran(indices[i]);
}

FORTRAN(test, Int* request, Int* flag, Int* status, Int* error) {
  Requests requests(request, 1);
  Statuses statuses(status, 1);
  *error = MPI_Test(requests.all.data(), flag, statuses.one());
  statuses.ignored = statuses.ignored || *flag == 0;
}
FORTRAN(testall, Int* count, Int* request, Int* flag, Int* status, Int* error) {
  Requests requests(request, *count);
  Statuses statuses(status, *count);
  *error = MPI_Testall(*count, requests.all.data(), flag, statuses.many());
  statuses.ignored = statuses.ignored || *flag == 0;
}
FORTRAN(testany, Int* count, Int* request, Int* index, Int* flag, Int* status, Int* error) {
  Requests requests(request, *count);
  Statuses statuses(status, 1);
  *error = MPI_Testany(*count, requests.all.data(), index, flag, statuses.one());
  statuses.ignored = statuses.ignored || *flag == 0;
  to_fortran(*index);
}
FORTRAN(testsome, Int* count, Int* request, Int* done, Int* indices, Int* status, Int* error) {
  Requests requests(request, *count);
  Statuses statuses(status, *count);
  *error = MPI_Testsome(*count, requests.all.data(), done, indices, statuses.many());
  statuses.limit(*done);
  for (int i = 0; *done != MPI_UNDEFINED && i < *done; ++i) to_fortran(indices[i]);
}
FORTRAN(request_get_status, Int* request, Int* flag, Int* status, Int* error) {
  Statuses statuses(status, 1);
  *error = MPI_Request_get_status(PMPI_Request_f2c(*request), flag, statuses.one());
  statuses.ignored = statuses.ignored || *flag == 0;
}
