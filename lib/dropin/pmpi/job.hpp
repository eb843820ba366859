#pragma once

#include <mpi.h>

#include <cstddef>
#include <optional>
#include <vector>

#include "datatype.hpp"
#include "function.hpp"
#include "group.hpp"
#include "operation.hpp"
#include "side.hpp"

namespace baton::pmpi {

/// Translates a call of the program into one of ours, on its buffers or on copies without gaps.
class Job {
 public:
  /// Translates. Returns null, or the reason why the MPI library must make the call. The decision
  /// is the same on all ranks, except for wrong calls, which the MPI library refuses without
  /// communication.
  const char* prepare(const MpiCall& mpi, const Group& group, Datatypes& datatypes);
  /// Makes the copies needed before the start. Returns an MPI error code.
  int before();
  /// Copies the program's lists of counts, displacements and datatypes, which a nonblocking call
  /// must not read after its return.
  void keep_lists();
  /// Copies the results to the program's buffers after the end.
  int after();

  const Call& call() const { return call_; }
  /// Bytes of the largest buffer that every rank has.
  std::int64_t bytes() const { return bytes_; }

 private:
  const char* prepare_move();
  const char* prepare_reduction();
  const char* set(Side& side, void* base, MPI_Datatype type, int blocks, std::int64_t count);
  const char* set(Side& side, void* base, MPI_Datatype type, Numbers counts, Numbers displs);
  const char* set(Side& side, void* base, const MPI_Datatype* types, Numbers counts,
                  Numbers displs);
  bool negative(Numbers counts) const;
  void place_moved();
  void place_reduced();
  bool at_root() const { return mpi_.root == group_->rank; }

  MpiCall mpi_;
  const Group* group_ = nullptr;
  Datatypes* datatypes_ = nullptr;
  Call call_;
  std::int64_t bytes_ = 0;
  Side in_, out_;
  bool has_in_ = false, has_out_ = false;
  bool in_place_ = false;
  std::vector<std::int64_t> in_counts_, in_offsets_, out_counts_, out_offsets_;
  std::optional<LocalFold> fold_;
};

}  // namespace baton::pmpi
