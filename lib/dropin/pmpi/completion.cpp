/// The program's point-to-point messages and completions. Our operations advance while these calls
/// wait, and in each call that tests.

#include <cstddef>
#include <limits>
#include <vector>

#include "progress.hpp"

using baton::pmpi::advancing;
using baton::pmpi::DropIn;
using baton::pmpi::Failures;
using baton::pmpi::wait_for;

namespace {

/// A call that waits: called directly if no operation of ours can be under way, else attempted
/// repeatedly.
template <class Direct, class Attempt>
int waiting(const Direct& direct, const Attempt& attempt) {
  DropIn* const drop_in = DropIn::now();
  if (!drop_in || !drop_in->must_advance()) return direct();
  return advancing(*drop_in, attempt);
}

/// A call that does not wait.
template <class Call>
int looking(const Call& call) {
  if (DropIn* const drop_in = DropIn::now()) drop_in->advance();
  return call();
}

/// A blocking send or receive: called directly, or started and awaited.
template <class Direct, class Start>
int transfer(const Direct& direct, const Start& start, MPI_Status* status = MPI_STATUS_IGNORE) {
  DropIn* const drop_in = DropIn::now();
  if (!drop_in || !drop_in->must_advance()) return direct();
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = start(&request);
  return code != MPI_SUCCESS ? code : wait_for(*drop_in, request, status);
}

/// MPI_Sendrecv_replace: called directly, or as an exchange of a packed copy, since
/// MPI_Isendrecv_replace of MPICH 4.0 does not take MPI_BOTTOM.
template <class Count, class Direct, class Exchange>
int replacing(const void* data, Count count, MPI_Datatype type, MPI_Comm comm, const Direct& direct,
              const Exchange& exchange) {
  DropIn* const drop_in = DropIn::now();
  if (!drop_in || !drop_in->must_advance() || count < 0) return direct();
  const auto* const info = drop_in->datatypes().find(type);
  if (!info || (info->size > 0 && count > std::numeric_limits<Count>::max() / info->size))
    return direct();
  const auto bytes = static_cast<Count>(count * info->size);
  // One byte more: Open MPI refuses a null address even if there is nothing to send.
  std::vector<std::byte> packed(static_cast<std::size_t>(bytes) + 1);
  const int code = drop_in->datatypes().pack(data, 0, count, type, *info, packed.data());
  return code != MPI_SUCCESS ? baton::pmpi::raise(comm, code) : exchange(packed.data(), bytes);
}

}  // namespace

extern "C" {

int MPI_Send(const void* data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm) {
  return transfer(
      [&] { return PMPI_Send(data, count, type, peer, tag, comm); },
      [&](MPI_Request* r) { return PMPI_Isend(data, count, type, peer, tag, comm, r); });
}

int MPI_Ssend(const void* data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm) {
  return transfer(
      [&] { return PMPI_Ssend(data, count, type, peer, tag, comm); },
      [&](MPI_Request* r) { return PMPI_Issend(data, count, type, peer, tag, comm, r); });
}

int MPI_Rsend(const void* data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm) {
  return transfer(
      [&] { return PMPI_Rsend(data, count, type, peer, tag, comm); },
      [&](MPI_Request* r) { return PMPI_Irsend(data, count, type, peer, tag, comm, r); });
}

int MPI_Recv(void* data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
             MPI_Status* status) {
  return transfer([&] { return PMPI_Recv(data, count, type, peer, tag, comm, status); },
                  [&](MPI_Request* r) { return PMPI_Irecv(data, count, type, peer, tag, comm, r); },
                  status);
}

int MPI_Mrecv(void* data, int count, MPI_Datatype type, MPI_Message* message, MPI_Status* status) {
  return transfer([&] { return PMPI_Mrecv(data, count, type, message, status); },
                  [&](MPI_Request* r) { return PMPI_Imrecv(data, count, type, message, r); },
                  status);
}

int MPI_Probe(int peer, int tag, MPI_Comm comm, MPI_Status* status) {
  return waiting([&] { return PMPI_Probe(peer, tag, comm, status); },
                 [&](int* over) { return PMPI_Iprobe(peer, tag, comm, over, status); });
}

int MPI_Mprobe(int peer, int tag, MPI_Comm comm, MPI_Message* message, MPI_Status* status) {
  return waiting([&] { return PMPI_Mprobe(peer, tag, comm, message, status); },
                 [&](int* over) { return PMPI_Improbe(peer, tag, comm, over, message, status); });
}

int MPI_Iprobe(int peer, int tag, MPI_Comm comm, int* found, MPI_Status* status) {
  return looking([&] { return PMPI_Iprobe(peer, tag, comm, found, status); });
}

int MPI_Improbe(int peer, int tag, MPI_Comm comm, int* found, MPI_Message* message,
                MPI_Status* status) {
  return looking([&] { return PMPI_Improbe(peer, tag, comm, found, message, status); });
}

int MPI_Sendrecv(const void* send, int send_count, MPI_Datatype send_type, int to, int send_tag,
                 void* recv, int recv_count, MPI_Datatype recv_type, int from, int recv_tag,
                 MPI_Comm comm, MPI_Status* status) {
  DropIn* const drop_in = DropIn::now();
  if (!drop_in || !drop_in->must_advance())
    return PMPI_Sendrecv(send, send_count, send_type, to, send_tag, recv, recv_count, recv_type,
                         from, recv_tag, comm, status);
  MPI_Request receiving = MPI_REQUEST_NULL, sending = MPI_REQUEST_NULL;
  int code = PMPI_Irecv(recv, recv_count, recv_type, from, recv_tag, comm, &receiving);
  if (code != MPI_SUCCESS) return code;
  code = PMPI_Isend(send, send_count, send_type, to, send_tag, comm, &sending);
  if (code != MPI_SUCCESS) {
    PMPI_Cancel(&receiving);
    PMPI_Wait(&receiving, MPI_STATUS_IGNORE);
    return code;
  }
  const int received = wait_for(*drop_in, receiving, status);
  const int sent = wait_for(*drop_in, sending, MPI_STATUS_IGNORE);
  return received != MPI_SUCCESS ? received : sent;
}

int MPI_Sendrecv_replace(void* data, int count, MPI_Datatype type, int to, int send_tag, int from,
                         int recv_tag, MPI_Comm comm, MPI_Status* status) {
  return replacing(
      data, count, type, comm,
      [&] {
        return PMPI_Sendrecv_replace(data, count, type, to, send_tag, from, recv_tag, comm, status);
      },
      [&](const void* packed, int bytes) {
        return MPI_Sendrecv(packed, bytes, MPI_PACKED, to, send_tag, data, count, type, from,
                            recv_tag, comm, status);
      });
}

int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  const Failures failures;
  return failures.raised(waiting([&] { return PMPI_Wait(request, status); },
                                 [&](int* over) { return PMPI_Test(request, over, status); }));
}

int MPI_Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  const Failures failures(count, requests);
#ifdef MPICH_VERSION
  // MPI_Testall of MPICH 4.0 does not know persistent collectives.
  DropIn* const drop_in = DropIn::now();
  if (drop_in && drop_in->must_advance() && drop_in->has_persistent()) {
    int next = 0;
    drop_in->until([&] {
      int over = 1;
      while (next < count && over != 0) {
        if (PMPI_Request_get_status(requests[next], &over, MPI_STATUS_IGNORE) != MPI_SUCCESS)
          over = 1;  // MPI_Waitall reports it
        if (over != 0) ++next;
      }
      return next >= count;
    });
    const int code = PMPI_Waitall(count, requests, statuses);
    return failures.raised(code, &count, nullptr, statuses);
  }
#endif
  const int code =
      waiting([&] { return PMPI_Waitall(count, requests, statuses); },
              [&](int* over) { return PMPI_Testall(count, requests, over, statuses); });
  return failures.raised(code, &count, nullptr, statuses);
}

int MPI_Waitany(int count, MPI_Request* requests, int* index, MPI_Status* status) {
  const Failures failures;
  return failures.raised(
      waiting([&] { return PMPI_Waitany(count, requests, index, status); },
              [&](int* over) { return PMPI_Testany(count, requests, index, over, status); }));
}

int MPI_Waitsome(int count, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses) {
  const Failures failures(count, requests);
  const int code = waiting([&] { return PMPI_Waitsome(count, requests, done, indices, statuses); },
                           [&](int* over) {
                             const int tested =
                                 PMPI_Testsome(count, requests, done, indices, statuses);
                             *over = *done != 0 ? 1 : 0;  // MPI_UNDEFINED: no request is active
                             return tested;
                           });
  return failures.raised(code, done, indices, statuses);
}

int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  const Failures failures;
  return failures.raised(looking([&] { return PMPI_Test(request, flag, status); }));
}

int MPI_Testall(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
  Failures failures(count, requests);
  const int code = looking([&] { return PMPI_Testall(count, requests, flag, statuses); });
  if (code == MPI_SUCCESS && *flag == 0) failures.forget();
  return failures.raised(code, &count, nullptr, statuses);
}

int MPI_Testany(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  const Failures failures;
  return failures.raised(
      looking([&] { return PMPI_Testany(count, requests, index, flag, status); }));
}

int MPI_Testsome(int count, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses) {
  const Failures failures(count, requests);
  const int code = looking([&] { return PMPI_Testsome(count, requests, done, indices, statuses); });
  return failures.raised(code, done, indices, statuses);
}

int MPI_Request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
  const Failures unraised;  // until the request is completed
  return looking([&] { return PMPI_Request_get_status(request, flag, status); });
}

#if MPI_VERSION >= 4  // the same with large counts

int MPI_Send_c(const void* data, MPI_Count count, MPI_Datatype type, int peer, int tag,
               MPI_Comm comm) {
  return transfer(
      [&] { return PMPI_Send_c(data, count, type, peer, tag, comm); },
      [&](MPI_Request* r) { return PMPI_Isend_c(data, count, type, peer, tag, comm, r); });
}

int MPI_Ssend_c(const void* data, MPI_Count count, MPI_Datatype type, int peer, int tag,
                MPI_Comm comm) {
  return transfer(
      [&] { return PMPI_Ssend_c(data, count, type, peer, tag, comm); },
      [&](MPI_Request* r) { return PMPI_Issend_c(data, count, type, peer, tag, comm, r); });
}

int MPI_Rsend_c(const void* data, MPI_Count count, MPI_Datatype type, int peer, int tag,
                MPI_Comm comm) {
  return transfer(
      [&] { return PMPI_Rsend_c(data, count, type, peer, tag, comm); },
      [&](MPI_Request* r) { return PMPI_Irsend_c(data, count, type, peer, tag, comm, r); });
}

int MPI_Recv_c(void* data, MPI_Count count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
               MPI_Status* status) {
  return transfer(
      [&] { return PMPI_Recv_c(data, count, type, peer, tag, comm, status); },
      [&](MPI_Request* r) { return PMPI_Irecv_c(data, count, type, peer, tag, comm, r); }, status);
}

int MPI_Mrecv_c(void* data, MPI_Count count, MPI_Datatype type, MPI_Message* message,
                MPI_Status* status) {
  return transfer([&] { return PMPI_Mrecv_c(data, count, type, message, status); },
                  [&](MPI_Request* r) { return PMPI_Imrecv_c(data, count, type, message, r); },
                  status);
}

int MPI_Sendrecv_c(const void* send, MPI_Count send_count, MPI_Datatype send_type, int to,
                   int send_tag, void* recv, MPI_Count recv_count, MPI_Datatype recv_type, int from,
                   int recv_tag, MPI_Comm comm, MPI_Status* status) {
  return transfer(
      [&] {
        return PMPI_Sendrecv_c(send, send_count, send_type, to, send_tag, recv, recv_count,
                               recv_type, from, recv_tag, comm, status);
      },
      [&](MPI_Request* r) {
        return PMPI_Isendrecv_c(send, send_count, send_type, to, send_tag, recv, recv_count,
                                recv_type, from, recv_tag, comm, r);
      },
      status);
}

int MPI_Sendrecv_replace_c(void* data, MPI_Count count, MPI_Datatype type, int to, int send_tag,
                           int from, int recv_tag, MPI_Comm comm, MPI_Status* status) {
  return replacing(
      data, count, type, comm,
      [&] {
        return PMPI_Sendrecv_replace_c(data, count, type, to, send_tag, from, recv_tag, comm,
                                       status);
      },
      [&](const void* packed, MPI_Count bytes) {
        return MPI_Sendrecv_c(packed, bytes, MPI_PACKED, to, send_tag, data, count, type, from,
                              recv_tag, comm, status);
      });
}

#endif

}  // extern "C"
