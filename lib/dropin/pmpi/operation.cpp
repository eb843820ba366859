#include "operation.hpp"

#include <algorithm>
#include <cstring>

namespace baton::pmpi {
namespace {

constexpr std::int64_t block_bytes = 16 << 10;  // stays in the first-level cache

/// Wraps around.
void add_16_bits(std::byte* into, const std::byte* left, const std::byte* right, int count) {
  for (int i = 0; i < count; ++i) {
    std::uint16_t a = 0, b = 0;
    std::memcpy(&a, left + 2 * std::ptrdiff_t{i}, 2);
    std::memcpy(&b, right + 2 * std::ptrdiff_t{i}, 2);
    a = static_cast<std::uint16_t>(a + b);
    std::memcpy(into + 2 * std::ptrdiff_t{i}, &a, 2);
  }
}

}  // namespace

std::optional<NativeOp> native_op(MPI_Op op) {
  constexpr std::uint8_t integers = c_integer | fortran_integer | multi_language;
  constexpr std::uint8_t numbers = integers | floating_point;
  if (op == MPI_SUM) return NativeOp{OpKind::sum, numbers | complex};
  if (op == MPI_PROD) return NativeOp{OpKind::prod, numbers | complex};
  if (op == MPI_MIN) return NativeOp{OpKind::min, numbers};
  if (op == MPI_MAX) return NativeOp{OpKind::max, numbers};
  if (op == MPI_LAND) return NativeOp{OpKind::logical_and, c_integer | logical};
  if (op == MPI_LOR) return NativeOp{OpKind::logical_or, c_integer | logical};
  if (op == MPI_LXOR) return NativeOp{OpKind::logical_xor, c_integer | logical};
  if (op == MPI_BAND) return NativeOp{OpKind::bit_and, integers | byte};
  if (op == MPI_BOR) return NativeOp{OpKind::bit_or, integers | byte};
  if (op == MPI_BXOR) return NativeOp{OpKind::bit_xor, integers | byte};
  return std::nullopt;
}

bool locates(MPI_Op op) { return op == MPI_MINLOC || op == MPI_MAXLOC; }
bool one_sided(MPI_Op op) { return op == MPI_REPLACE || op == MPI_NO_OP; }

LocalFold::LocalFold(const Datatypes& datatypes, MPI_Datatype type, const TypeInfo& info, MPI_Op op)
    : datatypes_(datatypes), type_(type), info_(info), op_(op) {
  int commutes = 0;
  commutes_ = PMPI_Op_commutative(op, &commutes) == MPI_SUCCESS && commutes != 0;
  constexpr std::uint8_t integers = c_integer | fortran_integer | multi_language;
  wraps_ = op == MPI_SUM && (info.group & integers) != 0 && info.size == 2;
  if (info_.dense) {
    block_ = std::max<std::int64_t>(1, block_bytes / std::max<std::int64_t>(info_.size, 1));
    right_.resize(static_cast<std::size_t>(block_ * info_.size));
    return;
  }
  MPI_Count lowest = 0, true_extent = 0;
  PMPI_Type_get_true_extent_x(type, &lowest, &true_extent);
  if (info_.extent > 0) block_ = std::max<std::int64_t>(1, block_bytes / info_.extent);
  const auto room = static_cast<std::size_t>(
      (block_ - 1) * std::max<std::int64_t>(info_.extent, 0) + true_extent);
  // The alignment of malloc for elements with any lower bound.
  constexpr std::intptr_t alignment = 16;
  left_.resize(room + alignment);
  right_.resize(room + alignment);
  const auto origin = [&](std::vector<std::byte>& buffer) {
    const auto first = reinterpret_cast<std::intptr_t>(buffer.data()) - lowest;
    return reinterpret_cast<std::byte*>((first + alignment - 1) & -alignment);
  };
  left_origin_ = origin(left_);
  right_origin_ = origin(right_);
}

Op LocalFold::op() const {
  return Op::user(fold, const_cast<LocalFold*>(this), commutes_, "an operation of MPI",
                  static_cast<std::size_t>(info_.size));
}

void LocalFold::fold(void* into, const void* left, const void* right, std::size_t count,
                     void* context) {
  auto& self = *static_cast<LocalFold*>(context);
  const std::lock_guard in_use(self.in_use_);
  auto* to = static_cast<std::byte*>(into);
  const auto* a = static_cast<const std::byte*>(left);
  const auto* b = static_cast<const std::byte*>(right);
  for (auto rest = static_cast<std::int64_t>(count); rest > 0;) {
    const auto n = static_cast<int>(std::min(rest, self.block_));
    self.info_.dense ? self.fold_dense(to, a, b, n) : self.fold_laid_out(to, a, b, n);
    const std::int64_t bytes = n * self.info_.size;
    to += bytes;
    a += bytes;
    b += bytes;
    rest -= n;
  }
}

void LocalFold::fold_dense(std::byte* into, const std::byte* left, const std::byte* right,
                           int count) {
  if (wraps_) return add_16_bits(into, left, right, count);
  const auto bytes = static_cast<std::size_t>(count * info_.size);
  // MPI: inout = in (+) inout, so the right operand lies in the result.
  std::byte* const inout = into == left ? right_.data() : into;
  if (inout != right) std::memcpy(inout, right, bytes);
  note(PMPI_Reduce_local(left, inout, count, type_, op_));
  if (inout != into) std::memcpy(into, inout, bytes);
}

void LocalFold::fold_laid_out(std::byte* into, const std::byte* left, const std::byte* right,
                              int count) {
  note(datatypes_.unpack(left, left_origin_, 0, count, type_, info_));
  note(datatypes_.unpack(right, right_origin_, 0, count, type_, info_));
  note(PMPI_Reduce_local(left_origin_, right_origin_, count, type_, op_));
  note(datatypes_.pack(right_origin_, 0, count, type_, info_, into));
}

}  // namespace baton::pmpi
