#include "side.hpp"

#include <utility>

namespace baton::pmpi {

void Side::even(void* base, MPI_Datatype type, const TypeInfo& info, int blocks,
                std::int64_t count) {
  base_ = base;
  type_ = type;
  info_ = &info;
  blocks_ = blocks;
  count_ = count;
  counts_ = displs_ = {};
  types_ = nullptr;
  infos_.clear();
  copied_ = !info.dense;
}

void Side::uneven(void* base, MPI_Datatype type, const TypeInfo& info, int blocks, Numbers counts,
                  Numbers displs) {
  even(base, type, info, blocks, 0);
  counts_ = counts;
  displs_ = displs;
  for (int i = 0; displs && i < blocks; ++i) copied_ = copied_ || displs[i] < 0;
}

void Side::mixed(void* base, const MPI_Datatype* types, std::vector<const TypeInfo*> infos,
                 Numbers counts, Numbers displs) {
  even(base, MPI_DATATYPE_NULL, *infos[0], static_cast<int>(infos.size()), 0);
  counts_ = counts;
  displs_ = displs;
  types_ = types;
  infos_ = std::move(infos);
  copied_ = true;
}

void Side::keep_lists() {
  counts_.copy_to(own_counts_, blocks_);
  displs_.copy_to(own_displs_, blocks_);
  if (!types_) return;
  own_types_.assign(types_, types_ + blocks_);
  types_ = own_types_.data();
}

std::int64_t Side::bytes() const {
  std::int64_t bytes = 0;
  for (int i = 0; i < blocks_; ++i) bytes += block_bytes(i);
  return bytes;
}

std::int64_t Side::displacement(int block) const {
  if (!counts_) return block * count_;
  if (displs_) return displs_[block];
  std::int64_t end = 0;
  for (int i = 0; i < block; ++i) end += counts_[i];
  return end;
}

std::int64_t Side::offset(int block) const {
  if (!counts_) return block * count_ * info_->size;
  if (!copied_ && displs_) return displs_[block] * info_->size;
  std::int64_t end = 0;
  for (int i = 0; i < block; ++i) end += block_bytes(i);
  return end;
}

void Side::layout(std::vector<std::int64_t>& counts, std::vector<std::int64_t>& offsets) const {
  counts.resize(static_cast<std::size_t>(blocks_));
  offsets.resize(static_cast<std::size_t>(blocks_));
  std::int64_t end = 0;
  for (int i = 0; i < blocks_; ++i) {
    const auto at = static_cast<std::size_t>(i);
    counts[at] = block_bytes(i);
    offsets[at] = !copied_ && displs_ ? displs_[i] * info_->size : end;
    end += counts[at];
  }
}

std::byte* Side::block(int block) const { return data_ + offset(block); }

void Side::place() {
  data_ = static_cast<std::byte*>(base_);
  if (!copied_) return;
  copy_ = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(bytes()) + 1);
  data_ = copy_.get();
}

template <class Body>
int Side::at(int block, const Body& body) const {
  if (!types_) return body(base_, displacement(block), type_, *info_);
  void* const base =
      reinterpret_cast<void*>(reinterpret_cast<std::intptr_t>(base_) + displs_[block]);
  return body(base, std::int64_t{0}, types_[block], info(block));
}

int Side::pack(const Datatypes& datatypes, int first, int last) const {
  if (!copied_) return MPI_SUCCESS;
  std::byte* to = block(first);
  for (int i = first; i < last; ++i) {
    const int code = at(i, [&](void* base, std::int64_t element, auto type, auto& info) {
      return datatypes.pack(base, element, elements(i), type, info, to);
    });
    if (code != MPI_SUCCESS) return code;
    to += block_bytes(i);
  }
  return MPI_SUCCESS;
}

int Side::unpack(const Datatypes& datatypes, int first, int last) const {
  if (!copied_) return MPI_SUCCESS;
  const std::byte* from = block(first);
  for (int i = first; i < last; ++i) {
    const int code = at(i, [&](void* base, std::int64_t element, auto type, auto& info) {
      return datatypes.unpack(from, base, element, elements(i), type, info);
    });
    if (code != MPI_SUCCESS) return code;
    from += block_bytes(i);
  }
  return MPI_SUCCESS;
}

}  // namespace baton::pmpi
