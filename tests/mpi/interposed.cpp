#include "interposed.hpp"

#include <dlfcn.h>
#include <mpi.h>

#include <atomic>

// MPI's collectives under both of their names. The program's own definitions come before the
// library's for every shared object in it, so a call from anywhere passes here first.

namespace {

std::atomic<std::int64_t> collectives{0}, sends{0}, bytes{0};
std::atomic<const char*> last{""};

void note(const char* name) {
  ++collectives;
  last = name;
}

void note_send(int n, MPI_Datatype t) {
  int each = 0;
  MPI_Type_size(t, &each);
  ++sends;
  bytes += std::int64_t{n} * each;
}

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

namespace interposed {

std::int64_t collective_calls() { return collectives; }
std::int64_t send_calls() { return sends; }
std::int64_t sent_bytes() { return bytes; }
std::string last_collective() { return last.load(); }

}  // namespace interposed

// One definition needs its signature and its arguments; a function could not serve.
#define INTERPOSE_ONE(name, parameters, arguments)   \
  extern "C" int name parameters {                   \
    note(#name);                                     \
    return next<int(*) parameters>(#name) arguments; \
  }
#define INTERPOSE(name, parameters, arguments)     \
  INTERPOSE_ONE(MPI_##name, parameters, arguments) \
  INTERPOSE_ONE(PMPI_##name, parameters, arguments)

#define IN const void *in, int n, MPI_Datatype t
#define OUT void *out, int m, MPI_Datatype u
#define OUT_V void *out, const int *m, const int *at, MPI_Datatype u
#define IN_V const void *in, const int *n, const int *from, MPI_Datatype t
#define ONTO MPI_Comm c
#define LATER MPI_Comm c, MPI_Request *r
#define OF const void *in, void *out, int n, MPI_Datatype t, MPI_Op op

INTERPOSE(Barrier, (ONTO), (c))
INTERPOSE(Bcast, (void* in, int n, MPI_Datatype t, int root, ONTO), (in, n, t, root, c))
INTERPOSE(Gather, (IN, OUT, int root, ONTO), (in, n, t, out, m, u, root, c))
INTERPOSE(Gatherv, (IN, OUT_V, int root, ONTO), (in, n, t, out, m, at, u, root, c))
INTERPOSE(Scatter, (IN, OUT, int root, ONTO), (in, n, t, out, m, u, root, c))
INTERPOSE(Scatterv, (IN_V, OUT, int root, ONTO), (in, n, from, t, out, m, u, root, c))
INTERPOSE(Allgather, (IN, OUT, ONTO), (in, n, t, out, m, u, c))
INTERPOSE(Allgatherv, (IN, OUT_V, ONTO), (in, n, t, out, m, at, u, c))
INTERPOSE(Alltoall, (IN, OUT, ONTO), (in, n, t, out, m, u, c))
INTERPOSE(Alltoallv, (IN_V, OUT_V, ONTO), (in, n, from, t, out, m, at, u, c))
INTERPOSE(Alltoallw,
          (const void* in, const int* n, const int* from, const MPI_Datatype* t, void* out,
           const int* m, const int* at, const MPI_Datatype* u, ONTO),
          (in, n, from, t, out, m, at, u, c))
INTERPOSE(Reduce, (OF, int root, ONTO), (in, out, n, t, op, root, c))
INTERPOSE(Allreduce, (OF, ONTO), (in, out, n, t, op, c))
INTERPOSE(Scan, (OF, ONTO), (in, out, n, t, op, c))
INTERPOSE(Exscan, (OF, ONTO), (in, out, n, t, op, c))
INTERPOSE(Reduce_scatter_block, (OF, ONTO), (in, out, n, t, op, c))
INTERPOSE(Reduce_scatter,
          (const void* in, void* out, const int* n, MPI_Datatype t, MPI_Op op, ONTO),
          (in, out, n, t, op, c))

INTERPOSE(Ibarrier, (LATER), (c, r))
INTERPOSE(Ibcast, (void* in, int n, MPI_Datatype t, int root, LATER), (in, n, t, root, c, r))
INTERPOSE(Igather, (IN, OUT, int root, LATER), (in, n, t, out, m, u, root, c, r))
INTERPOSE(Igatherv, (IN, OUT_V, int root, LATER), (in, n, t, out, m, at, u, root, c, r))
INTERPOSE(Iscatter, (IN, OUT, int root, LATER), (in, n, t, out, m, u, root, c, r))
INTERPOSE(Iscatterv, (IN_V, OUT, int root, LATER), (in, n, from, t, out, m, u, root, c, r))
INTERPOSE(Iallgather, (IN, OUT, LATER), (in, n, t, out, m, u, c, r))
INTERPOSE(Iallgatherv, (IN, OUT_V, LATER), (in, n, t, out, m, at, u, c, r))
INTERPOSE(Ialltoall, (IN, OUT, LATER), (in, n, t, out, m, u, c, r))
INTERPOSE(Ialltoallv, (IN_V, OUT_V, LATER), (in, n, from, t, out, m, at, u, c, r))
INTERPOSE(Ialltoallw,
          (const void* in, const int* n, const int* from, const MPI_Datatype* t, void* out,
           const int* m, const int* at, const MPI_Datatype* u, LATER),
          (in, n, from, t, out, m, at, u, c, r))
INTERPOSE(Ireduce, (OF, int root, LATER), (in, out, n, t, op, root, c, r))
INTERPOSE(Iallreduce, (OF, LATER), (in, out, n, t, op, c, r))
INTERPOSE(Iscan, (OF, LATER), (in, out, n, t, op, c, r))
INTERPOSE(Iexscan, (OF, LATER), (in, out, n, t, op, c, r))
INTERPOSE(Ireduce_scatter_block, (OF, LATER), (in, out, n, t, op, c, r))
INTERPOSE(Ireduce_scatter,
          (const void* in, void* out, const int* n, MPI_Datatype t, MPI_Op op, LATER),
          (in, out, n, t, op, c, r))

INTERPOSE(Neighbor_allgather, (IN, OUT, ONTO), (in, n, t, out, m, u, c))
INTERPOSE(Neighbor_allgatherv, (IN, OUT_V, ONTO), (in, n, t, out, m, at, u, c))
INTERPOSE(Neighbor_alltoall, (IN, OUT, ONTO), (in, n, t, out, m, u, c))
INTERPOSE(Neighbor_alltoallv, (IN_V, OUT_V, ONTO), (in, n, from, t, out, m, at, u, c))
INTERPOSE(Ineighbor_allgather, (IN, OUT, LATER), (in, n, t, out, m, u, c, r))
INTERPOSE(Ineighbor_allgatherv, (IN, OUT_V, LATER), (in, n, t, out, m, at, u, c, r))
INTERPOSE(Ineighbor_alltoall, (IN, OUT, LATER), (in, n, t, out, m, u, c, r))
INTERPOSE(Ineighbor_alltoallv, (IN_V, OUT_V, LATER), (in, n, from, t, out, m, at, u, c, r))

extern "C" int MPI_Isend(IN, int peer, int tag, ONTO, MPI_Request* r) {
  note_send(n, t);
  return next<int (*)(IN, int, int, MPI_Comm, MPI_Request*)>("MPI_Isend")(in, n, t, peer, tag, c,
                                                                          r);
}

extern "C" int MPI_Sendrecv(const void* in, int n, MPI_Datatype t, int to, int tag, void* out,
                            int m, MPI_Datatype u, int from, int its_tag, ONTO,
                            MPI_Status* status) {
  note_send(n, t);
  return next<int (*)(const void*, int, MPI_Datatype, int, int, void*, int, MPI_Datatype, int, int,
                      MPI_Comm, MPI_Status*)>("MPI_Sendrecv")(in, n, t, to, tag, out, m, u, from,
                                                              its_tag, c, status);
}

extern "C" int MPI_Send(IN, int peer, int tag, ONTO) {
  note_send(n, t);
  return next<int (*)(IN, int, int, MPI_Comm)>("MPI_Send")(in, n, t, peer, tag, c);
}
