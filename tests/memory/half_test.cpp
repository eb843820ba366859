#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "baton/types.hpp"
#include "samples.hpp"

using namespace baton;

namespace {

/// A 16-bit format by its definition, in double arithmetic: shares nothing with the library.
struct Format {
  int significand_bits, min_exponent, max_exponent;

  double value(unsigned bits) const {
    const int fraction_bits = significand_bits - 1;
    const unsigned fraction = bits & ((1u << fraction_bits) - 1);
    const int field = static_cast<int>((bits & 0x7fff) >> fraction_bits);
    const double sign = bits & 0x8000 ? -1 : 1;
    if (field == max_exponent - min_exponent + 2)
      return fraction ? NAN : sign * std::numeric_limits<double>::infinity();
    const unsigned leading = field ? 1u << fraction_bits : 0;
    return sign *
           std::ldexp(leading + fraction, std::max(field, 1) - 1 + min_exponent - fraction_bits);
  }

  unsigned nearest(double value) const {
    const int fraction_bits = significand_bits - 1;
    const unsigned infinity = static_cast<unsigned>(max_exponent - min_exponent + 2)
                              << fraction_bits;
    if (std::isnan(value)) return infinity | 1u << (fraction_bits - 1);
    const unsigned sign = std::signbit(value) ? 0x8000 : 0;
    value = std::fabs(value);
    if (value == 0) return sign;
    if (std::isinf(value)) return sign | infinity;
    const int exponent = std::max(std::ilogb(value), min_exponent);
    const double places = std::nearbyint(std::ldexp(value, fraction_bits - exponent));
    // `places` may reach the next power of two: the sum below carries into the exponent.
    const double bits = std::ldexp(exponent - min_exponent, fraction_bits) + places;
    return sign | (bits >= infinity ? infinity : static_cast<unsigned>(bits));
  }
};
constexpr Format binary16{11, -14, 15}, bfloat16{8, -126, 127};

unsigned bits_of(f16 value) { return value.bits; }
unsigned bits_of(bf16 value) { return value.bits; }

/// Calls `check` with every 16-bit value that is finite, the middle between it and its successor,
/// and the fp32 neighbours of all these; then with every 4093rd fp32 pattern.
template <class Check>
void for_interesting_floats(const Format& format, Check check) {
  const auto with_neighbours = [&](float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    for (const std::uint32_t near : {bits - 1, bits, bits + 1}) {
      check(std::bit_cast<float>(near));
      check(std::bit_cast<float>(near ^ 0x80000000));
    }
  };
  const unsigned infinity = format.nearest(std::numeric_limits<double>::infinity());
  for (unsigned bits = 0; bits < infinity; ++bits) {
    const double here = format.value(bits);
    const double next =
        bits + 1 < infinity ? format.value(bits + 1) : std::ldexp(1.0, format.max_exponent + 1);
    with_neighbours(static_cast<float>(here));
    with_neighbours(static_cast<float>(here / 2 + next / 2));
  }
  for (std::uint64_t bits = 0; bits < 1ull << 32; bits += 4093)
    check(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
}

bool same(double left, double right) {
  return std::isnan(left) ? std::isnan(right)
                          : left == right && std::signbit(left) == std::signbit(right);
}

}  // namespace

TEST_CASE("f16 and bf16 widen to fp32 exactly") {
  int wrong = 0;
  for (unsigned bits = 0; bits <= 0xffff; ++bits) {
    const auto pattern = static_cast<std::uint16_t>(bits);
    wrong += !same(to_float(f16{pattern}), binary16.value(bits));
    wrong += !same(to_float(bf16{pattern}), bfloat16.value(bits));
  }
  CHECK(wrong == 0);
}

TEST_CASE("fp32 narrows to the nearest f16 and bf16, ties to even") {
  int wrong = 0;
  for_interesting_floats(
      binary16, [&](float value) { wrong += bits_of(to_f16(value)) != binary16.nearest(value); });
  for_interesting_floats(
      bfloat16, [&](float value) { wrong += bits_of(to_bf16(value)) != bfloat16.nearest(value); });
  CHECK(wrong == 0);

  CHECK(bits_of(to_f16(65519.996f)) == 0x7bff);  // below the middle of 65504 and 65536
  CHECK(bits_of(to_f16(65520.0f)) == 0x7c00);
  CHECK(bits_of(to_f16(-std::numeric_limits<float>::quiet_NaN())) == 0x7e00);
  CHECK(bits_of(to_bf16(std::bit_cast<float>(0x7f800001u))) == 0x7fc0);
  CHECK(bits_of(to_bf16(std::numeric_limits<float>::max())) == 0x7f80);
}

TEST_CASE_TEMPLATE("every fold of 16-bit floats is its fp32 result, rounded to nearest even", T,
                   f16, bf16) {
  constexpr Datatype type = datatype_of<T>;
  const Format& format = type == Datatype::f16 ? binary16 : bfloat16;
  constexpr std::size_t all = 1 << 16;
  samples::Bytes left(2 * all), right(2 * all), into(2 * all);
  for (std::size_t i = 0; i < all; ++i) samples::put(left, i, type, i);

  std::vector<std::uint64_t> rights = samples::special(type);
  std::mt19937_64 generator(1);
  for (int i = 0; i < 24; ++i) rights.push_back(generator() & 0xffff);
  for (const std::uint64_t pattern : rights) {
    for (std::size_t i = 0; i < all; ++i) samples::put(right, i, type, pattern);
    const auto r = static_cast<float>(format.value(static_cast<unsigned>(pattern)));
    for (const OpKind op : {OpKind::sum, OpKind::prod}) {
      std::vector<unsigned> expected(all);
      for (unsigned i = 0; i < all; ++i) {
        const auto l = static_cast<float>(format.value(i));
        expected[i] = format.nearest(op == OpKind::sum ? l + r : l * r);
      }
      for (const auto& variant : samples::variants()) {
        variant.fold(op, type)(into.data(), left.data(), right.data(), all);
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < all; ++i) wrong += samples::get(into, i, type) != expected[i];
        CAPTURE(name(op));
        CAPTURE(pattern);
        CAPTURE(variant.name);
        CHECK(wrong == 0);
      }
    }
  }
}

TEST_CASE_TEMPLATE("a sum of P ranks stays within the documented bound", T, f16, bf16) {
  // (P - 1) u times the sum of magnitudes, for any order of folds.
  constexpr Datatype type = datatype_of<T>;
  const Format& format = type == Datatype::f16 ? binary16 : bfloat16;
  const double unit = std::ldexp(1.0, -format.significand_bits);
  std::mt19937_64 generator(2);
  std::normal_distribution<float> normal;
  double largest = 0;  // error, in parts of the bound
  for (const int ranks : {2, 3, 8, 64, 1000}) {
    for (int trial = 0; trial < 100; ++trial) {
      T total{};
      double exact = 0, magnitude = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        T term;
        if constexpr (type == Datatype::f16) {
          term = to_f16(normal(generator));
        } else {
          term = to_bf16(normal(generator));
        }
        exact += to_float(term);
        magnitude += std::fabs(to_float(term));
        host::fold(OpKind::sum, type)(&total, &total, &term, 1);
      }
      const double bound = (ranks - 1) * unit * magnitude;
      largest = std::max(largest, std::fabs(to_float(total) - exact) / bound);
    }
  }
  CHECK(largest <= 1);
  CHECK(largest > 0.01);  // it does round
}
