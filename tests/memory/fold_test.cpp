#include <doctest/doctest.h>

#include <limits>

#include "baton/error.hpp"
#include "baton/memory.hpp"
#include "samples.hpp"

using namespace baton;
using samples::Bytes;

namespace {

template <Element T>
T folded(OpKind op, T left, T right) {
  T into;
  const FoldFunction fold = host::reference_fold(op, datatype_of<T>);
  REQUIRE((fold != nullptr));
  fold(&into, &left, &right, 1);
  return into;
}

/// Bits of left (+) right.
template <class T>
auto bits(OpKind op, T left, T right) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  return std::bit_cast<Bits>(folded(op, left, right));
}

/// Calls `check(l, r)` with all pairs of an integer type's special values.
template <class T, class Check>
void for_pairs(Check check) {
  for (const std::uint64_t l : samples::special(datatype_of<T>))
    for (const std::uint64_t r : samples::special(datatype_of<T>))
      check(static_cast<T>(l), static_cast<T>(r));
}

constexpr std::uint64_t seed = 20240229;

}  // namespace

TEST_CASE_TEMPLATE("integers wrap around", T, std::int8_t, std::uint8_t, std::int32_t,
                   std::uint32_t, std::int64_t, std::uint64_t) {
  for_pairs<T>([](T l, T r) {
    __extension__ using Wide = __int128;
    CAPTURE(+l);
    CAPTURE(+r);
    // Conversion to T is modulo 2^n; 128 bits hold every product.
    CHECK(folded(OpKind::sum, l, r) == static_cast<T>(Wide(l) + Wide(r)));
    CHECK(folded(OpKind::avg, l, r) == static_cast<T>(Wide(l) + Wide(r)));
    CHECK(folded(OpKind::prod, l, r) ==
          static_cast<T>(static_cast<std::uint64_t>(l) * static_cast<std::uint64_t>(r)));
    CHECK(folded(OpKind::min, l, r) == std::min(l, r));
    CHECK(folded(OpKind::max, l, r) == std::max(l, r));
    CHECK(folded(OpKind::logical_and, l, r) == T(l && r));
    CHECK(folded(OpKind::logical_or, l, r) == T(l || r));
    CHECK(folded(OpKind::logical_xor, l, r) == T(!l != !r));
    CHECK(folded(OpKind::bit_and, l, r) == T(l & r));
    CHECK(folded(OpKind::bit_or, l, r) == T(l | r));
    CHECK(folded(OpKind::bit_xor, l, r) == T(l ^ r));
  });
}

TEST_CASE_TEMPLATE("floats fold as IEEE says; every NaN is the canonical one", T, float, double) {
  using enum OpKind;
  using Limits = std::numeric_limits<T>;
  const T nan = Limits::quiet_NaN(), infinity = Limits::infinity(), least = Limits::denorm_min();
  const auto canonical = sizeof(T) == 4 ? 0x7fc00000 : 0x7ff8000000000000;
  for (const OpKind op : {sum, prod, min, max}) {
    CAPTURE(name(op));
    for (const T odd : {nan, -nan, Limits::signaling_NaN()}) {
      CHECK(bits(op, odd, T(1)) == canonical);
      CHECK(bits(op, T(1), odd) == canonical);
      CHECK(bits(op, odd, odd) == canonical);
    }
  }
  CHECK(bits(sum, infinity, -infinity) == canonical);
  CHECK(bits(prod, T(0), -infinity) == canonical);

  CHECK(folded(sum, T(1), Limits::epsilon() / 2) == 1);  // ties to even
  CHECK(folded(sum, 1 + Limits::epsilon(), Limits::epsilon() / 2) == 1 + 2 * Limits::epsilon());
  CHECK(folded(sum, Limits::max(), Limits::max()) == infinity);
  CHECK(folded(sum, least, least) == 2 * least);  // subnormals are kept
  CHECK(folded(prod, Limits::min(), T(0.5)) == Limits::min() / 2);
  CHECK(folded(min, T(-1), T(2)) == -1);
  CHECK(folded(max, T(-1), T(2)) == 2);

  const T zero = 0;  // the left one wins among equals
  CHECK(bits(min, zero, -zero) == bits(sum, zero, zero));
  CHECK(bits(max, zero, -zero) == bits(sum, zero, zero));
  CHECK(bits(min, -zero, zero) == bits(sum, -zero, -zero));
  CHECK(bits(max, -zero, zero) == bits(sum, -zero, -zero));
}

TEST_CASE("16-bit floats: canonical NaN, overflow to infinity, the left one among equals") {
  using enum OpKind;
  CHECK(folded(sum, f16{0x7bff}, f16{0x7bff}).bits == 0x7c00);
  CHECK(folded(sum, bf16{0x7f7f}, bf16{0x7f7f}).bits == 0x7f80);
  CHECK(folded(sum, f16{0x3c00}, f16{0x1000}).bits == 0x3c00);  // 1 + 2^-11: tie, to even
  CHECK(folded(sum, f16{0x3c01}, f16{0x1000}).bits == 0x3c02);
  for (const OpKind op : {sum, prod, min, max}) {
    CHECK(folded(op, f16{0xfd55}, f16{0x3c00}).bits == 0x7e00);
    CHECK(folded(op, f16{0x3c00}, f16{0xfd55}).bits == 0x7e00);
    CHECK(folded(op, bf16{0xff95}, bf16{0x3f80}).bits == 0x7fc0);
    CHECK(folded(op, bf16{0x3f80}, bf16{0xff95}).bits == 0x7fc0);
  }
  for (const OpKind op : {min, max}) {
    CHECK(folded(op, f16{0x8000}, f16{0}).bits == 0x8000);
    CHECK(folded(op, f16{0}, f16{0x8000}).bits == 0);
    CHECK(folded(op, bf16{0x8000}, bf16{0}).bits == 0x8000);
    CHECK(folded(op, bf16{0}, bf16{0x8000}).bits == 0);
  }
}

TEST_CASE("there is a fold exactly where the operation is defined") {
  for (const Datatype type : samples::datatypes()) {
    for (const OpKind op : samples::ops()) {
      for (const auto& variant : samples::variants())
        CHECK((variant.fold(op, type) != nullptr) == defined_on(op, type));
      CHECK((host::fold(op, type) == host::fold(op, type, 0)));
    }
    CHECK((host::fold(OpKind::user, type) == nullptr));
    CHECK((host::fold(OpKind::user, type, 0) == nullptr));
    CHECK((host::reference_fold(OpKind::user, type) == nullptr));
  }
}

TEST_CASE("levels that the machine has not are refused") {
  REQUIRE(host::simd_level_count() >= 1);
  CHECK_THROWS_AS(host::simd_level_name(host::simd_level_count()), Error);
  CHECK_THROWS_AS(host::fold(OpKind::sum, Datatype::f32, -1), Error);
}

TEST_CASE("every SIMD level gives the reference's bits, whatever count, alignment and aliasing") {
  std::mt19937_64 generator(seed);
  std::vector<std::size_t> counts(68);
  for (std::size_t i = 0; i < counts.size(); ++i) counts[i] = i;
  counts.insert(counts.end(), {255, 256, 257, 1000, 4099});
  const std::size_t margin = 64;  // bytes on both sides, which must not change

  for (const Datatype type : samples::datatypes()) {
    for (const OpKind op : samples::ops_on(type)) {
      int wrong = 0;
      const auto variants = samples::variants();
      for (std::size_t v = 1; v < variants.size(); ++v) {
        const FoldFunction fold = variants[v].fold(op, type);
        for (const std::size_t count : counts) {
          const std::size_t bytes = count * size_of(type);
          const Bytes left = samples::random(type, count, generator);
          const Bytes right = samples::random(type, count, generator);
          Bytes expected(bytes);
          host::reference_fold(op, type)(expected.data(), left.data(), right.data(), count);

          enum { apart, left_side, right_side };
          for (const auto where : {apart, left_side, right_side}) {
            const std::size_t skew[] = {generator() % 17, generator() % 17, generator() % 17};
            Bytes l(bytes + 2 * margin, 0xa5), r = l, i = l;
            const auto at = [&](Bytes& buffer, int k) {
              return buffer.data() + margin / 2 + skew[k];
            };
            std::copy(left.begin(), left.end(), at(l, 0));
            std::copy(right.begin(), right.end(), at(r, 1));
            unsigned char* const into = where == apart       ? at(i, 2)
                                        : where == left_side ? at(l, 0)
                                                             : at(r, 1);
            fold(into, at(l, 0), at(r, 1), count);
            bool same = std::equal(expected.begin(), expected.end(), into);
            if (where != left_side) same &= std::equal(left.begin(), left.end(), at(l, 0));
            if (where != right_side) same &= std::equal(right.begin(), right.end(), at(r, 1));
            for (int k = 1; k <= 15; ++k) same &= into[-k] == 0xa5 && into[bytes + k - 1] == 0xa5;
            wrong += !same;
            if (!same && wrong == 1) {
              CAPTURE(variants[v].name);
              CAPTURE(count);
              CAPTURE(static_cast<int>(where));
              CHECK(same);
            }
          }
        }
      }
      CAPTURE(name(type));
      CAPTURE(name(op));
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("both operands and the result may be one buffer") {
  std::vector<float> data(1000, 3);
  for (const auto& variant : samples::variants()) {
    data.assign(1000, 3);
    variant.fold(OpKind::prod, Datatype::f32)(data.data(), data.data(), data.data(), 1000);
    CHECK(data == std::vector<float>(1000, 9));
  }
}
