#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "plan.hpp"

namespace baton::execute {

/// Walks along one operand of a step, block by block.
class Strides {
 public:
  Strides() = default;
  Strides(std::span<const Piece> pieces, int operand, std::size_t element_bytes)
      : piece_(pieces.data()), operand_(operand), element_bytes_(element_bytes) {}

  /// Calls use(place, bytes) for each run of the next `bytes` bytes.
  template <class Use>
  void next(std::size_t bytes, const Use& use) {
    while (bytes > 0) {
      const std::size_t block = static_cast<std::size_t>(piece_->block) * element_bytes_;
      const std::size_t here = std::min(bytes, block - column_);
      const Place& begin = piece_->at[operand_];
      const std::int64_t offset = begin.offset + row_ * piece_->stride[operand_];
      use(Place{begin.base, offset + static_cast<std::int64_t>(column_)}, here);
      bytes -= here;
      column_ += here;
      if (column_ < block) continue;
      column_ = 0;
      if (++row_ < piece_->rows) continue;
      row_ = 0;
      ++piece_;
    }
  }

 private:
  const Piece* piece_ = nullptr;
  int operand_ = 0;
  std::size_t element_bytes_ = 1;
  std::int64_t row_ = 0;
  std::size_t column_ = 0;  // bytes
};

}  // namespace baton::execute
