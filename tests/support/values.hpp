#pragma once
/// Values that every rank can tell of every other, and their comparison.

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace support {

using Counts = std::vector<std::int64_t>;

/// Steele, Lea & Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014: the
/// finisher.
inline std::uint64_t mixed(std::uint64_t z) {
  z += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

/// Element `index` of `rank`'s data of test number `seed`: a whole number from -50 to 50, which all
/// signed types and floats hold exactly, also summed over a few ranks.
inline int value(std::uint64_t seed, int rank, std::int64_t index) {
  const std::uint64_t bits = mixed(mixed(seed * 1000003 + static_cast<std::uint64_t>(rank)) +
                                   static_cast<std::uint64_t>(index));
  return static_cast<int>(bits % 101) - 50;
}

/// Whether they are equal: one call where == is a loop, of which a sanitizer sees every byte.
inline bool same_bytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

/// The same of elements, so that NaNs and the signs of zeros count.
template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return same_bytes(std::as_bytes(std::span(a)), std::as_bytes(std::span(b)));
}

/// Elements with a margin on both sides that nobody may touch.
template <class T>
class Guarded {
 public:
  static constexpr std::int64_t margin = 4;
  explicit Guarded(std::int64_t count, T fill = unset)
      : elements_(static_cast<std::size_t>(count + 2 * margin), guard) {
    for (T& element : span()) element = fill;
  }
  static Guarded of(std::uint64_t seed, int rank, std::int64_t count) {
    Guarded data(count);
    for (std::int64_t i = 0; i < count; ++i) data[i] = static_cast<T>(value(seed, rank, i));
    return data;
  }
  std::span<T> span() {
    return std::span(elements_).subspan(margin, elements_.size() - 2 * margin);
  }
  std::span<const T> span() const {
    return std::span(elements_).subspan(margin, elements_.size() - 2 * margin);
  }
  std::int64_t size() const { return static_cast<std::int64_t>(elements_.size()) - 2 * margin; }
  T& operator[](std::int64_t i) { return elements_[static_cast<std::size_t>(i + margin)]; }
  const T& operator[](std::int64_t i) const {
    return elements_[static_cast<std::size_t>(i + margin)];
  }
  /// Fails unless the elements are `expected` and the margins untouched; `context()` says where.
  template <class Context>
  void check(std::span<const T> expected, const Context& context) const {
    REQUIRE(expected.size() == span().size());
    std::int64_t wrong = -1, first = -1;
    for (std::int64_t i = size() - 1; i >= 0; --i) {
      if ((*this)[i] != expected[static_cast<std::size_t>(i)]) first = i;
    }
    for (std::int64_t i = 0; i < margin; ++i) {
      if ((*this)[-1 - i] != guard || (*this)[size() + i] != guard) wrong = i;
    }
    if (first >= 0) {
      FAIL_CHECK(context() << ": element " << first << " of " << size() << ": expected "
                           << expected[static_cast<std::size_t>(first)] << ", found "
                           << (*this)[first]);
    }
    if (wrong >= 0) FAIL_CHECK(context() << ": written " << wrong << " elements outside");
    CHECK(true);
  }
  bool operator==(const Guarded&) const = default;

  static constexpr T unset = static_cast<T>(99);

 private:
  static constexpr T guard = static_cast<T>(77);
  std::vector<T> elements_;
};

}  // namespace support
