#pragma once
/// Values to fold, and loops over what there is to test.

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "baton/memory.hpp"

namespace samples {

using Bytes = std::vector<unsigned char>;

inline std::vector<baton::Datatype> datatypes() {
  std::vector<baton::Datatype> all;
  for (int i = 0; i < baton::datatype_count; ++i) all.push_back(static_cast<baton::Datatype>(i));
  return all;
}

inline std::vector<baton::OpKind> ops() {
  std::vector<baton::OpKind> all;
  for (int i = 0; i < baton::builtin_op_count; ++i) all.push_back(static_cast<baton::OpKind>(i));
  return all;
}

inline std::vector<baton::OpKind> ops_on(baton::Datatype type) {
  auto all = ops();
  std::erase_if(all, [&](baton::OpKind op) { return !baton::defined_on(op, type); });
  return all;
}

/// The reference, then every SIMD level, best first.
struct Variant {
  std::string name;
  std::function<baton::FoldFunction(baton::OpKind, baton::Datatype)> fold;
  std::function<baton::DivideFunction(baton::Datatype)> divide;
};
inline std::vector<Variant> variants() {
  std::vector<Variant> all{
      {"reference", baton::host::reference_fold, baton::host::reference_divide}};
  for (int level = 0; level < baton::host::simd_level_count(); ++level)
    all.push_back({baton::host::simd_level_name(level),
                   [=](auto op, auto type) { return baton::host::fold(op, type, level); },
                   [=](auto type) { return baton::host::divide(type, level); }});
  return all;
}

/// Bit patterns at which arithmetic changes its mind.
inline std::vector<std::uint64_t> special(baton::Datatype type) {
  using enum baton::Datatype;
  const auto with_signs = [](std::vector<std::uint64_t> list, std::uint64_t sign) {
    for (std::size_t i = 0, n = list.size(); i < n; ++i) list.push_back(list[i] | sign);
    return list;
  };
  switch (type) {
    case f8e4m3:
    case f8e5m2: {
      std::vector<std::uint64_t> all(256);
      std::iota(all.begin(), all.end(), 0);
      return all;
    }
    case f16:  // 0, subnormals, least normal, 1 and its neighbours, 2048, largest, inf, NaNs
      return with_signs({0, 1, 0x3ff, 0x400, 0x3bff, 0x3c00, 0x3c01, 0x6800, 0x7bff, 0x7c00, 0x7c01,
                         0x7e00, 0x7fff},
                        0x8000);
    case bf16:
      return with_signs({0, 1, 0x7f, 0x80, 0x3f7f, 0x3f80, 0x3f81, 0x4380, 0x7f7f, 0x7f80, 0x7f81,
                         0x7fc0, 0x7fff},
                        0x8000);
    case f32:
      return with_signs({0, 1, 0x7fffff, 0x800000, 0x3f7fffff, 0x3f800000, 0x3f800001, 0x4b800000,
                         0x7f7fffff, 0x7f800000, 0x7f800001, 0x7fc00000, 0x7fffffff},
                        0x80000000);
    case f64:
      return with_signs(
          {0, 1, 0xfffffffffffff, 0x10000000000000, 0x3fefffffffffffff, 0x3ff0000000000000,
           0x3ff0000000000001, 0x4340000000000000, 0x7fefffffffffffff, 0x7ff0000000000000,
           0x7ff0000000000001, 0x7ff8000000000000, 0x7fffffffffffffff},
          0x8000000000000000);
    default: {
      const std::uint64_t top = 1ull << (8 * baton::size_of(type) - 1);
      return {0, 1, 2, 3, 127, top - 1, top, top + 1, ~0ull, ~1ull, 0xaaaaaaaaaaaaaaaa};
    }
  }
}

inline void put(Bytes& bytes, std::size_t index, baton::Datatype type, std::uint64_t bits) {
  static_assert(std::endian::native == std::endian::little);
  std::memcpy(bytes.data() + index * baton::size_of(type), &bits, baton::size_of(type));
}

inline std::uint64_t get(const Bytes& bytes, std::size_t index, baton::Datatype type) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, bytes.data() + index * baton::size_of(type), baton::size_of(type));
  return bits;
}

/// `count` elements: special values, random bits, and floats of moderate size, which add up.
inline Bytes random(baton::Datatype type, std::size_t count, std::mt19937_64& generator) {
  const auto specials = special(type);
  Bytes bytes(count * baton::size_of(type));
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t bits = generator(), choice = generator() % 4;
    if (choice == 0) {
      put(bytes, i, type, specials[bits % specials.size()]);
    } else if (choice == 1 || !baton::is_float(type)) {
      put(bytes, i, type, bits);
    } else {
      const double moderate = std::ldexp(static_cast<double>(static_cast<std::int64_t>(bits)), -60);
      const auto single = static_cast<float>(moderate);
      using enum baton::Datatype;
      put(bytes, i, type,
          type == f8e4m3   ? baton::to_f8e4m3(single).bits
          : type == f8e5m2 ? baton::to_f8e5m2(single).bits
          : type == f16    ? baton::to_f16(single).bits
          : type == bf16   ? baton::to_bf16(single).bits
          : type == f32    ? std::bit_cast<std::uint32_t>(single)
                           : std::bit_cast<std::uint64_t>(moderate));
    }
  }
  return bytes;
}

}  // namespace samples
