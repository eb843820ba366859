/// Selects the instruction set.

#include <fmt/core.h>

#include <array>
#include <vector>

#include "baton/error.hpp"
#include "baton/memory.hpp"
#include "dispatch.hpp"

namespace baton::host {
namespace {

/// Highway's targets that are compiled in and that this machine supports, best first.
const std::vector<std::int64_t>& levels() {
  static const std::vector<std::int64_t> targets = hwy::SupportedAndGeneratedTargets();
  return targets;
}

std::int64_t target_of(int level) {
  if (level < 0 || level >= simd_level_count())
    throw Error(ErrorCode::invalid_argument, fmt::format("SIMD level: expected 0 to {}; found {}",
                                                         simd_level_count() - 1, level));
  return levels()[static_cast<std::size_t>(level)];
}

}  // namespace

int simd_level_count() { return static_cast<int>(levels().size()); }
const char* simd_level_name(int level) { return hwy::TargetName(target_of(level)); }

FoldFunction fold(OpKind op, Datatype type, int simd_level) {
  const std::int64_t target = target_of(simd_level);
  if (!is_float(type)) return integer_fold(op, type, target);
  if (size_of(type) == 1) return float8_fold(op, type, target);
  return size_of(type) == 2 ? half_fold(op, type, target) : float_fold(op, type, target);
}

DivideFunction divide(Datatype type, int simd_level) {
  const std::int64_t target = target_of(simd_level);
  if (!is_float(type)) return reference_divide(type);
  if (size_of(type) == 1) return float8_divide(type, target);
  return size_of(type) == 2 ? half_divide(type, target) : float_divide(type, target);
}

FoldFunction fold(OpKind op, Datatype type) {
  using Table = std::array<std::array<FoldFunction, datatype_count>, builtin_op_count>;
  static const Table best = [] {
    Table table;
    for (std::size_t i = 0; i < table.size(); ++i)
      for (std::size_t j = 0; j < table[i].size(); ++j)
        table[i][j] = fold(static_cast<OpKind>(i), static_cast<Datatype>(j), 0);
    return table;
  }();
  if (op == OpKind::user || type == Datatype::user) return nullptr;
  return best[static_cast<std::size_t>(op)][static_cast<std::size_t>(type)];
}

DivideFunction divide(Datatype type) { return divide(type, 0); }

}  // namespace baton::host
