#pragma once
/// The kernels, enqueued on a stream of the current device: T is float or bf16. Arguments are those
/// of ../ops/ops.hpp, contiguous unless strides are given, in memory of the device; nothing is
/// checked here. All throw Error(device) where CUDA refuses.

#include <cuda_runtime_api.h>

#include "../ops/ops.hpp"
#include "embedding_units.hpp"
#include "loss_units.hpp"
#include "map_units.hpp"
#include "row_units.hpp"
#include "tiles.hpp"

namespace baton::transformer::cuda {

/// Loads all of them into the current device, as baton::cuda::load_kernels() does, and why.
void load_kernels();

// --- elements ----------------------------------------------------------------------------------

template <class T>
void activate(Activation f, std::int64_t n, const T* x, T* y, cudaStream_t stream);
template <class T>
void activate_backward(Activation f, std::int64_t n, const T* dy, const T* x, T* dx,
                       cudaStream_t stream);
/// y [n] += x.
template <class T>
void add(std::int64_t n, const T* x, T* y, cudaStream_t stream);
/// The same of views; strides are y's, then x's.
template <class T>
void add(const Strides<2>& strides, const T* x, T* y, cudaStream_t stream);
/// y [rows, n] += bias [n].
template <class T>
void add_to_rows(std::int64_t rows, std::int64_t n, const T* bias, T* y, cudaStream_t stream);
/// to [n] = from, converted.
template <class To, class From>
void convert(std::int64_t n, const From* from, To* to, cudaStream_t stream);
/// The same of views; strides are to's, then from's. Also of i32.
template <class To, class From>
void assign(const Strides<2>& strides, const From* from, To* to, cudaStream_t stream);
/// Strides are x's, then those of places in the whole.
template <class T>
void dropout(const Strides<2>& strides, const Mask& mask, std::uint64_t first, T* x,
             cudaStream_t stream);

/// `master` [n], the values in f32, may be null, and so may `velocity` [n].
template <class T>
void sgd(const SgdFactors& step, std::int64_t n, const T* grad, T* value, float* master,
         float* velocity, cudaStream_t stream);
template <class T>
void adamw(const AdamStep& step, std::int64_t n, const T* grad, T* value, float* master,
           float* mean, float* square, cudaStream_t stream);

// --- rows --------------------------------------------------------------------------------------

template <class T>
void layer_norm(const LayerNorm<T>& of, cudaStream_t stream);
/// Adds to dweight and dbias. scratch: 2 · chunks_of(rows, n).count · n floats.
template <class T>
void layer_norm_backward(const LayerNormBackward<T>& of, T* dweight, T* dbias, float* scratch,
                         cudaStream_t stream);
/// sum [n] += rows of x [rows, n]. scratch: chunks_of(rows, n).count · n floats.
template <class T>
void add_rows(std::int64_t rows, std::int64_t n, const T* x, T* sum, float* scratch,
              cudaStream_t stream);
template <class T>
void embedding(const Table<T>& of, const T* table, T* y, cudaStream_t stream);
/// Adds to dtable. scratch: chains_size(of.count, of.rows) integers.
template <class T>
void embedding_backward(const Table<T>& of, const T* dy, T* dtable, std::int32_t* scratch,
                        cudaStream_t stream);

// --- losses: of what is written to `total`, one double -------------------------------------------

/// Of how many terms the scratch of a loss must have room, in doubles.
std::int64_t mse_terms(std::int64_t count);
/// The sum of (y - target)²; scratch: mse_terms(of.count) doubles.
template <class T>
void mse(const Mse<T>& of, double* scratch, double* total, cudaStream_t stream);
/// most [rows] and sums [2, rows] are as Accelerator's.
template <class T>
void row_maximum(const Logits<T>& of, float* most, cudaStream_t stream);
template <class T>
void exponential_sums(const Logits<T>& of, const float* most, float* sums, cudaStream_t stream);
/// The sum of rows' terms; dlogits may be null. scratch: of.rows doubles.
template <class T>
void cross_entropy(const Logits<T>& of, const float* most, const float* sums, double elements,
                   T* dlogits, double* scratch, double* total, cudaStream_t stream);

// --- attention -----------------------------------------------------------------------------------

/// Calls call.template operator()<Kind, width>() with the kernels that fit.
template <class T, class Call>
void with_sizes(const Attention<T>& of, Call call) {
  const auto with = [&]<class Kind>() {
    of.size <= narrow_head ? call.template operator()<Kind, narrow_head>()
                           : call.template operator()<Kind, largest_head>();
  };
  if constexpr (sizeof(T) == 2) {
    with.template operator()<Bf16>();
  } else if (of.tf32) {
    with.template operator()<Tf32>();
  } else {
    with.template operator()<F32>();
  }
}
/// The same with all.
template <class Call>
void with_all_sizes(Call call) {
  const auto with = [&]<class Kind>() {
    call.template operator()<Kind, narrow_head>();
    call.template operator()<Kind, largest_head>();
  };
  with.template operator()<Bf16>();
  with.template operator()<Tf32>();
  with.template operator()<F32>();
}

template <class T>
void attention(const Attention<T>& of, cudaStream_t stream);
template <class T>
void attention_backward(const Attention<T>& of, cudaStream_t stream);
/// Whether the current device multiplies by warpgroups: then both are these, of bf16.
bool has_wgmma();
void attention_by_warpgroups(const Attention<bf16>& of, cudaStream_t stream);
void attention_backward_by_warpgroups(const Attention<bf16>& of, cudaStream_t stream);

// --- of load_kernels(), each of its file's ------------------------------------------------------

void load_element_kernels();
void load_row_kernels();
void load_loss_kernels();
void load_attention_kernels();
void load_attention_backward_kernels();
void load_attention_warpgroup_kernels();

}  // namespace baton::transformer::cuda
