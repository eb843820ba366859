#pragma once

#include <cstdint>
#include <type_traits>

#include "baton/types.hpp"

/// From datatypes to types of C++.
namespace baton::cli {

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
