#include "layout.hpp"

#include <cmath>
#include <initializer_list>

namespace baton::transformer::cuda {
namespace {

Mask mask_of(const Dropout& dropout) {
  const auto low = [](std::uint64_t value) { return static_cast<std::uint32_t>(value); };
  const Random& random = dropout.random;
  return {
      {{low(random.seed), low(random.seed >> 32)}, {low(random.stream), low(random.stream >> 32)}},
      static_cast<std::uint32_t>(dropout.p * 0x1p32),
      static_cast<float>(1 / (1 - dropout.p))};
}

template <class T>
Heads<const T> heads(const ConstOperand& x) {
  return {static_cast<const T*>(x.data), x.strides[0], x.strides[1], x.strides[2]};
}
template <class T>
Heads<T> heads(const Operand& x) {
  return {static_cast<T*>(x.data), x.strides[0], x.strides[1], x.strides[2]};
}

/// Whether all rows are aligned to chunks, and consist of them.
template <class T>
bool whole_chunks(std::initializer_list<ConstOperand> operands) {
  constexpr int elements = chunk_elements<T>;
  for (const ConstOperand& x : operands) {
    if (x.shape[3] % elements != 0 || reinterpret_cast<std::uintptr_t>(x.data) % sizeof(Chunk) != 0)
      return false;
    for (std::size_t d = 0; d < 3; ++d)
      if (x.strides[d] % elements != 0 && x.shape[static_cast<int>(d)] > 1) return false;
  }
  return true;
}

template <class T>
Attention<T> shared_part(const ConstOperand& q, const ConstOperand& k, const ConstOperand& v,
                         const AttentionOptions& options) {
  Attention<T> of;
  of.samples = q.shape[0], of.queries = q.shape[1], of.heads = q.shape[2];
  of.keys = k.shape[1], of.key_heads = k.shape[2];
  of.size = static_cast<int>(q.shape[3]);
  of.scale = 1 / std::sqrt(static_cast<float>(of.size));
  of.causal = options.causal;
  of.drops = options.dropout.p > 0;
  if (of.drops) {
    of.mask = mask_of(options.dropout);
    for (std::size_t d = 0; d < 4; ++d) {
      of.first[d] = static_cast<std::uint64_t>(options.dropout.piece.first[d]);
      of.whole[d] = static_cast<std::uint64_t>(options.dropout.piece.whole[static_cast<int>(d)]);
    }
  }
  of.q = heads<T>(q), of.k = heads<T>(k), of.v = heads<T>(v);
  return of;
}

}  // namespace

Strides<2> strides_of(const Shape& shape, const std::array<std::int64_t, Shape::max_rank>& a,
                      const std::array<std::int64_t, Shape::max_rank>& b) {
  Strides<2> strides;
  for (int d = 0; d < shape.rank(); ++d) {
    const std::int64_t extent = shape[d];
    strides.count *= extent;
    if (extent == 1) continue;
    const std::int64_t steps[] = {a[static_cast<std::size_t>(d)], b[static_cast<std::size_t>(d)]};
    const int last = strides.rank - 1;
    const bool joins = last >= 0 && strides.stride[0][last] == extent * steps[0] &&
                       strides.stride[1][last] == extent * steps[1];
    const int into = joins ? last : strides.rank++;
    strides.extent[into] = joins ? strides.extent[into] * extent : extent;
    for (int k = 0; k < 2; ++k) strides.stride[k][into] = steps[k];
  }
  return strides;
}

Dropped dropped(const Dropout& dropout, const Operand& x) {
  Dropped result;
  std::array<std::int64_t, Shape::max_rank> places{};
  const Shape& whole = dropout.piece.whole;
  std::int64_t below = 1;
  for (int d = whole.rank(); d-- > 0; below *= whole[d]) {
    const auto at = static_cast<std::size_t>(d);
    places[at] = below;
    result.first += static_cast<std::uint64_t>(dropout.piece.first[at] * below);
  }
  result.strides = strides_of(x.shape, x.strides, places);
  result.mask = mask_of(dropout);
  return result;
}

SgdFactors sgd_factors(const SgdStep& step) {
  return {static_cast<float>(step.rate), static_cast<float>(step.momentum),
          static_cast<float>(step.decay)};
}

AdamStep adam_step(const AdamWStep& step) {
  const auto narrow = [](double value) { return static_cast<float>(value); };
  return {narrow(step.rate),  narrow(step.scale),     narrow(step.beta1),   narrow(1 - step.beta1),
          narrow(step.beta2), narrow(1 - step.beta2), narrow(step.epsilon), narrow(step.kept)};
}

template <class T>
Attention<T> attention_of(const ConstOperand& q, const ConstOperand& k, const ConstOperand& v,
                          const AttentionOptions& options, const Operand& out,
                          const Operand& log_sums) {
  auto of = shared_part<T>(q, k, v, options);
  of.whole_chunks = whole_chunks<T>({q, k, v, out});
  of.out = heads<T>(out), of.log_sums = static_cast<float*>(log_sums.data);
  return of;
}

template <class T>
Attention<T> attention_backward_of(const ConstOperand& dout, const ConstOperand& q,
                                   const ConstOperand& k, const ConstOperand& v,
                                   const ConstOperand& out, const ConstOperand& log_sums,
                                   const AttentionOptions& options, float* dots, const Operand& dq,
                                   const Operand& dk, const Operand& dv) {
  auto of = shared_part<T>(q, k, v, options);
  of.whole_chunks = whole_chunks<T>({q, k, v, out, dout, dq, dk, dv});
  of.result = heads<T>(out), of.dout = heads<T>(dout), of.dots = dots;
  of.result_log_sums = static_cast<const float*>(log_sums.data);
  of.dq = heads<T>(dq), of.dk = heads<T>(dk), of.dv = heads<T>(dv);
  return of;
}

// A row-major matrix, read column by column, is its transpose: so c = x · y is cᵀ = yᵀ · xᵀ.

Product linear_product(std::int64_t rows, std::int64_t in, std::int64_t out) {
  return {out, rows, in, true, false, in, in, out};
}
Product input_product(std::int64_t rows, std::int64_t in, std::int64_t out) {
  return {in, rows, out, false, false, in, out, in};
}
Product weight_product(std::int64_t rows, std::int64_t in, std::int64_t out) {
  return {in, out, rows, false, true, in, out, in};
}

#define BATON_INSTANTIATE(T)                                                                       \
  template Attention<T> attention_of(const ConstOperand&, const ConstOperand&,                     \
                                     const ConstOperand&, const AttentionOptions&, const Operand&, \
                                     const Operand&);                                              \
  template Attention<T> attention_backward_of(                                                     \
      const ConstOperand&, const ConstOperand&, const ConstOperand&, const ConstOperand&,          \
      const ConstOperand&, const ConstOperand&, const AttentionOptions&, float*, const Operand&,   \
      const Operand&, const Operand&);
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(bf16)
#undef BATON_INSTANTIATE

}  // namespace baton::transformer::cuda
