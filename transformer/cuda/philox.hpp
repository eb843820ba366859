#pragma once
/// The words that ../random.hpp draws, on host and device.

#include "baton/device_code.hpp"

namespace baton::transformer::cuda {

/// A sequence, as Random.
struct Sequence {
  std::uint32_t key[2], stream[2];
};

struct Words {
  std::uint32_t word[4];
};

/// Philox 4x32 with 10 rounds, of the words of positions 4 · block to 4 · block + 3.
BATON_DEVICE Words philox(const Sequence& of, std::uint64_t block) {
  std::uint32_t c0 = static_cast<std::uint32_t>(block),
                c1 = static_cast<std::uint32_t>(block >> 32), c2 = of.stream[0], c3 = of.stream[1],
                k0 = of.key[0], k1 = of.key[1];
  BATON_UNROLL
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * c0, b = std::uint64_t{0xCD9E8D57} * c2;
    c0 = static_cast<std::uint32_t>(b >> 32) ^ c1 ^ k0, c1 = static_cast<std::uint32_t>(b);
    c2 = static_cast<std::uint32_t>(a >> 32) ^ c3 ^ k1, c3 = static_cast<std::uint32_t>(a);
    k0 += 0x9E3779B9, k1 += 0xBB67AE85;
  }
  return {{c0, c1, c2, c3}};
}

/// Dropout's factor of an element: 0 if the word is below `limit`, else `scale`.
struct Mask {
  Sequence sequence{};
  std::uint32_t limit = 0;
  float scale = 1;

  BATON_DEVICE float of(std::uint32_t word) const { return word < limit ? 0 : scale; }
  BATON_DEVICE float at(std::uint64_t position) const {
    const Words words = philox(sequence, position / 4);
    const auto which = static_cast<std::uint32_t>(position % 4);
    // By comparisons: an index would put the words into memory.
    const std::uint32_t low = which & 1 ? words.word[1] : words.word[0];
    const std::uint32_t high = which & 1 ? words.word[3] : words.word[2];
    return of(which & 2 ? high : low);
  }
  /// Of positions `first` to `first` + 3.
  BATON_DEVICE void quad(std::uint64_t first, float (&factors)[4]) const {
    const Words words = philox(sequence, first / 4);
    if (first % 4 == 0) {
      BATON_UNROLL
      for (int i = 0; i < 4; ++i) factors[i] = of(words.word[i]);
      return;
    }
    const Words next = philox(sequence, first / 4 + 1);
    const auto skipped = static_cast<int>(first % 4);
    BATON_UNROLL
    for (int i = 0; i < 4; ++i) {
      std::uint32_t word = 0;
      BATON_UNROLL
      for (int k = 0; k < 8; ++k)
        if (k == i + skipped) word = k < 4 ? words.word[k] : next.word[k - 4];
      factors[i] = of(word);
    }
  }
};

}  // namespace baton::transformer::cuda
