#pragma once
/// The functions of layers on one rank, each with its derivatives. All views are contiguous unless
/// said otherwise; `[.., n]` are rows of n. If shapes do not fit, functions throw
/// Error(invalid_argument) that names both. They run on the thread's accelerator (accelerator.hpp),
/// or on the host. The host computes bf16 in f32 and rounds the results.

#include <cstdint>
#include <functional>

#include "../random.hpp"
#include "../tensor.hpp"

#pragma GCC visibility push(default)
namespace baton {
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
/// dx [.., in] = dy [.., out] · weight, or with `add`, dx += dy · weight.
template <Real T>
void linear_backward_input(View<const std::type_identity_t<T>> dy,
                           View<const std::type_identity_t<T>> weight, View<T> dx,
                           bool add = false);
/// dweight [out, in] += dyᵀ · x, and dbias [out] += the rows of dy; dbias may be empty. Calls
/// `meanwhile`, if there is one, after each panel.
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
/// dx [.., n] = the gradient by x; adds the gradients by weight and bias to dweight [n] and dbias
/// [n].
template <Real T>
void layer_norm_backward(View<const std::type_identity_t<T>> dy,
                         View<const std::type_identity_t<T>> x,
                         View<const std::type_identity_t<T>> weight, View<const Wide<T>> stats,
                         View<T> dx, View<T> dweight, View<T> dbias);

// --- activations ---------------------------------------------------------------------------------

/// An activation function.
enum class Activation : std::uint8_t { relu, gelu, gelu_tanh };
/// All of them.
inline constexpr Activation activations[] = {Activation::relu, Activation::gelu,
                                             Activation::gelu_tanh};
/// "relu", "gelu" or "gelu_tanh".
std::string_view name(Activation activation);

/// y = f(x). gelu is the exact one, x · Φ(x); gelu_tanh, which GPT-2 has, its approximation
/// x / 2 · (1 + tanh(sqrt(2 / π) · (x + 0.044715 x³))): Hendrycks, Gimpel (2016).
template <Real T>
void activate(Activation f, View<const std::type_identity_t<T>> x, View<T> y);
/// dx = dy · f'(x). dx may be dy.
template <Real T>
void activate_backward(Activation f, View<const std::type_identity_t<T>> dy,
                       View<const std::type_identity_t<T>> x, View<T> dx);

/// Whether activate_backward() gives the same result for y = f(x) in place of x, as for ReLU, whose
/// derivative depends on the sign of x only.
constexpr bool derivable_from_result(Activation f) { return f == Activation::relu; }

/// pre [.., out] = x · weightᵀ + bias, as linear() computes it, and y [.., out] = f(pre). pre may
/// be y, which then holds f(pre) only.
template <Real T>
void linear_activate(Activation f, View<const std::type_identity_t<T>> x,
                     View<const std::type_identity_t<T>> weight,
                     View<const std::type_identity_t<T>> bias, View<T> pre, View<T> y);

/// y += x, of any strides.
template <Real T>
void add(View<const std::type_identity_t<T>> x, View<T> y);

// --- attention -----------------------------------------------------------------------------------

/// Settings of attention.
struct AttentionOptions {
  bool causal = false;  ///< a position sees itself and those before
  /// For probabilities, by their place [sample, head, query, key] in the whole.
  Dropout dropout;
  Meanwhile meanwhile;
};

/// out [b, s, h, d] = softmax(q · kᵀ / sqrt(d)) · v per sample and head, with q [b, s, h, d],
/// k, v [b, t, g, d], where g divides h: query head i uses head i · g / h of k and v. The last
/// dimension is contiguous; the others may have any strides. log_sums [b, h, s] gets the
/// logarithm of each row's sum of exponentials, for backward. Uses memory for a few tiles of
/// queries times keys, and for k and v of one head twice. Backward from log_sums: Dao et al.,
/// FlashAttention (2022).
template <Real T>
void attention(View<const std::type_identity_t<T>> q, View<const std::type_identity_t<T>> k,
               View<const std::type_identity_t<T>> v, const AttentionOptions& options, View<T> out,
               View<Wide<T>> log_sums);
/// dq, dk, dv from the arguments and results of attention(); computes probabilities again.
template <Real T>
void attention_backward(View<const std::type_identity_t<T>> dout,
                        View<const std::type_identity_t<T>> q,
                        View<const std::type_identity_t<T>> k,
                        View<const std::type_identity_t<T>> v,
                        View<const std::type_identity_t<T>> out, View<const Wide<T>> log_sums,
                        const AttentionOptions& options, View<T> dq, View<T> dk, View<T> dv);

// --- embedding -----------------------------------------------------------------------------------

/// y [n, d] = rows `ids` [n] of table [rows, d]. ids count from `first`; ids outside of the table
/// give zeros.
template <Real T>
void embedding(View<const std::int32_t> ids, View<const std::type_identity_t<T>> table,
               std::int64_t first, View<T> y);
/// Adds dy to the rows `ids` of dtable [rows, d].
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
#pragma GCC visibility pop
