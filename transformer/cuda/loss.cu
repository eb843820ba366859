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

template <class T>
__global__ void __launch_bounds__(threads) cross_entropy_kernel(CrossEntropy<T> of, double* terms) {
  DeviceTeam<RowState> team;
  const std::int64_t all = std::int64_t{gridDim.x} * rows_each;
  for (std::int64_t first = std::int64_t{blockIdx.x} * rows_each; first < of.rows; first += all)
    cross_entropy_unit(team, of, first, terms);
}

template <class T>
void load_kernels_of() {
  load_all(&mse_kernel<T>, &cross_entropy_kernel<T>);
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
void cross_entropy(const CrossEntropy<T>& of, double* scratch, double* total, cudaStream_t stream) {
  if (of.rows > 0) {
    cross_entropy_kernel<<<blocks_for(of.rows, rows_each), threads, 0, stream>>>(of, scratch);
    launched("cross_entropy");
  }
  add_up(of.rows, scratch, total, stream);
}

void load_loss_kernels() {
  load_all(&total_kernel);
  load_kernels_of<float>();
  load_kernels_of<bf16>();
}

#define BATON_INSTANTIATE(T)                                        \
  template void mse(const Mse<T>&, double*, double*, cudaStream_t); \
  template void cross_entropy(const CrossEntropy<T>&, double*, double*, cudaStream_t);
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(bf16)
#undef BATON_INSTANTIATE

}  // namespace baton::transformer::cuda
