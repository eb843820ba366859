#include "random.hpp"

#include <cmath>
#include <numbers>

#include "accelerator.hpp"
#include "emulated.hpp"
#include "instantiation.hpp"

namespace baton::transformer {
namespace {

/// Calls body(element, its position in the whole) for all elements of a piece.
template <class T, class Body>
void each(View<T> view, const Piece& piece, const Body& body, int dim = 0,
          std::uint64_t position = 0) {
  if (view.rank() == 0) return body(*view.data(), position);
  const auto below = static_cast<std::uint64_t>(piece.whole.product(dim + 1, piece.whole.rank()));
  const auto first = static_cast<std::uint64_t>(piece.first[static_cast<std::size_t>(dim)]);
  for (std::int64_t i = 0; i < view.extent(0); ++i) {
    const std::uint64_t here = position + (first + static_cast<std::uint64_t>(i)) * below;
    if (view.rank() == 1) {
      body(view(i), here);
    } else {
      each(view.select(0, i), piece, body, dim + 1, here);
    }
  }
}

}  // namespace

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                    std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {
        static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
        static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

namespace {
std::array<std::uint32_t, 4> words(const Random& random, std::uint64_t block) {
  return philox(
      {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
       static_cast<std::uint32_t>(random.stream), static_cast<std::uint32_t>(random.stream >> 32)},
      {static_cast<std::uint32_t>(random.seed), static_cast<std::uint32_t>(random.seed >> 32)});
}
double unit(std::uint32_t word) { return (word + 0.5) * 0x1p-32; }

/// The words of positions; those of neighbours are drawn together.
class Words {
 public:
  explicit Words(const Random& random) : random_(random) {}
  std::uint32_t operator()(std::uint64_t position) {
    if (position / 4 != block_) {
      block_ = position / 4;
      words_ = words(random_, block_);
    }
    return words_[position % 4];
  }

 private:
  Random random_;
  std::uint64_t block_ = UINT64_MAX;  // no position's
  std::array<std::uint32_t, 4> words_{};
};
}  // namespace

std::uint32_t Random::word(std::uint64_t position) const {
  return words(*this, position / 4)[position % 4];
}
double Random::uniform(std::uint64_t position) const { return unit(word(position)); }

// Box, Muller: A note on the generation of random normal deviates (1958).
double Random::normal(std::uint64_t position) const {
  const auto w = words(*this, position / 4);
  const std::size_t pair = position % 4 / 2 * 2;
  const double radius = std::sqrt(-2 * std::log(unit(w[pair])));
  const double angle = 2 * std::numbers::pi * unit(w[pair + 1]);
  return position % 2 == 0 ? radius * std::cos(angle) : radius * std::sin(angle);
}

Random Random::of(std::uint64_t part) const {
  const auto w = words({seed, ~stream}, part);
  return {seed, std::uint64_t{w[1]} << 32 | w[0]};
}

// Fowler, Noll and Vo's hash, 1a.
Random Random::of(std::string_view name) const {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return of(hash);
}

namespace {

/// Elements = draw(position), which happens on the host.
template <class T, class Draw>
void fill(View<T> view, const Piece& piece, const Draw& draw) {
  const auto fill_on_host = [&](View<T> to) {
    each(to, piece, [&](T& element, std::uint64_t position) {
      element = narrow<T>(static_cast<Wide<T>>(draw(position)));
    });
  };
  if (!accelerator()) return fill_on_host(view);
  Array<T> drawn;
  {
    const AcceleratorScope host(nullptr);
    drawn = Array<T>::uninitialized(view.shape());
    fill_on_host(drawn.view());
  }
  const Array<T> there = from_host<T>(drawn);
  assign<T>(there, view);
}

}  // namespace

template <Real T>
void fill_uniform(View<T> view, const Random& random, double low, double high, const Piece& piece) {
  Words words(random);
  fill(view, piece,
       [&](std::uint64_t position) { return low + (high - low) * unit(words(position)); });
}

template <Real T>
void fill_normal(View<T> view, const Random& random, double deviation, const Piece& piece) {
  fill(view, piece, [&](std::uint64_t position) { return deviation * random.normal(position); });
}

template <Real T>
void Dropout::apply(View<T> x) const {
  if (p == 0) return;
  if (Accelerator* const device = accelerator()) return device->drop(*this, x);
  if (emulates()) return;
  const auto limit = static_cast<std::uint32_t>(p * 0x1p32);
  const auto scale = static_cast<Wide<T>>(1 / (1 - p));
  Words words(random);
  each(x, piece, [&](T& element, std::uint64_t position) {
    element = words(position) < limit ? T{} : narrow<T>(widen(element) * scale);
  });
}

#define BATON_INSTANTIATE(T)                                                                   \
  template BATON_INSTANTIATION void fill_uniform(View<T>, const Random&, double, double,       \
                                                 const Piece&);                                \
  template BATON_INSTANTIATION void fill_normal(View<T>, const Random&, double, const Piece&); \
  template void Dropout::apply(View<T>) const;
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(double)
BATON_INSTANTIATE(bf16)
#undef BATON_INSTANTIATE

}  // namespace baton::transformer
