#pragma once
/// Converts Fortran's arguments to C, for Open MPI, whose Fortran functions call PMPI_ directly.

#include <mpi.h>

#include <cstddef>
#include <vector>

namespace baton::pmpi::fortran {

/// The variables of Open MPI's Fortran modules whose addresses have a meaning.
class Constants {
 public:
  static const Constants& now();
  /// Recognises MPI_IN_PLACE and MPI_BOTTOM.
  void* buffer(void* argument) const {
    if (argument == in_place_) return MPI_IN_PLACE;
    return argument == bottom_ ? MPI_BOTTOM : argument;
  }
  const int* weights(const int* argument) const {
    if (argument == unweighted_) return MPI_UNWEIGHTED;
    return argument == weights_empty_ ? MPI_WEIGHTS_EMPTY : argument;
  }
  bool ignored(const MPI_Fint* status) const {
    return status == status_ignore_ || status == statuses_ignore_;
  }

 private:
  Constants();
  const void *in_place_, *bottom_, *status_ignore_, *statuses_ignore_, *unweighted_,
      *weights_empty_;
};

inline void* buffer(void* argument) { return Constants::now().buffer(argument); }
inline MPI_Comm comm(const MPI_Fint* handle) { return PMPI_Comm_f2c(*handle); }
inline MPI_Datatype type(const MPI_Fint* handle) { return PMPI_Type_f2c(*handle); }
inline MPI_Op op(const MPI_Fint* handle) { return PMPI_Op_f2c(*handle); }

/// A handle that a function sets. Converted back at the end of the scope, so after the call.
template <class Handle, MPI_Fint (*to_fortran)(Handle)>
class Out {
 public:
  Out(MPI_Fint* target, Handle before) : target_(target), handle_(before) {}
  ~Out() { *target_ = to_fortran(handle_); }
  Out(const Out&) = delete;
  Out& operator=(const Out&) = delete;
  operator Handle*() { return &handle_; }  // NOLINT: stands for the handle's address

 private:
  MPI_Fint* target_;
  Handle handle_;
};

/// A request that a function sets or changes.
struct Requests {
  Requests(MPI_Fint* handles, int count);
  ~Requests();  ///< writes them back
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;
  MPI_Fint* handles;
  std::vector<MPI_Request> all;
};

/// Statuses that a function sets, unless the program ignores them.
struct Statuses {
  Statuses(MPI_Fint* statuses, int count);
  ~Statuses();  ///< writes them back
  Statuses(const Statuses&) = delete;
  Statuses& operator=(const Statuses&) = delete;
  /// Only the first `count` are set; MPI_UNDEFINED: none.
  void limit(int count) {
    if (!ignored) all.resize(static_cast<std::size_t>(count == MPI_UNDEFINED ? 0 : count) + 1);
  }
  MPI_Status* one() { return ignored ? MPI_STATUS_IGNORE : all.data(); }
  MPI_Status* many() { return ignored ? MPI_STATUSES_IGNORE : all.data(); }
  MPI_Fint* target;
  bool ignored;
  std::vector<MPI_Status> all;
};

}  // namespace baton::pmpi::fortran

/// Defines a Fortran function under all its names: those of compilers for `call mpi_NAME`, and the
/// one that the mpi_f08 module calls.
#define FORTRAN(name, ...)                                                                \
  extern "C" void ompi_##name##_f(__VA_ARGS__);                                           \
  extern "C" __attribute__((alias("ompi_" #name "_f"))) void mpi_##name(__VA_ARGS__);     \
  extern "C" __attribute__((alias("ompi_" #name "_f"))) void mpi_##name##_(__VA_ARGS__);  \
  extern "C" __attribute__((alias("ompi_" #name "_f"))) void mpi_##name##__(__VA_ARGS__); \
  extern "C" void ompi_##name##_f(__VA_ARGS__)
