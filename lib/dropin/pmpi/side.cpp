#include "side.hpp"

#include <algorithm>
#include <numeric>

namespace baton::pmpi {

void Side::even(void* base, MPI_Datatype type, const TypeInfo& info, int blocks, int count) {
  base_ = base;
  type_ = type;
  info_ = &info;
  blocks_ = blocks;
  count_ = count;
  counts_ = displs_ = nullptr;
  copied_ = !info.dense;
}

void Side::uneven(void* base, MPI_Datatype type, const TypeInfo& info, int blocks,
                  const int* counts, const int* displs) {
  even(base, type, info, blocks, 0);
  counts_ = counts;
  displs_ = displs;
  copied_ =
      copied_ || (displs && std::any_of(displs, displs + blocks, [](int d) { return d < 0; }));
}

std::int64_t Side::bytes() const {
  std::int64_t bytes = 0;
  for (int i = 0; i < blocks_; ++i) bytes += block_bytes(i);
  return bytes;
}

std::int64_t Side::displacement(int block) const {
  if (!counts_) return block * count_;
  if (displs_) return displs_[block];
  return std::accumulate(counts_, counts_ + block, std::int64_t{0});
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

int Side::pack(const Datatypes& datatypes, int first, int last) const {
  if (!copied_) return MPI_SUCCESS;
  std::byte* to = block(first);
  for (int i = first; i < last; ++i) {
    const int code = datatypes.pack(base_, displacement(i), elements(i), type_, *info_, to);
    if (code != MPI_SUCCESS) return code;
    to += block_bytes(i);
  }
  return MPI_SUCCESS;
}

int Side::unpack(const Datatypes& datatypes, int first, int last) const {
  if (!copied_) return MPI_SUCCESS;
  const std::byte* from = block(first);
  for (int i = first; i < last; ++i) {
    const int code = datatypes.unpack(from, base_, displacement(i), elements(i), type_, *info_);
    if (code != MPI_SUCCESS) return code;
    from += block_bytes(i);
  }
  return MPI_SUCCESS;
}

}  // namespace baton::pmpi
