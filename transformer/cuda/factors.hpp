#pragma once
/// The factors of tensor cores' products: words of 32 bits, of which a word is one f32 or two bf16.

#include <bit>
#include <concepts>
#include <cstdint>

#include "baton/device_code.hpp"

namespace baton::transformer::cuda {

/// Four words: 16 bytes, as memory is loaded; or a thread's part of a factor of 16 rows.
struct alignas(16) Chunk {
  std::uint32_t word[4];
};
/// A thread's part of a factor of 8 columns.
struct TwoWords {
  std::uint32_t word[2];
};

BATON_DEVICE float as_float(std::uint32_t word) { return std::bit_cast<float>(word); }
BATON_DEVICE std::uint32_t as_word(float value) { return std::bit_cast<std::uint32_t>(value); }

/// f32 of which tensor cores take the first 10 bits of mantissa. What it says of words holds for
/// both kinds of f32.
struct FloatWords {
  using Element = float;
  static constexpr bool by_warpgroups = false, by_tma = false;
  static constexpr std::uint32_t taken = 0xffffe000;
  /// Where the factors of a word lie in the sum of a product.
  static void spread(std::uint32_t word, int index, float* factors) {
    factors[index] = as_float(word & taken);
  }
};
/// Products of f32 to f32's own precision: a factor is a sum of two, whose three products that
/// matter are added up (Ootomo and Yokota, Recovering single precision accuracy from tensor cores,
/// 2022).
struct F32 : FloatWords {
  static constexpr int parts = 2;
  /// The first part of a factor; `low` gets the second. Both keep NaN.
  static BATON_DEVICE std::uint32_t split(std::uint32_t word, std::uint32_t& low) {
    const std::uint32_t high = word & taken;
    low = as_word(as_float(word) - as_float(high));
    return high;
  }
};
/// Products of f32 whose factors are rounded to tf32.
struct Tf32 : FloatWords {
  static constexpr int parts = 1;
  static BATON_DEVICE std::uint32_t split(std::uint32_t word, std::uint32_t&) {
#ifdef __CUDA_ARCH__
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(word) : "f"(as_float(word)));
    return word;
#else
    return (word & 0x7fffffff) > 0x7f800000 ? word : (word + 0x1000) & taken;
#endif
  }
};
/// Products of bf16.
struct Bf16 {
  using Element = bf16;
  static constexpr bool by_warpgroups = false, by_tma = false;
  static constexpr int parts = 1;
  static void spread(std::uint32_t word, int index, float* factors) {
    factors[2 * index] = as_float(word << 16), factors[2 * index + 1] = as_float(word & 0xffff0000);
  }
  static BATON_DEVICE std::uint32_t split(std::uint32_t word, std::uint32_t&) { return word; }
};
/// The same by warpgroups: four warps multiply tiles that tensor cores take from shared memory, as
/// devices of compute capability 9.0 do.
struct WarpgroupBf16 : Bf16 {
  static constexpr bool by_warpgroups = true;
};
/// The same of rows of whole chunks, whose tiles come by TMA, the Tensor Memory Accelerator.
struct TmaBf16 : WarpgroupBf16 {
  static constexpr bool by_tma = true;
};

/// A word of two bf16; `first` comes first in memory.
BATON_DEVICE std::uint32_t pair_of(float first, float second) {
#ifdef __CUDA_ARCH__
  std::uint32_t word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(second), "f"(first));
  return word;
#else
  return floats::narrow<bf16>(first).bits |
         static_cast<std::uint32_t>(floats::narrow<bf16>(second).bits) << 16;
#endif
}
/// The first or the second bf16 of two words, as a word.
template <bool second>
BATON_DEVICE std::uint32_t pair_of_words(std::uint32_t a, std::uint32_t b) {
#ifdef __CUDA_ARCH__
  return __byte_perm(a, b, second ? 0x7632 : 0x5410);
#else
  return second ? (a >> 16 | (b & 0xffff0000)) : ((a & 0xffff) | b << 16);
#endif
}

}  // namespace baton::transformer::cuda
