#pragma once

#include <cstdint>
#include <type_traits>

#include "baton/types.hpp"

/// From datatypes to types of C++.
namespace baton::cli {

/// Calls `use` with a null pointer to the C++ type of a datatype: one of these.
template <class T, class... Rest, class F>
decltype(auto) with_type_of(Datatype type, F&& use) {
  if constexpr (sizeof...(Rest) > 0) {
    if (type != datatype_of<T>) return with_type_of<Rest...>(type, use);
  }
  return use(static_cast<T*>(nullptr));
}
/// Any but Datatype::user.
template <class F>
decltype(auto) with_type(Datatype type, F&& use) {
  return with_type_of<std::int8_t, std::uint8_t, std::int32_t, std::uint32_t, std::int64_t,
                      std::uint64_t, f8e4m3, f8e5m2, f16, bf16, float, double>(type, use);
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
