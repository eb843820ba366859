#include "elements.hpp"

#include <c10/util/StringUtil.h>
#include <optional>
#include <stdexcept>

namespace baton::pytorch {
namespace {

std::optional<Datatype> datatype(at::ScalarType type) {
  switch (type) {
    case at::kBool:
    case at::kByte:
      return Datatype::u8;
    case at::kChar:
      return Datatype::i8;
    case at::kInt:
      return Datatype::i32;
    case at::kLong:
      return Datatype::i64;
    case at::kUInt32:
      return Datatype::u32;
    case at::kUInt64:
      return Datatype::u64;
    case at::kHalf:
      return Datatype::f16;
    case at::kBFloat16:
      return Datatype::bf16;
    case at::kFloat:
      return Datatype::f32;
    case at::kDouble:
      return Datatype::f64;
    case at::kFloat8_e4m3fn:
      return Datatype::f8e4m3;
    case at::kFloat8_e5m2:
      return Datatype::f8e5m2;
    default:
      return std::nullopt;
  }
}

OpKind kind_of(at::ScalarType type, const c10d::ReduceOp& op) {
  using Kind = c10d::ReduceOp::RedOpType;
  const bool truth = type == at::kBool;
  switch (static_cast<Kind>(op)) {
    case Kind::SUM:
    case Kind::PREMUL_SUM:
      return truth ? OpKind::bit_or : OpKind::sum;
    case Kind::AVG:
      return OpKind::avg;
    case Kind::PRODUCT:
      return truth ? OpKind::bit_and : OpKind::prod;
    case Kind::MIN:
      return truth ? OpKind::bit_and : OpKind::min;
    case Kind::MAX:
      return truth ? OpKind::bit_or : OpKind::max;
    case Kind::BAND:
      return OpKind::bit_and;
    case Kind::BOR:
      return OpKind::bit_or;
    case Kind::BXOR:
      return OpKind::bit_xor;
    default:
      throw std::invalid_argument("baton: Unhandled ReduceOp");
  }
}

}  // namespace

Elements moved(at::ScalarType type) {
  if (const auto own = datatype(type)) return {*own};
  return {Datatype::u8, static_cast<std::int64_t>(c10::elementSize(type))};
}

Elements reduced(at::ScalarType type, const c10d::ReduceOp& op) {
  const bool complex = at::isComplexType(type);
  if (op.op_ == c10d::ReduceOp::PREMUL_SUM && !complex && !at::isFloatingType(type))
    throw std::invalid_argument(
        c10::str("baton: Invalid scalar type: expected floating-point "
                 "numbers to multiply before the sum, found ",
                 c10::toString(type)));
  const auto own = datatype(complex ? c10::toRealValueType(type) : type);
  const OpKind kind = kind_of(type, op);
  const bool defined = own && defined_on(kind, *own) &&
                       !(complex && kind != OpKind::sum && kind != OpKind::avg) &&
                       !(type == at::kBool && kind == OpKind::avg);
  if (!defined)
    throw std::invalid_argument(c10::str("baton: Invalid scalar type: expected one on which ",
                                         baton::name(kind), " is defined, found ",
                                         c10::toString(type)));
  return {*own, complex ? 2 : 1};
}

Op op_of(at::ScalarType type, const c10d::ReduceOp& op) { return kind_of(type, op); }

}  // namespace baton::pytorch
