#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "baton/types.hpp"

namespace baton::cli {

/// Which numbers an input consists of.
enum class Fill : std::uint8_t {
  bits,    ///< any bits: for collectives that only move data
  exact,   ///< numbers whose reduction is exact in the datatype, in any order
  random,  ///< floating-point numbers whose reduction rounds
};

/// The inputs of all ranks, as a function of rank and element: what one rank holds, any other can
/// compute.
class Values {
 public:
  Values(Fill fill, OpKind op, Datatype type, int ranks)
      : fill_(fill), op_(op), type_(type), ranks_(ranks) {}

  Fill fill() const { return fill_; }
  Datatype type() const { return type_; }
  /// to = elements [first, first + count) of the rank's input.
  void write(int rank, std::int64_t first, std::int64_t count, void* to) const;

 private:
  template <class T>
  void write_as(int rank, std::int64_t first, std::int64_t count, void* to) const;
  Fill fill_;
  OpKind op_;
  Datatype type_;
  int ranks_;
};

/// Calls `use` with a null pointer to the C++ type of a datatype.
template <class F>
decltype(auto) with_type(Datatype type, F&& use) {
  switch (type) {
    case Datatype::i8:
      return use(static_cast<std::int8_t*>(nullptr));
    case Datatype::u8:
      return use(static_cast<std::uint8_t*>(nullptr));
    case Datatype::i32:
      return use(static_cast<std::int32_t*>(nullptr));
    case Datatype::u32:
      return use(static_cast<std::uint32_t*>(nullptr));
    case Datatype::i64:
      return use(static_cast<std::int64_t*>(nullptr));
    case Datatype::u64:
      return use(static_cast<std::uint64_t*>(nullptr));
    case Datatype::f8e4m3:
      return use(static_cast<f8e4m3*>(nullptr));
    case Datatype::f8e5m2:
      return use(static_cast<f8e5m2*>(nullptr));
    case Datatype::f16:
      return use(static_cast<f16*>(nullptr));
    case Datatype::bf16:
      return use(static_cast<bf16*>(nullptr));
    case Datatype::f32:
      return use(static_cast<float*>(nullptr));
    default:
      return use(static_cast<double*>(nullptr));
  }
}
template <class Pointer>
using Pointee = std::remove_pointer_t<Pointer>;

/// Whether a type is a float that folds in fp32.
template <class T>
constexpr bool is_narrow = std::is_same_v<T, f8e4m3> || std::is_same_v<T, f8e5m2> ||
                           std::is_same_v<T, f16> || std::is_same_v<T, bf16>;

/// Unit roundoff of a floating-point datatype; 0 for integers.
double unit_roundoff(Datatype type);
/// The smallest positive number of a floating-point datatype; 0 for integers.
double least_positive(Datatype type);

/// A number in the datatype T, rounded to nearest even, and back.
template <class T>
T from_real(double value) {
  if constexpr (std::is_same_v<T, f8e4m3>) {
    return to_f8e4m3(static_cast<float>(value));
  } else if constexpr (std::is_same_v<T, f8e5m2>) {
    return to_f8e5m2(static_cast<float>(value));
  } else if constexpr (std::is_same_v<T, f16>) {
    return to_f16(static_cast<float>(value));
  } else if constexpr (std::is_same_v<T, bf16>) {
    return to_bf16(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}
template <class T>
double to_real(T value) {
  if constexpr (is_narrow<T>) {
    return static_cast<double>(to_float(value));
  } else {
    return static_cast<double>(value);
  }
}

}  // namespace baton::cli
