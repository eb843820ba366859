#include <fmt/core.h>

#include "../accelerator.hpp"
#include "../emulated.hpp"
#include "../instantiation.hpp"
#include "../shape_guard.hpp"
#include "baton/error.hpp"
#include "on_host.hpp"
#include "ops.hpp"
#include "widened.hpp"

namespace baton::transformer {
namespace {

template <class... T>
void expect_contiguous_rows(std::string_view what, const View<T>&... views) {
  const auto expect = [&](const auto& view) {
    if (view.extent(3) <= 1 || view.stride(3) == 1) return;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: expected a contiguous last dimension of {}, found stride {}", what,
                            view.shape().text(), view.stride(3)));
  };
  (expect(views), ...);
}

/// The arguments that forward and backward share.
template <Real T>
void expect_attention(std::string_view what, View<const T> q, View<const T> k, View<const T> v,
                      View<const T> out, View<const Wide<T>> log_sums,
                      const AttentionOptions& options) {
  const auto name = [&](const char* view) { return fmt::format("{}: {}", what, view); };
  expect_shape(name("q"), q.shape(), {any, any, any, any});
  expect_shape(name("k"), k.shape(), {q.extent(0), any, any, q.extent(3)});
  expect_shape(name("v"), v.shape(), k.shape());
  expect_shape(name("out"), out.shape(), q.shape());
  expect_shape(name("log_sums"), log_sums.shape(), {q.extent(0), q.extent(2), q.extent(1)});
  expect_contiguous_rows(what, q, k, v, out);
  const std::int64_t queries = q.extent(1), heads = q.extent(2);
  const std::int64_t keys = k.extent(1), key_heads = k.extent(2);
  const auto expect = [&](bool holds, const char* expected) {
    if (holds) return;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: expected {}, found q {} and k {}", what, expected,
                            q.shape().text(), k.shape().text()));
  };
  expect(keys > 0, "at least one key");
  expect(key_heads > 0 && heads % key_heads == 0, "heads of q that are a multiple of k's");
  expect(!options.causal || queries == keys, "as many keys as queries, of causal attention");
  if (options.dropout.p > 0)
    expect_shape(name("whole of dropout"), options.dropout.piece.whole, {any, any, any, any});
}

/// For an accelerator, whose work goes on after the call: the caller's function may be gone then.
AttentionOptions without_meanwhile(const AttentionOptions& options) {
  return {options.causal, options.dropout, {}};
}

/// Operations of the two products of attention; a half of each is masked in causal attention.
template <class Queries, class Keys>
double operations(const Queries& q, const Keys& k, bool causal) {
  const double products = 4 * static_cast<double>(q.size()) * static_cast<double>(k.extent(1));
  return causal ? products / 2 : products;
}

}  // namespace

template <Real T>
void attention(View<const std::type_identity_t<T>> q, View<const std::type_identity_t<T>> k,
               View<const std::type_identity_t<T>> v, const AttentionOptions& options, View<T> out,
               View<Wide<T>> log_sums) {
  expect_attention<T>("attention", q, k, v, out, log_sums, options);
  if (Accelerator* const device = accelerator())
    return device->attention(q, k, v, without_meanwhile(options), out, log_sums);
  if (emulates()) return emulate(operations(q, k, options.causal), options.meanwhile);
  ops::widened([&](auto q, auto k, auto v, auto out,
                   auto log_sums) { ops::attention<Wide<T>>(q, k, v, options, out, log_sums); },
               q, k, v, out, log_sums);
}

template <Real T>
void attention_backward(View<const std::type_identity_t<T>> dout,
                        View<const std::type_identity_t<T>> q,
                        View<const std::type_identity_t<T>> k,
                        View<const std::type_identity_t<T>> v,
                        View<const std::type_identity_t<T>> out, View<const Wide<T>> log_sums,
                        const AttentionOptions& options, View<T> dq, View<T> dk, View<T> dv) {
  constexpr std::string_view what = "attention_backward";
  expect_attention<T>(what, q, k, v, out, log_sums, options);
  expect_shape("attention_backward: dout", dout.shape(), q.shape());
  expect_shape("attention_backward: dq", dq.shape(), q.shape());
  expect_shape("attention_backward: dk", dk.shape(), k.shape());
  expect_shape("attention_backward: dv", dv.shape(), v.shape());
  expect_contiguous_rows(what, dout, dq, dk, dv);
  if (Accelerator* const device = accelerator())
    return device->attention_backward(dout, q, k, v, out, log_sums, without_meanwhile(options), dq,
                                      dk, dv);
  if (emulates()) return emulate(2 * operations(q, k, options.causal), options.meanwhile);
  ops::widened(
      [&](auto dout, auto q, auto k, auto v, auto out, auto log_sums, auto dq, auto dk, auto dv) {
        ops::attention_backward<Wide<T>>(dout, q, k, v, out, log_sums, options, dq, dk, dv);
      },
      dout, q, k, v, out, log_sums, dq, dk, dv);
}

#define BATON_INSTANTIATE(T)                                                                    \
  template BATON_INSTANTIATION void attention(View<const T>, View<const T>, View<const T>,      \
                                              const AttentionOptions&, View<T>, View<Wide<T>>); \
  template BATON_INSTANTIATION void attention_backward(                                         \
      View<const T>, View<const T>, View<const T>, View<const T>, View<const T>,                \
      View<const Wide<T>>, const AttentionOptions&, View<T>, View<T>, View<T>);
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(double)
BATON_INSTANTIATE(bf16)
#undef BATON_INSTANTIATE

}  // namespace baton::transformer
