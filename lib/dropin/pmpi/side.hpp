#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "datatype.hpp"
#include "numbers.hpp"

namespace baton::pmpi {

/// One buffer of a call: blocks of elements of one MPI datatype, and the same bytes without gaps.
///
/// Dense data is used in place. Other data has a copy, block after block: pack() fills it, unpack()
/// writes it back.
class Side {
 public:
  /// `blocks` blocks of `count` elements, one after the other.
  void even(void* base, MPI_Datatype type, const TypeInfo& info, int blocks, std::int64_t count);
  /// Blocks of counts[i] elements. Block i begins displs[i] extents after the base or, without
  /// displs, at the end of the previous block.
  void uneven(void* base, MPI_Datatype type, const TypeInfo& info, int blocks, Numbers counts,
              Numbers displs);
  /// Blocks of counts[i] elements of a datatype each, displs[i] bytes after the base. They are
  /// always copied.
  void mixed(void* base, const MPI_Datatype* types, std::vector<const TypeInfo*> infos,
             Numbers counts, Numbers displs);
  /// Uses a copy for dense data, too.
  void copy() { copied_ = true; }
  /// Copies the program's lists: nothing refers to them any more.
  void keep_lists();

  bool copied() const { return copied_; }
  const TypeInfo& info() const { return *info_; }  ///< not of mixed()
  std::int64_t elements(int block) const { return counts_ ? counts_[block] : count_; }
  std::int64_t block_bytes(int block) const { return elements(block) * info(block).size; }
  std::int64_t bytes() const;  ///< of all blocks
  /// The address of the data without gaps, after place().
  std::byte* data() const { return data_; }
  /// Fills in every block's bytes and its offset in data().
  void layout(std::vector<std::int64_t>& counts, std::vector<std::int64_t>& offsets) const;
  std::byte* block(int block) const;  ///< its address in data()

  /// Allocates the copy, if one is needed.
  void place();
  /// Packs or unpacks blocks [first, last). Does nothing for data used in place.
  int pack(const Datatypes& datatypes, int first, int last) const;
  int unpack(const Datatypes& datatypes, int first, int last) const;
  int pack(const Datatypes& datatypes) const { return pack(datatypes, 0, blocks_); }
  int unpack(const Datatypes& datatypes) const { return unpack(datatypes, 0, blocks_); }

 private:
  const TypeInfo& info(int block) const {
    return infos_.empty() ? *info_ : *infos_[static_cast<std::size_t>(block)];
  }
  /// Calls body(address, first element, type, info) for a block.
  template <class Body>
  int at(int block, const Body& body) const;
  std::int64_t displacement(int block) const;  // in elements
  std::int64_t offset(int block) const;
  void* base_ = nullptr;
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
  const TypeInfo* info_ = nullptr;
  int blocks_ = 0;
  std::int64_t count_ = 0;
  Numbers counts_, displs_;
  const MPI_Datatype* types_ = nullptr;  // of mixed()
  std::vector<const TypeInfo*> infos_;
  std::vector<std::int64_t> own_counts_, own_displs_;
  std::vector<MPI_Datatype> own_types_;
  bool copied_ = false;
  std::byte* data_ = nullptr;
  std::unique_ptr<std::byte[]> copy_;
};

}  // namespace baton::pmpi
