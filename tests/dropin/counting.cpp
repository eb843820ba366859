// Preloaded beneath a drop-in: counts, by name, the collectives that reach the MPI library while
// profiling is on, from MPI_Pcontrol(1) to MPI_Pcontrol(0). Each rank prints
// `counted NAME NUMBER` for all of them when MPI is finalised.

#include <dlfcn.h>
#include <mpi.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace {

std::atomic<bool> profiling{false};

/// One of the MPI library's functions, in the order of their definition below.
class Counted {
 public:
  explicit Counted(const char* name)
      : name_(name), function_(dlsym(RTLD_NEXT, name)), next_(first) {
    if (!function_) {
      std::fprintf(stderr, "counting: expected the MPI library to have %s, found none\n", name);
      std::abort();
    }
    first = this;
  }
  template <class Function>
  Function* called() {
    if (profiling) ++calls_;
    return reinterpret_cast<Function*>(function_);
  }
  static void print() {
    for (const Counted* one = first; one; one = one->next_)
      std::fprintf(stderr, "counted %s %ld\n", one->name_ + 5, one->calls_.load());
  }

 private:
  static inline Counted* first = nullptr;
  const char* name_;
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
#define COUNTED(name, parameters, arguments)                         \
  namespace {                                                        \
  Counted counted_##name("PMPI_" #name);                             \
  }                                                                  \
  extern "C" int PMPI_##name parameters {                            \
    return counted_##name.called<decltype(PMPI_##name)>() arguments; \
  }                                                                  \
  extern "C" int MPI_##name parameters { return PMPI_##name arguments; }

#define UNPACK(...) __VA_ARGS__
// A collective and its nonblocking form.
#define COLLECTIVE(name, nonblocking, parameters, arguments) \
  COUNTED(name, (UNPACK parameters), (UNPACK arguments))     \
  COUNTED(nonblocking, (UNPACK parameters, MPI_Request * request), (UNPACK arguments, request))

COLLECTIVE(Barrier, Ibarrier, (MPI_Comm c), (c))
COLLECTIVE(Bcast, Ibcast, (void* data, int n, MPI_Datatype t, int root, MPI_Comm c),
           (data, n, t, root, c))

#define EVEN const void *in, int n, MPI_Datatype t, void *out, int m, MPI_Datatype u
#define EVEN_PASSED in, n, t, out, m, u
#define FROM_MANY \
  const void *in, int n, MPI_Datatype t, void *out, const int *m, const int *at, MPI_Datatype u
#define FROM_MANY_PASSED in, n, t, out, m, at, u
#define TO_MANY \
  const void *in, const int *n, const int *at, MPI_Datatype t, void *out, int m, MPI_Datatype u
#define TO_MANY_PASSED in, n, at, t, out, m, u
COLLECTIVE(Gather, Igather, (EVEN, int root, MPI_Comm c), (EVEN_PASSED, root, c))
COLLECTIVE(Gatherv, Igatherv, (FROM_MANY, int root, MPI_Comm c), (FROM_MANY_PASSED, root, c))
COLLECTIVE(Scatter, Iscatter, (EVEN, int root, MPI_Comm c), (EVEN_PASSED, root, c))
COLLECTIVE(Scatterv, Iscatterv, (TO_MANY, int root, MPI_Comm c), (TO_MANY_PASSED, root, c))
COLLECTIVE(Allgather, Iallgather, (EVEN, MPI_Comm c), (EVEN_PASSED, c))
COLLECTIVE(Allgatherv, Iallgatherv, (FROM_MANY, MPI_Comm c), (FROM_MANY_PASSED, c))
COLLECTIVE(Alltoall, Ialltoall, (EVEN, MPI_Comm c), (EVEN_PASSED, c))
COLLECTIVE(Alltoallv, Ialltoallv,
           (const void* in, const int* n, const int* at, MPI_Datatype t, void* out, const int* m,
            const int* to, MPI_Datatype u, MPI_Comm c),
           (in, n, at, t, out, m, to, u, c))

#define REDUCED const void *in, void *out, int n, MPI_Datatype t, MPI_Op op
#define REDUCED_PASSED in, out, n, t, op
COLLECTIVE(Reduce, Ireduce, (REDUCED, int root, MPI_Comm c), (REDUCED_PASSED, root, c))
COLLECTIVE(Allreduce, Iallreduce, (REDUCED, MPI_Comm c), (REDUCED_PASSED, c))
COLLECTIVE(Reduce_scatter_block, Ireduce_scatter_block, (REDUCED, MPI_Comm c), (REDUCED_PASSED, c))
COLLECTIVE(Reduce_scatter, Ireduce_scatter,
           (const void* in, void* out, const int* n, MPI_Datatype t, MPI_Op op, MPI_Comm c),
           (in, out, n, t, op, c))
COLLECTIVE(Scan, Iscan, (REDUCED, MPI_Comm c), (REDUCED_PASSED, c))
COLLECTIVE(Exscan, Iexscan, (REDUCED, MPI_Comm c), (REDUCED_PASSED, c))

extern "C" int PMPI_Pcontrol(const int level, ...) {
  profiling = level > 0;
  return MPI_SUCCESS;
}
extern "C" int MPI_Pcontrol(const int level, ...) { return PMPI_Pcontrol(level); }

extern "C" int PMPI_Finalize() {
  Counted::print();
  return real<decltype(PMPI_Finalize)>("PMPI_Finalize")();
}
extern "C" int MPI_Finalize() { return PMPI_Finalize(); }
