#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "baton/types.hpp"
#include "samples.hpp"

using namespace baton;
using samples::Bytes;

namespace {

/// An 8-bit format by its table in the specification, in double arithmetic: shares nothing with the
/// library.
struct Format {
  int fraction_bits, bias;
  unsigned largest;  ///< code of the largest number
  unsigned nan;      ///< the canonical one
  bool infinities;   ///< next after the largest number

  /// Of a code without its sign, as if all codes were numbers.
  double magnitude(unsigned code) const {
    const unsigned field = code >> fraction_bits, fraction = code - (field << fraction_bits);
    if (field == 0) return std::ldexp(fraction, 1 - bias - fraction_bits);
    return std::ldexp((1u << fraction_bits) + fraction,
                      static_cast<int>(field) - bias - fraction_bits);
  }

  double value(unsigned bits) const {
    const unsigned code = bits & 0x7f;
    const double sign = bits & 0x80 ? -1 : 1;
    if (code <= largest) return sign * magnitude(code);
    if (infinities && code == largest + 1) return sign * std::numeric_limits<double>::infinity();
    return std::numeric_limits<double>::quiet_NaN();
  }

  /// The code whose number is nearest, of two equally near the even one, found by search. What is
  /// nearer to the number that would follow the largest overflows.
  unsigned nearest(double value) const {
    if (std::isnan(value)) return nan;
    const double wanted = std::fabs(value);
    unsigned low = 0;  // the last code whose number is not above
    while (low <= largest && magnitude(low + 1) <= wanted) ++low;
    unsigned code = low;
    if (low <= largest) {
      const double below = wanted - magnitude(low), above = magnitude(low + 1) - wanted;
      code += above < below || (above == below && low % 2 == 1);
    }
    if (code > largest && !infinities) return nan;
    return std::min(code, largest + 1) | (std::signbit(value) ? 0x80 : 0);
  }
};

template <class T>
constexpr Format format{};
template <>
constexpr Format format<f8e4m3>{3, 7, 0x7e, 0x7f, false};
template <>
constexpr Format format<f8e5m2>{2, 15, 0x7b, 0x7e, true};

template <class T>
unsigned narrowed(float value) {
  if constexpr (std::is_same_v<T, f8e4m3>) return to_f8e4m3(value).bits;
  if constexpr (std::is_same_v<T, f8e5m2>) return to_f8e5m2(value).bits;
}

template <class T>
T element(unsigned bits) {
  return {static_cast<std::uint8_t>(bits)};
}

bool same(double left, double right) {
  return std::isnan(left) ? std::isnan(right)
                          : left == right && std::signbit(left) == std::signbit(right);
}

/// Every code.
Bytes all_codes() {
  Bytes codes(256);
  for (unsigned i = 0; i < 256; ++i) codes[i] = static_cast<unsigned char>(i);
  return codes;
}

}  // namespace

TEST_CASE("the formats are those of the specification") {
  CHECK(format<f8e4m3>.magnitude(1) == 0x1p-9);
  CHECK(format<f8e4m3>.magnitude(8) == 0x1p-6);
  CHECK(format<f8e4m3>.magnitude(format<f8e4m3>.largest) == 448);
  CHECK(format<f8e5m2>.magnitude(1) == 0x1p-16);
  CHECK(format<f8e5m2>.magnitude(4) == 0x1p-14);
  CHECK(format<f8e5m2>.magnitude(format<f8e5m2>.largest) == 57344);
}

TEST_CASE_TEMPLATE("all codes widen to fp32 exactly, and back to themselves", T, f8e4m3, f8e5m2) {
  for (unsigned bits = 0; bits < 256; ++bits) {
    CAPTURE(bits);
    const float wide = to_float(element<T>(bits));
    CHECK(same(wide, format<T>.value(bits)));
    CHECK(narrowed<T>(wide) == (std::isnan(wide) ? format<T>.nan : bits));
  }
}

TEST_CASE_TEMPLATE("fp32 narrows to the nearest number, ties to even", T, f8e4m3, f8e5m2) {
  const auto wrong = [](float value) { return narrowed<T>(value) != format<T>.nearest(value); };
  // Numbers, the middles between neighbours, and the fp32 neighbours of all these.
  for (unsigned code = 0; code <= format<T>.largest; ++code) {
    const double here = format<T>.magnitude(code), next = format<T>.magnitude(code + 1);
    for (const double value : {here, (here + next) / 2, next}) {
      const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
      for (const std::uint32_t near : {bits - 1, bits, bits + 1}) {
        CAPTURE(near);
        CHECK(!wrong(std::bit_cast<float>(near)));
        CHECK(!wrong(std::bit_cast<float>(near ^ 0x80000000)));
      }
    }
  }
  // A lattice of all patterns, then those whose exponent is near the format's.
  int count = 0;
  for (std::uint64_t bits = 0; bits < 1ull << 32; bits += 16381)
    count += wrong(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  std::mt19937_64 generator(1);
  for (int i = 0; i < 1000000; ++i) {
    const std::uint64_t random = generator();
    const double significand = 1 + static_cast<double>(random >> 12) * 0x1p-52;
    const int exponent = static_cast<int>(random % 64) - 32;
    count += wrong(
        static_cast<float>(std::ldexp(random >> 11 & 1 ? significand : -significand, exponent)));
  }
  CHECK(count == 0);
}

TEST_CASE("overflow, infinities and NaN") {
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(to_f8e4m3(464).bits == 0x7e);  // the middle of 448 and 480, whose code is odd
  CHECK(to_f8e4m3(std::nextafter(464.0f, 500.0f)).bits == 0x7f);
  CHECK(to_f8e4m3(-465).bits == 0x7f);
  CHECK(to_f8e4m3(1e30f).bits == 0x7f);
  CHECK(to_f8e4m3(-infinity).bits == 0x7f);
  CHECK(to_f8e4m3(-std::numeric_limits<float>::quiet_NaN()).bits == 0x7f);
  CHECK(to_f8e5m2(std::nextafter(61440.0f, 0.0f)).bits == 0x7b);
  CHECK(to_f8e5m2(61440).bits == 0x7c);
  CHECK(to_f8e5m2(-1e30f).bits == 0xfc);
  CHECK(to_f8e5m2(std::bit_cast<float>(0xff800001u)).bits == 0x7e);
}

TEST_CASE_TEMPLATE("every fold of every pair is the exact result, rounded once", T, f8e4m3,
                   f8e5m2) {
  constexpr Datatype type = datatype_of<T>;
  constexpr std::size_t pairs = 1 << 16;
  Bytes left(pairs), right(pairs), into(pairs);
  for (std::size_t i = 0; i < pairs; ++i) {
    left[i] = static_cast<unsigned char>(i >> 8);
    right[i] = static_cast<unsigned char>(i);
  }
  // Doubles hold all sums and products.
  const auto expected = [](OpKind op, unsigned l, unsigned r) {
    const double x = format<T>.value(l), y = format<T>.value(r);
    if (op == OpKind::prod) return format<T>.nearest(x * y);
    if (op == OpKind::sum || op == OpKind::avg) return format<T>.nearest(x + y);
    if (std::isnan(x) || std::isnan(y)) return format<T>.nan;
    return (op == OpKind::min ? y < x : x < y) ? r : l;  // the left one among equals
  };
  for (const OpKind op : samples::ops_on(type)) {
    Bytes results(pairs);
    for (std::size_t i = 0; i < pairs; ++i)
      results[i] = static_cast<unsigned char>(expected(op, left[i], right[i]));
    for (const auto& variant : samples::variants()) {
      variant.fold(op, type)(into.data(), left.data(), right.data(), pairs);
      CAPTURE(name(op));
      CAPTURE(variant.name);
      CHECK(into == results);
    }
  }
}

TEST_CASE_TEMPLATE("every division is the exact quotient, rounded once", T, f8e4m3, f8e5m2) {
  constexpr Datatype type = datatype_of<T>;
  for (const int ranks : {1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 13, 48, 100, 127, 448, 1000, 100000}) {
    Bytes results = all_codes();
    for (auto& code : results) {
      code = static_cast<unsigned char>(format<T>.nearest(format<T>.value(code) / ranks));
    }
    for (const auto& variant : samples::variants()) {
      Bytes data = all_codes();
      variant.divide(type)(data.data(), data.size(), ranks);
      CAPTURE(ranks);
      CAPTURE(variant.name);
      CHECK(data == results);
    }
  }
}

TEST_CASE_TEMPLATE("a sum of P ranks stays within the documented bound", T, f8e4m3, f8e5m2) {
  const double unit = std::ldexp(1.0, -format<T>.fraction_bits - 1);
  std::mt19937_64 generator(2);
  std::normal_distribution<float> normal;
  double largest = 0;  // error, in parts of (P - 1) u times the sum of magnitudes
  for (const int ranks : {2, 3, 5, 8}) {
    for (int trial = 0; trial < 1000; ++trial) {
      T total{};
      double exact = 0, magnitude = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const auto term = element<T>(narrowed<T>(normal(generator)));
        exact += to_float(term);
        magnitude += std::fabs(to_float(term));
        host::fold(OpKind::sum, datatype_of<T>)(&total, &total, &term, 1);
      }
      largest =
          std::max(largest, std::fabs(to_float(total) - exact) / ((ranks - 1) * unit * magnitude));
    }
  }
  CHECK(largest <= 1);
  CHECK(largest > 0.01);  // it does round
}
