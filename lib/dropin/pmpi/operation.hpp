#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "baton/types.hpp"
#include "datatype.hpp"

namespace baton::pmpi {

/// The library's op that equals a predefined op of MPI.
struct NativeOp {
  OpKind kind;
  std::uint8_t groups;  ///< TypeGroups on which MPI defines it
};

/// None for user ops, MPI_MINLOC and MPI_MAXLOC.
std::optional<NativeOp> native_op(MPI_Op op);
/// Whether it is MPI_MINLOC or MPI_MAXLOC.
bool locates(MPI_Op op);
/// Whether it is MPI_REPLACE or MPI_NO_OP, which collectives do not accept.
bool one_sided(MPI_Op op);

/// Folds elements by MPI_Reduce_local. Takes elements without gaps. Unpacks one block at a time to
/// the datatype's layout while MPI works on it.
class LocalFold {
 public:
  LocalFold(const Datatypes& datatypes, MPI_Datatype type, const TypeInfo& info, MPI_Op op);
  /// The op for Communicator's calls; refers to this object.
  Op op() const;
  /// The first MPI error code, or MPI_SUCCESS.
  int code() const { return code_; }

 private:
  static void fold(void* into, const void* left, const void* right, std::size_t count,
                   void* context);
  void fold_dense(std::byte* into, const std::byte* left, const std::byte* right, int count);
  void fold_laid_out(std::byte* into, const std::byte* left, const std::byte* right, int count);

  void note(int code) {
    if (code_ == MPI_SUCCESS) code_ = code;
  }

  const Datatypes& datatypes_;
  MPI_Datatype type_;
  TypeInfo info_;
  MPI_Op op_;
  bool commutes_ = false;
  bool wraps_ = false;  // a sum of 16-bit integers; Open MPI saturates it on some processors
  int code_ = MPI_SUCCESS;
  std::mutex in_use_;       // a thread that waits in another communicator may fold what arrives
  std::int64_t block_ = 1;  // elements
  std::vector<std::byte> left_, right_;
  std::byte *left_origin_ = nullptr, *right_origin_ = nullptr;
};

}  // namespace baton::pmpi
