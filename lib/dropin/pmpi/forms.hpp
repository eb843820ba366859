#pragma once
/// The forms of a collective in MPI's C interface. Blocking and nonblocking functions exist with
/// int counts and, since MPI 4, with large ones (MPI_Bcast_c). Persistent collectives begin with a
/// function of their own (MPI_Bcast_init); Open MPI 4 has them as an extension (MPIX_Bcast_init).

#include <mpi.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#endif

namespace baton::pmpi::narrow {
using Count = int;
using Displacement = int;
}  // namespace baton::pmpi::narrow

#define UNPACK(...) __VA_ARGS__
// Begins the definition of an MPI function in one of these namespaces. It is declared once more,
// since compilers look for a declaration in the same namespace.
#define DEFINE(name, parameters)  \
  extern "C" int name parameters; \
  extern "C" int name parameters

#if MPI_VERSION >= 4
namespace baton::pmpi::wide {
using Count = MPI_Count;
using Displacement = MPI_Aint;
}  // namespace baton::pmpi::wide
#define WITH_LARGE_FORMS(...) __VA_ARGS__
#else
#define WITH_LARGE_FORMS(...)
#endif

#if MPI_VERSION >= 4 || (defined(OPEN_MPI) && OMPI_MAJOR_VERSION >= 5)
#define WITH_PERSISTENT(...) __VA_ARGS__
#define PERSISTENT(name) MPI_##name##_init
#elif defined(OMPI_HAVE_MPI_EXT_PCOLLREQ)
#define WITH_PERSISTENT(...) __VA_ARGS__
#define PERSISTENT(name) MPIX_##name##_init
#else
#define WITH_PERSISTENT(...)
#endif
