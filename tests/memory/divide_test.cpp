#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "baton/memory.hpp"
#include "samples.hpp"

using namespace baton;
using samples::Bytes;

namespace {

template <Element T>
T divided(T value, int ranks) {
  host::reference_divide(datatype_of<T>)(&value, 1, ranks);
  return value;
}

}  // namespace

TEST_CASE("integers divide toward zero") {
  CHECK(divided(std::int32_t{7}, 2) == 3);
  CHECK(divided(std::int32_t{-7}, 2) == -3);
  CHECK(divided(std::uint32_t{0xffffffff}, 2) == 0x7fffffff);
  CHECK(divided(std::int8_t{-128}, 200) == 0);  // more ranks than the type holds
  CHECK(divided(std::int8_t{-128}, 127) == -1);
  CHECK(divided(std::uint8_t{255}, 256) == 0);
  CHECK(divided(std::numeric_limits<std::int64_t>::min(), 3) == -3074457345618258602);
  CHECK(divided(std::numeric_limits<std::uint64_t>::max(), 3) == 6148914691236517205u);
  CHECK(divided(std::numeric_limits<std::int64_t>::min(), 1) ==
        std::numeric_limits<std::int64_t>::min());
}

TEST_CASE("floats divide truly, in their own precision; 16-bit ones in fp32") {
  CHECK(divided(1.0f, 3) == 1.0f / 3.0f);
  CHECK(divided(1.0, 3) == 1.0 / 3.0);
  CHECK(divided(std::numeric_limits<float>::denorm_min() * 4, 2) ==
        std::numeric_limits<float>::denorm_min() * 2);
  CHECK(divided(f16{0x3c00}, 3).bits == 0x3555);   // 0.33325: below 1/3
  CHECK(divided(bf16{0x3f80}, 3).bits == 0x3eab);  // 0.33398: above 1/3
  CHECK(divided(f16{0x0003}, 2).bits == 0x0002);   // 1.5 units: tie, to even
  CHECK(divided(f16{0x0001}, 2).bits == 0x0000);
  CHECK(divided(f16{0xfc00}, 5).bits == 0xfc00);
  CHECK(divided(f16{0xfe01}, 5).bits == 0x7e00);
  CHECK(divided(bf16{0xffff}, 5).bits == 0x7fc0);
  CHECK(std::bit_cast<std::uint32_t>(divided(std::bit_cast<float>(0xffabcdefu), 5)) == 0x7fc00000);
  CHECK(std::bit_cast<std::uint64_t>(divided(std::bit_cast<double>(~0ull), 5)) ==
        0x7ff8000000000000);
}

TEST_CASE("every SIMD level divides to the reference's bits") {
  std::mt19937_64 generator(3);
  for (const Datatype type : samples::datatypes()) {
    int wrong = 0;
    for (const auto& variant : samples::variants()) {
      for (const std::size_t count : {0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 64, 67, 1000}) {
        for (const int ranks : {1, 2, 3, 7, 16, 100, 1000, 4096}) {
          const Bytes data = samples::random(type, count, generator);
          Bytes expected = data;
          host::reference_divide(type)(expected.data(), count, ranks);
          Bytes skewed(data.size() + 2, 0xa5);
          std::copy(data.begin(), data.end(), skewed.begin() + 1);
          variant.divide(type)(skewed.data() + 1, count, ranks);
          wrong += !std::equal(expected.begin(), expected.end(), skewed.begin() + 1);
          wrong += skewed.front() != 0xa5 || skewed.back() != 0xa5;
        }
      }
    }
    CAPTURE(name(type));
    CHECK(wrong == 0);
  }
}

TEST_CASE_TEMPLATE("all 16-bit floats divide alike at every SIMD level", T, f16, bf16) {
  constexpr Datatype type = datatype_of<T>;
  for (const int ranks : {1, 2, 3, 5, 6, 7, 48, 1000, 100000}) {
    Bytes data(2 << 16);
    for (std::size_t i = 0; i <= 0xffff; ++i) samples::put(data, i, type, i);
    Bytes expected = data;
    host::reference_divide(type)(expected.data(), 1 << 16, ranks);
    for (const auto& variant : samples::variants()) {
      Bytes result = data;
      variant.divide(type)(result.data(), 1 << 16, ranks);
      CAPTURE(ranks);
      CAPTURE(variant.name);
      CHECK(result == expected);
    }
  }
}
