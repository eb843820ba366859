#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "datatype.hpp"

namespace baton::pmpi {

/// One buffer of a call: blocks of elements of one MPI datatype, and the same bytes without gaps.
///
/// Dense data is used in place. Other data has a copy, block after block: pack() fills it, unpack()
/// writes it back.
class Side {
 public:
  /// `blocks` blocks of `count` elements, one after the other.
  void even(void* base, MPI_Datatype type, const TypeInfo& info, int blocks, int count);
  /// Blocks of counts[i] elements. Block i begins displs[i] extents after the base or, without
  /// displs, at the end of the previous block.
  void uneven(void* base, MPI_Datatype type, const TypeInfo& info, int blocks, const int* counts,
              const int* displs);

  bool copied() const { return copied_; }
  MPI_Datatype type() const { return type_; }
  const TypeInfo& info() const { return *info_; }
  std::int64_t elements(int block) const { return counts_ ? counts_[block] : count_; }
  std::int64_t block_bytes(int block) const { return elements(block) * info_->size; }
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
  std::int64_t displacement(int block) const;  // in elements
  std::int64_t offset(int block) const;
  void* base_ = nullptr;
  MPI_Datatype type_ = MPI_DATATYPE_NULL;
  const TypeInfo* info_ = nullptr;
  int blocks_ = 0;
  std::int64_t count_ = 0;
  const int *counts_ = nullptr, *displs_ = nullptr;
  bool copied_ = false;
  std::byte* data_ = nullptr;
  std::unique_ptr<std::byte[]> copy_;
};

}  // namespace baton::pmpi
