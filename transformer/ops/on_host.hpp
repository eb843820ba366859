#pragma once
/// The functions of ops.hpp on the host, of f32 and f64, given shapes that fit.

#include "ops.hpp"

namespace baton::transformer::ops {

template <class T>
void linear(View<const std::type_identity_t<T>> x, View<const std::type_identity_t<T>> weight,
            View<const std::type_identity_t<T>> bias, View<T> y);
template <class T>
void linear_backward_input(View<const std::type_identity_t<T>> dy,
                           View<const std::type_identity_t<T>> weight, View<T> dx, bool add);
template <class T>
void linear_backward_weight(View<const std::type_identity_t<T>> x,
                            View<const std::type_identity_t<T>> dy, View<T> dweight, View<T> dbias,
                            const Meanwhile& meanwhile);
template <class T>
void add_to_rows(View<const std::type_identity_t<T>> bias, View<T> y);
template <class T>
void add_rows(View<const std::type_identity_t<T>> x, View<T> sum);
template <class T>
void layer_norm(View<const std::type_identity_t<T>> x, View<const std::type_identity_t<T>> weight,
                View<const std::type_identity_t<T>> bias, double epsilon, View<T> y, View<T> stats);
template <class T>
void layer_norm_backward(View<const std::type_identity_t<T>> dy,
                         View<const std::type_identity_t<T>> x,
                         View<const std::type_identity_t<T>> weight,
                         View<const std::type_identity_t<T>> stats, View<T> dx, View<T> dweight,
                         View<T> dbias);
template <class T>
void activate(Activation f, View<const std::type_identity_t<T>> x, View<T> y);
template <class T>
void activate_backward(Activation f, View<const std::type_identity_t<T>> dy,
                       View<const std::type_identity_t<T>> x, View<T> dx);
template <class T>
void linear_activate(Activation f, View<const std::type_identity_t<T>> x,
                     View<const std::type_identity_t<T>> weight,
                     View<const std::type_identity_t<T>> bias, View<T> pre, View<T> y);
template <class T>
void add(View<const std::type_identity_t<T>> x, View<T> y);
template <class T>
void attention(View<const std::type_identity_t<T>> q, View<const std::type_identity_t<T>> k,
               View<const std::type_identity_t<T>> v, const AttentionOptions& options, View<T> out,
               View<T> log_sums);
template <class T>
void attention_backward(View<const std::type_identity_t<T>> dout,
                        View<const std::type_identity_t<T>> q,
                        View<const std::type_identity_t<T>> k,
                        View<const std::type_identity_t<T>> v,
                        View<const std::type_identity_t<T>> out,
                        View<const std::type_identity_t<T>> log_sums,
                        const AttentionOptions& options, View<T> dq, View<T> dk, View<T> dv);
template <class T>
void embedding(View<const std::int32_t> ids, View<const std::type_identity_t<T>> table,
               std::int64_t first, View<T> y);
template <class T>
void embedding_backward(View<const std::int32_t> ids, View<const std::type_identity_t<T>> dy,
                        std::int64_t first, View<T> dtable);
template <class T>
double mse(View<const T> y, View<const std::type_identity_t<T>> target, double elements,
           View<std::type_identity_t<T>> dy);
template <class T>
double cross_entropy(View<const T> logits, View<const std::int32_t> targets, double elements,
                     View<std::type_identity_t<T>> dlogits);

}  // namespace baton::transformer::ops
