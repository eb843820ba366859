/// Losses.

#include "kernel.cuh"
#include "kernels.hpp"

namespace baton::transformer::cuda {
namespace {

__global__ void __launch_bounds__(threads)
    total_kernel(std::int64_t count, const double* terms, double* total) {
  __shared__ double shared[rows_each];
  DeviceTeam<TotalState> team;
  total_unit(team, count, terms, shared, total);
}
void add_up(std::int64_t count, const double* terms, double* total, cudaStream_t stream) {
  total_kernel<<<1, threads, 0, stream>>>(count, terms, total);
  launched("a loss");
}

template <class T>
__global__ void __launch_bounds__(threads)
    mse_kernel(Mse<T> of, std::int64_t blocks, double* terms) {
  DeviceTeam<TotalState> team;
  for (std::int64_t block = blockIdx.x; block < blocks; block += gridDim.x)
    mse_unit(team, of, block, terms);
}

/// Calls unit(team, first row) for all rows.
template <class Unit>
__device__ __forceinline__ void each_rows(std::int64_t rows, Unit unit) {
  DeviceTeam<RowState> team;
  const std::int64_t all = std::int64_t{gridDim.x} * rows_each;
  for (std::int64_t first = std::int64_t{blockIdx.x} * rows_each; first < rows; first += all)
    unit(team, first);
}
template <class T>
__global__ void __launch_bounds__(threads) row_maximum_kernel(Logits<T> of, float* most) {
  each_rows(of.rows,
            [&](auto& team, std::int64_t first) { row_maximum_unit(team, of, first, most); });
}
template <class T>
__global__ void __launch_bounds__(threads)
    exponential_sums_kernel(Logits<T> of, const float* most, float* sums) {
  each_rows(of.rows, [&](auto& team, std::int64_t first) {
    exponential_sums_unit(team, of, first, most, sums);
  });
}
template <class T>
__global__ void __launch_bounds__(threads)
    cross_entropy_kernel(Logits<T> of, const float* most, const float* sums, double elements,
                         double* terms, T* dlogits) {
  each_rows(of.rows, [&](auto& team, std::int64_t first) {
    cross_entropy_unit(team, of, first, most, sums, elements, terms, dlogits);
  });
}

template <class T>
void load_kernels_of() {
  load_all(&mse_kernel<T>, &row_maximum_kernel<T>, &exponential_sums_kernel<T>,
           &cross_entropy_kernel<T>);
}

std::int64_t mse_blocks(std::int64_t count) { return (count + mse_each - 1) / mse_each; }

}  // namespace

std::int64_t mse_terms(std::int64_t count) { return mse_blocks(count) * rows_each; }

template <class T>
void mse(const Mse<T>& of, double* scratch, double* total, cudaStream_t stream) {
  const std::int64_t blocks = mse_blocks(of.count);
  if (blocks > 0) {
    mse_kernel<<<blocks_for(blocks, 1), threads, 0, stream>>>(of, blocks, scratch);
    launched("mse");
  }
  add_up(blocks * rows_each, scratch, total, stream);
}

template <class T>
void row_maximum(const Logits<T>& of, float* most, cudaStream_t stream) {
  if (of.rows == 0) return;
  row_maximum_kernel<<<blocks_for(of.rows, rows_each), threads, 0, stream>>>(of, most);
  launched("row_maximum");
}
template <class T>
void exponential_sums(const Logits<T>& of, const float* most, float* sums, cudaStream_t stream) {
  if (of.rows == 0) return;
  exponential_sums_kernel<<<blocks_for(of.rows, rows_each), threads, 0, stream>>>(of, most, sums);
  launched("exponential_sums");
}
template <class T>
void cross_entropy(const Logits<T>& of, const float* most, const float* sums, double elements,
                   T* dlogits, double* scratch, double* total, cudaStream_t stream) {
  if (of.rows > 0) {
    cross_entropy_kernel<<<blocks_for(of.rows, rows_each), threads, 0, stream>>>(
        of, most, sums, elements, scratch, dlogits);
    launched("cross_entropy");
  }
  add_up(of.rows, scratch, total, stream);
}

void load_loss_kernels() {
  load_all(&total_kernel);
  load_kernels_of<float>();
  load_kernels_of<bf16>();
}

#define BATON_INSTANTIATE(T)                                                                     \
  template void mse(const Mse<T>&, double*, double*, cudaStream_t);                              \
  template void row_maximum(const Logits<T>&, float*, cudaStream_t);                             \
  template void exponential_sums(const Logits<T>&, const float*, float*, cudaStream_t);          \
  template void cross_entropy(const Logits<T>&, const float*, const float*, double, T*, double*, \
                              double*, cudaStream_t);
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(bf16)
#undef BATON_INSTANTIATE

}  // namespace baton::transformer::cuda
