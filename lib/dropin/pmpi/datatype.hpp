#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "baton/types.hpp"

namespace baton::pmpi {

/// MPI's groups of predefined datatypes; an op is defined on some of them.
enum TypeGroup : std::uint8_t {
  no_group = 0,
  c_integer = 1,
  fortran_integer = 2,
  floating_point = 4,
  logical = 8,
  complex = 16,
  byte = 32,
  multi_language = 64,  // MPI_AINT and the like
  pair = 128            // for MINLOC and MAXLOC
};

/// Facts about an MPI datatype.
struct TypeInfo {
  std::int64_t size = 0;    ///< bytes of data in one element
  std::int64_t extent = 0;  ///< bytes from one element to the next
  bool dense = false;       ///< data lies without gaps from address 0 on, in the order in which it
                            ///< is sent
  TypeGroup group = no_group;
  Datatype native = Datatype::user;  ///< the library's equal datatype, or `user`
};

/// The program's datatypes. Predefined ones are in a table; others keep their facts in an
/// attribute. After construction, safe for any thread.
class Datatypes {
 public:
  /// `quiet`: a communicator of this process alone that returns errors.
  explicit Datatypes(MPI_Comm quiet);
  ~Datatypes();
  Datatypes(const Datatypes&) = delete;
  Datatypes& operator=(const Datatypes&) = delete;

  /// Null if `type` is no committed datatype.
  const TypeInfo* find(MPI_Datatype type);
  /// find() for predefined datatypes only.
  const TypeInfo* find_predefined(MPI_Datatype type) const {
    struct Last {
      MPI_Datatype type = MPI_DATATYPE_NULL;
      const TypeInfo* info = nullptr;
    };
    thread_local Last last;  // programs use one datatype many times
    if (last.type != type || !last.info) {
      const auto found = predefined_.find(type);
      if (found == predefined_.end()) return nullptr;
      last = {type, &found->second};
    }
    return last.info;
  }

  /// Packs elements [first, first + count) at `base` into `to`, without gaps, in the order in which
  /// they are sent. Returns an MPI error code. `base` may be MPI_BOTTOM.
  int pack(const void* base, std::int64_t first, std::int64_t count, MPI_Datatype type,
           const TypeInfo& info, std::byte* to) const;
  /// The reverse; does not change bytes in gaps.
  int unpack(const std::byte* from, void* base, std::int64_t first, std::int64_t count,
             MPI_Datatype type, const TypeInfo& info) const;

 private:
  void add(MPI_Datatype type, TypeGroup group);
  MPI_Comm quiet_;
  std::unordered_map<MPI_Datatype, TypeInfo> predefined_;
  int keyval_ = MPI_KEYVAL_INVALID;
  std::mutex first_use_;
};

/// Address of element `index`.
inline void* element(const void* base, std::int64_t index, const TypeInfo& info) {
  return reinterpret_cast<void*>(reinterpret_cast<std::intptr_t>(base) + index * info.extent);
}

}  // namespace baton::pmpi
