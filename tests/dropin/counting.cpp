// Preloaded beneath a drop-in: counts, by name, the collectives that reach the MPI library while
// profiling is on, from MPI_Pcontrol(1) to MPI_Pcontrol(0). Each rank prints
// `counted NAME NUMBER` for all of them when MPI is finalised, and `messages NAME NUMBER` for the
// functions that send and receive. `sent from COLLECTIVE ADDRESS...` names each way through the
// drop-in's code, as its outermost frames, by which a blocking collective sent or received.

#include <dlfcn.h>
#include <execinfo.h>
#include <mpi.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <string>

namespace {

std::atomic<bool> profiling{false};

/// The ways through the drop-in's code by which messages came.
class Ways {
 public:
  void add() {
    constexpr int outermost = 2;
    void* frames[64];
    const int depth = backtrace(frames, 64);
    std::string way;
    for (int i = depth - 1, found = 0; i >= 0 && found < outermost; --i) {
      Dl_info info;
      if (dladdr(frames[i], &info) == 0 || !std::strstr(info.dli_fname, "baton-pmpi")) continue;
      if (found++ == 0) way = info.dli_sname ? info.dli_sname : "?";
      char offset[32];
      std::snprintf(offset, sizeof offset, " %lx",
                    static_cast<unsigned long>(static_cast<char*>(frames[i]) -
                                               static_cast<char*>(info.dli_fbase)));
      way += offset;
    }
    // Where nonblocking ones send depends on time.
    if (way.starts_with("MPI_I") || way.starts_with("MPI_Wait") || way.empty()) return;
    const std::lock_guard lock(mutex_);
    ways_.insert(way);
  }
  void print() const {
    for (const std::string& way : ways_) std::fprintf(stderr, "sent from %s\n", way.c_str());
  }

 private:
  std::mutex mutex_;
  std::set<std::string> ways_;
} ways;

/// One of the MPI library's functions, in the order of their definition below.
class Counted {
 public:
  Counted(const char* name, const char* kind)
      : name_(name), kind_(kind), function_(dlsym(RTLD_NEXT, name)), next_(first) {
    if (!function_) {
      std::fprintf(stderr, "counting: expected the MPI library to have %s, found none\n", name);
      std::abort();
    }
    first = this;
  }
  template <class Function>
  Function* called() {
    if (profiling) {
      ++calls_;
      if (kind_[0] == 'm') ways.add();
    }
    return reinterpret_cast<Function*>(function_);
  }
  static void print() {
    for (const Counted* one = first; one; one = one->next_)
      std::fprintf(stderr, "%s %s %ld\n", one->kind_, one->name_ + 5, one->calls_.load());
  }

 private:
  static inline Counted* first = nullptr;
  const char *name_, *kind_;
  void* function_;
  Counted* next_;
  std::atomic<long> calls_{0};
};

template <class Function>
Function* real(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

// The function under both of its names, of which the drop-in calls one and Fortran's wrappers too.
#define KEPT(name, kind, parameters, arguments)                      \
  namespace {                                                        \
  Counted counted_##name("PMPI_" #name, kind);                       \
  }                                                                  \
  extern "C" int PMPI_##name parameters;                             \
  extern "C" int MPI_##name parameters;                              \
  extern "C" int PMPI_##name parameters {                            \
    return counted_##name.called<decltype(PMPI_##name)>() arguments; \
  }                                                                  \
  extern "C" int MPI_##name parameters { return PMPI_##name arguments; }
#define COUNTED(name, parameters, arguments) KEPT(name, "counted", parameters, arguments)
#define MESSAGES(name, parameters, arguments) KEPT(name, "messages", parameters, arguments)

#define UNPACK(...) __VA_ARGS__
#if MPI_VERSION >= 4
#define LARGE(...) __VA_ARGS__
#else
#define LARGE(...)
#endif
namespace narrow {
using Count = int;
using At = int;
}  // namespace narrow
namespace wide {
using Count = MPI_Count;
using At = MPI_Aint;
}  // namespace wide
// A collective and its nonblocking form, and both with large counts.
#define COLLECTIVE(name, nonblocking, parameters, arguments)                               \
  NARROW(name, nonblocking, parameters, arguments)                                         \
  LARGE(namespace wide{COUNTED(name##_c, (UNPACK parameters), (UNPACK arguments)) COUNTED( \
      nonblocking##_c, (UNPACK parameters, MPI_Request * request), (UNPACK arguments, request))})
#define NARROW(name, nonblocking, parameters, arguments)                                       \
  namespace narrow {                                                                           \
  COUNTED(name, (UNPACK parameters), (UNPACK arguments))                                       \
  COUNTED(nonblocking, (UNPACK parameters, MPI_Request* request), (UNPACK arguments, request)) \
  }

NARROW(Barrier, Ibarrier, (MPI_Comm c), (c))
COLLECTIVE(Bcast, Ibcast, (void* data, Count n, MPI_Datatype t, int root, MPI_Comm c),
           (data, n, t, root, c))

#define EVEN const void *in, Count n, MPI_Datatype t, void *out, Count m, MPI_Datatype u
#define EVEN_PASSED in, n, t, out, m, u
#define FROM_MANY \
  const void *in, Count n, MPI_Datatype t, void *out, const Count *m, const At *at, MPI_Datatype u
#define FROM_MANY_PASSED in, n, t, out, m, at, u
#define TO_MANY \
  const void *in, const Count *n, const At *at, MPI_Datatype t, void *out, Count m, MPI_Datatype u
#define TO_MANY_PASSED in, n, at, t, out, m, u
COLLECTIVE(Gather, Igather, (EVEN, int root, MPI_Comm c), (EVEN_PASSED, root, c))
COLLECTIVE(Gatherv, Igatherv, (FROM_MANY, int root, MPI_Comm c), (FROM_MANY_PASSED, root, c))
COLLECTIVE(Scatter, Iscatter, (EVEN, int root, MPI_Comm c), (EVEN_PASSED, root, c))
COLLECTIVE(Scatterv, Iscatterv, (TO_MANY, int root, MPI_Comm c), (TO_MANY_PASSED, root, c))
COLLECTIVE(Allgather, Iallgather, (EVEN, MPI_Comm c), (EVEN_PASSED, c))
COLLECTIVE(Allgatherv, Iallgatherv, (FROM_MANY, MPI_Comm c), (FROM_MANY_PASSED, c))
COLLECTIVE(Alltoall, Ialltoall, (EVEN, MPI_Comm c), (EVEN_PASSED, c))
COLLECTIVE(Alltoallv, Ialltoallv,
           (const void* in, const Count* n, const At* at, MPI_Datatype t, void* out, const Count* m,
            const At* to, MPI_Datatype u, MPI_Comm c),
           (in, n, at, t, out, m, to, u, c))
COLLECTIVE(Alltoallw, Ialltoallw,
           (const void* in, const Count* n, const At* at, const MPI_Datatype* t, void* out,
            const Count* m, const At* to, const MPI_Datatype* u, MPI_Comm c),
           (in, n, at, t, out, m, to, u, c))

#define REDUCED const void *in, void *out, Count n, MPI_Datatype t, MPI_Op op
#define REDUCED_PASSED in, out, n, t, op
COLLECTIVE(Reduce, Ireduce, (REDUCED, int root, MPI_Comm c), (REDUCED_PASSED, root, c))
COLLECTIVE(Allreduce, Iallreduce, (REDUCED, MPI_Comm c), (REDUCED_PASSED, c))
COLLECTIVE(Reduce_scatter_block, Ireduce_scatter_block, (REDUCED, MPI_Comm c), (REDUCED_PASSED, c))
COLLECTIVE(Reduce_scatter, Ireduce_scatter,
           (const void* in, void* out, const Count* n, MPI_Datatype t, MPI_Op op, MPI_Comm c),
           (in, out, n, t, op, c))
COLLECTIVE(Scan, Iscan, (REDUCED, MPI_Comm c), (REDUCED_PASSED, c))
COLLECTIVE(Exscan, Iexscan, (REDUCED, MPI_Comm c), (REDUCED_PASSED, c))

MESSAGES(Send, (const void* in, int n, MPI_Datatype t, int to, int tag, MPI_Comm c),
         (in, n, t, to, tag, c))
MESSAGES(Recv,
         (void* out, int n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Status* status),
         (out, n, t, from, tag, c, status))
MESSAGES(Isend,
         (const void* in, int n, MPI_Datatype t, int to, int tag, MPI_Comm c, MPI_Request* request),
         (in, n, t, to, tag, c, request))
MESSAGES(Irecv,
         (void* out, int n, MPI_Datatype t, int from, int tag, MPI_Comm c, MPI_Request* request),
         (out, n, t, from, tag, c, request))
MESSAGES(Sendrecv,
         (const void* in, int n, MPI_Datatype t, int to, int tag, void* out, int m, MPI_Datatype u,
          int from, int other_tag, MPI_Comm c, MPI_Status* status),
         (in, n, t, to, tag, out, m, u, from, other_tag, c, status))

extern "C" int PMPI_Pcontrol(const int level, ...) {
  profiling = level > 0;
  return MPI_SUCCESS;
}
extern "C" int MPI_Pcontrol(const int level, ...) { return PMPI_Pcontrol(level); }

extern "C" int PMPI_Finalize() {
  Counted::print();
  ways.print();
  return real<decltype(PMPI_Finalize)>("PMPI_Finalize")();
}
extern "C" int MPI_Finalize() { return PMPI_Finalize(); }
