#pragma once
/// Matrix products of views: of f32 through oneDNN where there is one, else through CBLAS.

#include <type_traits>

#include "../tensor.hpp"

namespace baton::transformer::ops {

/// c [m, n] = alpha · a [m, k] · b [k, n] + beta · c. Of a and b, one dimension is contiguous, of c
/// the last; the other may have any stride that keeps rows apart.
template <class T>
void multiply(std::type_identity_t<T> alpha, View<const std::type_identity_t<T>> a,
              View<const std::type_identity_t<T>> b, std::type_identity_t<T> beta, View<T> c);

}  // namespace baton::transformer::ops
