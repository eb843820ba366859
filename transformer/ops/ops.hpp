#pragma once
/// The functions that layers are made of, each with its derivatives, on one rank. All views are
/// contiguous unless said otherwise; `[.., n]` are rows of n. Throw Error(invalid_argument) that
/// names both shapes where they do not fit. They run on the thread's accelerator (accelerator.hpp),
/// or on the host; there, of bf16, in f32, and results are rounded.

#include <cstdint>
#include <functional>

#include "../random.hpp"
#include "../tensor.hpp"
#include "baton/export.hpp"

namespace BATON_API baton {
namespace transformer {

/// Threads that each matrix product of linear layers uses, in the whole process; attention has one.
/// Default 1: ranks are the parallelism.
void use_blas_threads(int threads);

/// Called between pieces of a long computation on the host; may be empty.
using Meanwhile = std::function<void()>;

// --- linear: y = x · weightᵀ + bias ------------------------------------------------------------

/// y [.., out] = x [.., in] · weightᵀ (weight [out, in]) + bias [out], which may be an empty view.
template <Real T>
void linear(View<const std::type_identity_t<T>> x, View<const std::type_identity_t<T>> weight,
            View<const std::type_identity_t<T>> bias, View<T> y);
/// dx [.., in] = dy [.., out] · weight; with `add`, it is added to what is there.
template <Real T>
void linear_backward_input(View<const std::type_identity_t<T>> dy,
                           View<const std::type_identity_t<T>> weight, View<T> dx,
                           bool add = false);
/// dweight [out, in] += dyᵀ · x, and dbias [out], which may be empty, += the rows of dy. In panels,
/// after each of which `meanwhile` is called, where there is one.
template <Real T>
void linear_backward_weight(View<const std::type_identity_t<T>> x,
                            View<const std::type_identity_t<T>> dy, View<T> dweight, View<T> dbias,
                            const Meanwhile& meanwhile = {});

/// y [.., n] += bias [n], in every row.
template <Real T>
void add_to_rows(View<const std::type_identity_t<T>> bias, View<T> y);
/// sum [n] += all rows of x [.., n].
template <Real T>
void add_rows(View<const std::type_identity_t<T>> x, View<T> sum);

// --- layer norm: Ba, Kiros, Hinton: Layer normalization (2016) -----------------------------------

/// y [.., n] = (x - mean) / sqrt(variance + epsilon) · weight [n] + bias [n], mean and variance of
/// each row; stats [rows, 2] = mean and 1 / sqrt(variance + epsilon).
template <Real T>
void layer_norm(View<const std::type_identity_t<T>> x, View<const std::type_identity_t<T>> weight,
                View<const std::type_identity_t<T>> bias, double epsilon, View<T> y,
                View<Wide<T>> stats);
/// dx [.., n]; dweight [n] and dbias [n] are added to.
template <Real T>
void layer_norm_backward(View<const std::type_identity_t<T>> dy,
                         View<const std::type_identity_t<T>> x,
                         View<const std::type_identity_t<T>> weight, View<const Wide<T>> stats,
                         View<T> dx, View<T> dweight, View<T> dbias);

// --- activations ---------------------------------------------------------------------------------

enum class Activation : std::uint8_t { relu, gelu };
std::string_view name(Activation activation);

/// y = f(x). GELU is the exact one, x · Φ(x): Hendrycks, Gimpel (2016).
template <Real T>
void activate(Activation f, View<const std::type_identity_t<T>> x, View<T> y);
/// dx = dy · f'(x). dx may be dy.
template <Real T>
void activate_backward(Activation f, View<const std::type_identity_t<T>> dy,
                       View<const std::type_identity_t<T>> x, View<T> dx);

/// Whether activate_backward() gives the same of y = f(x) in place of x: the derivative of ReLU
/// needs x > 0 only.
constexpr bool derivable_from_result(Activation f) { return f == Activation::relu; }

/// pre [.., out] = x · weightᵀ + bias, as linear() has them, and y [.., out] = f(pre). pre may be
/// y, which then holds f's results only.
template <Real T>
void linear_activate(Activation f, View<const std::type_identity_t<T>> x,
                     View<const std::type_identity_t<T>> weight,
                     View<const std::type_identity_t<T>> bias, View<T> pre, View<T> y);

/// y += x, of any strides.
template <Real T>
void add(View<const std::type_identity_t<T>> x, View<T> y);

// --- attention -----------------------------------------------------------------------------------

struct AttentionOptions {
  bool causal = false;  ///< a position sees itself and those before
  /// Of probabilities, by their place [sample, head, query, key] in the whole.
  Dropout dropout;
  Meanwhile meanwhile;
};

/// out [b, s, h, d] = softmax(q · kᵀ / sqrt(d)) · v per sample and head, with q [b, s, h, d],
/// k, v [b, t, g, d], where g divides h: query head i uses head i · g / h of k and v. The last
/// dimension is contiguous; the others may have any strides. log_sums [b, h, s] is what backward
/// needs: the logarithm of each row's sum of exponentials. Besides, memory for a few tiles of
/// queries times keys, and for one head's k and v twice. Dao et al., FlashAttention (2022), for the
/// backward from log_sums.
template <Real T>
void attention(View<const std::type_identity_t<T>> q, View<const std::type_identity_t<T>> k,
               View<const std::type_identity_t<T>> v, const AttentionOptions& options, View<T> out,
               View<Wide<T>> log_sums);
/// dq, dk, dv, from what forward was given and gave; probabilities are computed again.
template <Real T>
void attention_backward(View<const std::type_identity_t<T>> dout,
                        View<const std::type_identity_t<T>> q,
                        View<const std::type_identity_t<T>> k,
                        View<const std::type_identity_t<T>> v,
                        View<const std::type_identity_t<T>> out, View<const Wide<T>> log_sums,
                        const AttentionOptions& options, View<T> dq, View<T> dk, View<T> dv);

// --- embedding -----------------------------------------------------------------------------------

/// y [n, d] = rows `ids` [n] of table [rows, d]; ids count from `first`, and those outside give
/// zeros.
template <Real T>
void embedding(View<const std::int32_t> ids, View<const std::type_identity_t<T>> table,
               std::int64_t first, View<T> y);
/// dtable [rows, d] is added to.
template <Real T>
void embedding_backward(View<const std::int32_t> ids, View<const std::type_identity_t<T>> dy,
                        std::int64_t first, View<T> dtable);

// --- losses: of this rank's share of `elements` in all; shares add up to the mean ----------------

/// Sum of (y - target)² over this rank's elements / elements. dy may be empty.
template <Real T>
double mse(View<const T> y, View<const std::type_identity_t<T>> target, double elements,
           View<std::type_identity_t<T>> dy);
/// Sum of -log softmax(logits [n, classes])[target [n]] / elements. dlogits may be empty.
template <Real T>
double cross_entropy(View<const T> logits, View<const std::int32_t> targets, double elements,
                     View<std::type_identity_t<T>> dlogits);

}  // namespace transformer
}  // namespace baton
