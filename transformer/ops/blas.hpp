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

#ifdef BATON_HAS_ONEDNN
/// oneDNN takes as many threads as OpenMP's parallel regions in the calling thread would have.
/// While this lives, these are as many as use_blas_threads() said.
class OneDnnThreads {
 public:
  OneDnnThreads();
  ~OneDnnThreads();
  OneDnnThreads(const OneDnnThreads&) = delete;
  OneDnnThreads& operator=(const OneDnnThreads&) = delete;
  int count() const;  ///< their number

 private:
  int before_;
};
#endif

}  // namespace baton::transformer::ops
