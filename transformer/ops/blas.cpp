#include "blas.hpp"

#include <cblas.h>
#include <fmt/core.h>
#ifdef BATON_HAS_ONEDNN
#include <omp.h>
#include <oneapi/dnnl/dnnl.h>
#endif

#include <atomic>
#include <limits>
#include <span>

#include "../shape_guard.hpp"
#include "baton/error.hpp"
#include "ops.hpp"

namespace baton::transformer {
namespace ops {
namespace {

/// Of OpenBLAS; another CBLAS has as many as it has.
void set_threads([[maybe_unused]] int threads) {
#ifdef OPENBLAS_VERSION
  openblas_set_num_threads(threads);
#endif
}

/// OpenBLAS starts with as many threads as there are cores.
void start_with_one_thread() {
  static const bool once = (set_threads(1), true);
  static_cast<void>(once);
}

int extent(std::int64_t value) {
  if (value > std::numeric_limits<int>::max()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("matrix product: expected extents and strides up to {}, found {}",
                            std::numeric_limits<int>::max(), value));
  }
  return static_cast<int>(value);
}

/// A matrix as CBLAS takes it: transposed where its first dimension is the contiguous one.
template <class T>
struct Operand {
  CBLAS_TRANSPOSE transpose = CblasNoTrans;
  const T* data;
  int leading;

  explicit Operand(View<const T> m) : data(m.data()) {
    if (m.stride(1) != 1) {
      m = m.transposed(0, 1);
      transpose = CblasTrans;
    }
    if (m.stride(1) != 1 && m.extent(1) > 1) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("matrix product: expected a contiguous dimension of {}, found none",
                              m.shape().text()));
    }
    // Of a single row, the stride may be anything.
    leading = extent(std::max<std::int64_t>({m.stride(0), m.extent(1), 1}));
  }
};

#ifdef BATON_HAS_ONEDNN
void gemm(const Operand<float>& a, const Operand<float>& b, const Operand<float>& c, int m, int n,
          int k, float alpha, float beta, float* into) {
  const auto letter = [](CBLAS_TRANSPOSE t) { return t == CblasNoTrans ? 'N' : 'T'; };
  const OneDnnThreads threads;
  const dnnl_status_t status =
      dnnl_sgemm(letter(a.transpose), letter(b.transpose), m, n, k, alpha, a.data, a.leading,
                 b.data, b.leading, beta, into, c.leading);
  if (status == dnnl_success) return;
  throw Error(ErrorCode::unsupported,
              fmt::format("matrix product [{}, {}] · [{}, {}]: oneDNN's dnnl_sgemm gave status {}",
                          m, k, k, n, static_cast<int>(status)));
}
#else
void gemm(const Operand<float>& a, const Operand<float>& b, const Operand<float>& c, int m, int n,
          int k, float alpha, float beta, float* into) {
  cblas_sgemm(CblasRowMajor, a.transpose, b.transpose, m, n, k, alpha, a.data, a.leading, b.data,
              b.leading, beta, into, c.leading);
}
#endif
void gemm(const Operand<double>& a, const Operand<double>& b, const Operand<double>& c, int m,
          int n, int k, double alpha, double beta, double* into) {
  cblas_dgemm(CblasRowMajor, a.transpose, b.transpose, m, n, k, alpha, a.data, a.leading, b.data,
              b.leading, beta, into, c.leading);
}

#ifdef BATON_HAS_ONEDNN
std::atomic<int> onednn_threads = 1;
#endif

}  // namespace

#ifdef BATON_HAS_ONEDNN
OneDnnThreads::OneDnnThreads() : before_(omp_get_max_threads()) {
  omp_set_num_threads(onednn_threads);
}
OneDnnThreads::~OneDnnThreads() { omp_set_num_threads(before_); }
int OneDnnThreads::count() const { return omp_get_max_threads(); }
#endif

template <class T>
void multiply(std::type_identity_t<T> alpha, View<const std::type_identity_t<T>> a,
              View<const std::type_identity_t<T>> b, std::type_identity_t<T> beta, View<T> c) {
  expect_shape("matrix product: second factor", b.shape(), {a.extent(1), c.extent(1)});
  expect_shape("matrix product: result", c.shape(), {a.extent(0), b.extent(1)});
  if (c.size() == 0) return;
  start_with_one_thread();
  const Operand<T> left(a), right(b), result(c);
  if (result.transpose != CblasNoTrans) {
    throw Error(ErrorCode::invalid_argument,
                "matrix product: expected contiguous rows of the result, found strides");
  }
  if (a.extent(1) == 0) {  // of which oneDNN makes nothing at all
    for (std::int64_t row = 0; row < c.extent(0); ++row)
      for (T& element : std::span(&c(row, 0), static_cast<std::size_t>(c.extent(1))))
        element = beta == 0 ? 0 : beta * element;
    return;
  }
  gemm(left, right, result, extent(c.extent(0)), extent(c.extent(1)), extent(a.extent(1)), alpha,
       beta, c.data());
}

template void multiply(float, View<const float>, View<const float>, float, View<float>);
template void multiply(double, View<const double>, View<const double>, double, View<double>);

}  // namespace ops

void use_blas_threads(int threads) {
  if (threads < 1) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("use_blas_threads: expected at least 1 thread, found {}", threads));
  }
  ops::start_with_one_thread();
  ops::set_threads(threads);
#ifdef BATON_HAS_ONEDNN
  ops::onednn_threads = threads;
#endif
}

}  // namespace baton::transformer
