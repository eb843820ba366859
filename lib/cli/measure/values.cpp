#include "values.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace baton::cli::measure {
namespace {

using Bits = std::uint64_t;

/// Steele, Lea & Flood, Fast splittable pseudorandom number generators, OOPSLA 2014.
Bits mixed(Bits z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

bool logical(OpKind op) {
  return op == OpKind::logical_and || op == OpKind::logical_or || op == OpKind::logical_xor;
}

template <class T>
T truncated(Bits bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(T));  // the low bytes; any will do
  return value;
}

/// Factors of exact products: powers of two, few of them other than 1 and -1.
template <class T>
T exact_factor(Bits bits, int rank) {
  const double magnitude = rank < 8 && (bits & 2) != 0 ? 2 : 1;
  return from_real<T>((bits & 1) != 0 ? -magnitude : magnitude);
}

/// Factors near 1, of few ranks, so that a product neither overflows nor underflows.
template <class T>
T random_factor(Bits bits, int rank) {
  if (rank >= (sizeof(T) == 1 ? 8 : 64)) return from_real<T>(1);
  const double magnitude = 0.75 + 0.5 * static_cast<double>(bits >> 11) * 0x1p-53;
  return from_real<T>((bits & 1) != 0 ? -magnitude : magnitude);
}

struct Precision {
  Datatype type;
  double unit_roundoff, least_positive;
};

constexpr Precision precisions[] = {
    {Datatype::f8e4m3, 0x1p-4, 0x1p-9}, {Datatype::f8e5m2, 0x1p-3, 0x1p-16},
    {Datatype::f16, 0x1p-11, 0x1p-24},  {Datatype::bf16, 0x1p-8, 0x1p-133},
    {Datatype::f32, 0x1p-24, 0x1p-149}, {Datatype::f64, 0x1p-53, 0x1p-1074},
};

Precision precision_of(Datatype type) {
  const auto* const found = std::ranges::find(precisions, type, &Precision::type);
  return found == std::end(precisions) ? Precision{type, 0, 0} : *found;
}

}  // namespace

double unit_roundoff(Datatype type) { return precision_of(type).unit_roundoff; }
double least_positive(Datatype type) { return precision_of(type).least_positive; }

template <class T>
void Values::write_as(int rank, std::int64_t first, std::int64_t count, void* to) const {
  const Bits stream = mixed(static_cast<Bits>(rank) + 1);
  T* const out = static_cast<T*>(to);
  const auto each = [&](auto&& value_of) {
    for (std::int64_t i = 0; i < count; ++i) {
      out[i] = value_of(mixed(stream + static_cast<Bits>(first + i) * 0x9e3779b97f4a7c15u));
    }
  };
  if (fill_ == Fill::bits) return each([](Bits bits) { return truncated<T>(bits); });
  if constexpr (std::is_integral_v<T>) {  // wraps around, so any number is exact
    if (op_ == OpKind::prod) return each([](Bits bits) { return truncated<T>(bits | 1); });
    if (logical(op_)) {
      return each([](Bits bits) { return bits >> 62 == 0 ? T{0} : truncated<T>(bits); });
    }
    return each([](Bits bits) { return truncated<T>(bits); });
  } else if (fill_ == Fill::exact) {
    if (op_ == OpKind::prod) return each([=](Bits bits) { return exact_factor<T>(bits, rank); });
    // Whole numbers whose sum over all ranks the significand holds.
    const auto most = static_cast<std::int64_t>(std::min(1 / unit_roundoff(type_), 0x1p24));
    const std::int64_t range = std::clamp<std::int64_t>(most / ranks_, rank < most ? 1 : 0, 100);
    const auto choices = static_cast<Bits>(2 * range + 1);
    return each([=](Bits bits) {
      const auto offset = static_cast<std::int64_t>((bits >> 32) * choices >> 32);
      return from_real<T>(static_cast<double>(offset - range));
    });
  } else {
    if (op_ == OpKind::prod) return each([=](Bits bits) { return random_factor<T>(bits, rank); });
    return each([](Bits bits) {
      return from_real<T>(static_cast<double>(static_cast<std::int64_t>(bits) >> 11) * 0x1p-52);
    });
  }
}

void Values::write(int rank, std::int64_t first, std::int64_t count, void* to) const {
  with_type(type_, [&](auto* type) { write_as<Pointee<decltype(type)>>(rank, first, count, to); });
}

}  // namespace baton::cli::measure
