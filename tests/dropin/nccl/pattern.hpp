#pragma once
/// Data for reductions and movements whose results are exact in every datatype of NCCL's, in any
/// order of folds: small integers, powers of two for products, and any bits where nothing folds.

#include <nccl.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace nccl_pattern {

/// A datatype's form. Integers: `exact` is the largest sum of an average.
struct Form {
  std::size_t bytes;
  bool is_float, is_signed;
  std::int64_t exact;                // all integers up to it are numbers of the type
  int exponent_bits, fraction_bits;  // of floats
};

inline Form form_of(int type) {
  constexpr std::int64_t wide = std::int64_t{1} << 40;
  switch (type) {
    case ncclInt8:
      return {1, false, true, 127, 0, 0};
    case ncclUint8:
      return {1, false, false, 127, 0, 0};
    case ncclInt32:
      return {4, false, true, (std::int64_t{1} << 31) - 1, 0, 0};
    case ncclUint32:
      return {4, false, false, (std::int64_t{1} << 31) - 1, 0, 0};
    case ncclInt64:
      return {8, false, true, wide, 0, 0};
    case ncclUint64:
      return {8, false, false, wide, 0, 0};
    case ncclFloat16:
      return {2, true, true, 1 << 11, 5, 10};
    case ncclBfloat16:
      return {2, true, true, 1 << 8, 8, 7};
    case ncclFloat8e4m3:
      return {1, true, true, 1 << 4, 4, 3};
    case ncclFloat8e5m2:
      return {1, true, true, 1 << 3, 5, 2};
    case ncclFloat32:
      return {4, true, true, 1 << 24, 8, 23};
    default:
      return {8, true, true, wide, 11, 52};
  }
}

/// The bits of a number that the float type has; neither subnormal nor infinite.
inline std::uint64_t bits_of(double number, const Form& form) {
  const std::uint64_t sign = std::signbit(number) ? 1 : 0;
  std::uint64_t rest = 0;
  if (number != 0) {
    int exponent = 0;
    const double fraction = 2 * std::frexp(std::abs(number), &exponent) - 1;
    const int biased = exponent - 1 + (1 << (form.exponent_bits - 1)) - 1;
    rest = (static_cast<std::uint64_t>(biased) << form.fraction_bits) +
           static_cast<std::uint64_t>(std::ldexp(fraction, form.fraction_bits));
  }
  return sign << (form.exponent_bits + form.fraction_bits) | rest;
}

/// The data of one call.
struct Pattern {
  int type;   ///< an ncclDataType_t
  int op;     ///< an ncclRedOp_t; ncclNumOps is PreMulSum
  int ranks;  ///< that the reduction has
  std::uint64_t seed = 0;
  int (*factor)(int rank) = nullptr;  ///< PreMulSum's, 1 or 2

  std::uint64_t input(int rank, std::int64_t index) const {
    const Form form = form_of(type);
    if (ranks == 1 && op == ncclSum) return cut(random(0, index), form);
    if (form.is_float) return bits_of(number(rank, index, form), form);
    if (op == ncclAvg) return cut(static_cast<std::uint64_t>(part(rank, index, form)), form);
    return cut(op == ncclProd ? random(rank, index) | 1 : random(rank, index), form);
  }

  std::uint64_t result(std::int64_t index) const {
    const Form form = form_of(type);
    if (ranks == 1 && op == ncclSum) return input(0, index);
    if (form.is_float) {
      if (op == ncclAvg) return bits_of(static_cast<double>(average(index, form)), form);
      double all = number(0, index, form) * scale(0);
      for (int rank = 1; rank < ranks; ++rank)
        all = folded(all, number(rank, index, form) * scale(rank));
      return bits_of(all == 0 ? 0 : all, form);
    }
    if (op == ncclAvg) return cut(static_cast<std::uint64_t>(average(index, form)), form);
    const auto own = [&](int rank) {
      return input(rank, index) * static_cast<std::uint64_t>(scale(rank));
    };
    std::uint64_t all = own(0);
    for (int rank = 1; rank < ranks; ++rank)
      all = form.is_signed
                ? static_cast<std::uint64_t>(folded(extended(all, form), extended(own(rank), form)))
                : folded(all, own(rank));
    return cut(all, form);
  }

 private:
  static std::uint64_t cut(std::uint64_t bits, const Form& form) {
    return form.bytes == 8 ? bits : bits & ((std::uint64_t{1} << 8 * form.bytes) - 1);
  }
  static std::int64_t extended(std::uint64_t bits, const Form& form) {
    const auto unused = static_cast<int>(64 - 8 * form.bytes);
    return static_cast<std::int64_t>(bits << unused) >> unused;
  }

  /// Finalizer of MurmurHash3, in the public domain.
  static std::uint64_t mixed(std::uint64_t bits) {
    bits = (bits ^ bits >> 33) * 0xff51afd7ed558ccdu;
    bits = (bits ^ bits >> 33) * 0xc4ceb9fe1a85ec53u;
    return bits ^ bits >> 33;
  }
  std::uint64_t random(int of, std::int64_t index) const {
    return mixed(mixed(seed * 64 + static_cast<std::uint64_t>(of) + 1) +
                 static_cast<std::uint64_t>(index));
  }
  /// One of first … last.
  static std::int64_t within(std::uint64_t bits, std::int64_t first, std::int64_t last) {
    return first +
           static_cast<std::int64_t>((bits >> 8) % static_cast<std::uint64_t>(last - first + 1));
  }

  int scale(int rank) const { return op == ncclNumOps && factor != nullptr ? factor(rank) : 1; }

  template <class T>
  T folded(T left, T right) const {
    // Integers wrap around, which only unsigned ones of full width may.
    using Wrapping = std::conditional_t<std::is_integral_v<T>, std::uint64_t, T>;
    const auto l = static_cast<Wrapping>(left), r = static_cast<Wrapping>(right);
    switch (op) {
      case ncclProd:
        return static_cast<T>(l * r);
      case ncclMax:
        return std::max(left, right);
      case ncclMin:
        return std::min(left, right);
      default:
        return static_cast<T>(l + r);
    }
  }

  /// Whether the rank is one of so many that change this element's sum or product.
  bool counts(int rank, std::int64_t index, std::int64_t most) const {
    return (rank + index) % ranks < most;
  }

  /// An average: pairs of ranks are as far above it as below, so that the sum is a multiple.
  std::int64_t average(std::int64_t index, const Form& form) const {
    const std::int64_t each = form.exact / ranks;
    const std::int64_t size = within(random(-1, index), each / 4, each - each / 4);
    return form.is_signed && (random(-2, index) >> 20 & 1) != 0 ? -size : size;
  }
  std::int64_t part(int rank, std::int64_t index, const Form& form) const {
    const std::int64_t whole = average(index, form);
    if ((rank | 1) >= ranks) return whole;
    const std::int64_t far = within(random(rank / 2, index), 0, form.exact / ranks / 4);
    return rank % 2 == 0 ? whole + far : whole - far;
  }

  double number(int rank, std::int64_t index, const Form& form) const {
    const std::uint64_t bits = random(rank, index);
    switch (op) {
      case ncclAvg:
        return static_cast<double>(part(rank, index, form));
      case ncclMax:
      case ncclMin:
        return static_cast<double>(within(bits, -form.exact, form.exact));
      case ncclProd: {
        const auto exponent = counts(rank, index, 6) ? static_cast<int>(within(bits, -1, 1)) : 0;
        return std::ldexp((bits & 1) != 0 ? -1.0 : 1.0, exponent);
      }
      default: {
        const std::int64_t largest = form.exact / (op == ncclNumOps ? 2 : 1);
        const std::int64_t most = std::min<std::int64_t>(ranks, largest);
        if (!counts(rank, index, most)) return 0;
        return static_cast<double>(within(bits, -largest / most, largest / most));
      }
    }
  }
};

/// Writes `count` elements, bits_of(0) … bits_of(count - 1).
template <class BitsOf>
void fill(void* elements, std::int64_t count, int type, const BitsOf& bits_of_element) {
  const std::size_t bytes = form_of(type).bytes;
  auto* at = static_cast<std::byte*>(elements);
  for (std::int64_t i = 0; i < count; ++i, at += bytes) {
    const std::uint64_t bits = bits_of_element(i);  // little-endian
    std::memcpy(at, &bits, bytes);
  }
}

/// How many of `count` elements are not those of bits_of(0) … bits_of(count - 1).
template <class BitsOf>
std::int64_t wrong(const void* elements, std::int64_t count, int type,
                   const BitsOf& bits_of_element) {
  const std::size_t bytes = form_of(type).bytes;
  const auto* at = static_cast<const std::byte*>(elements);
  std::int64_t found = 0;
  for (std::int64_t i = 0; i < count; ++i, at += bytes) {
    const std::uint64_t bits = bits_of_element(i);
    found += std::memcmp(at, &bits, bytes) != 0;
  }
  return found;
}

}  // namespace nccl_pattern
