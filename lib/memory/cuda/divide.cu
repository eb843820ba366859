/// The division of avg.

#include "../host/with_element.hpp"
#include "kernel_table.hpp"
#include "units.hpp"

namespace baton::cuda {
namespace {

template <class T>
__global__ void __launch_bounds__(threads)
    divide_batch(const __grid_constant__ Batch<Strided<1>> batch, int ranks) {
  for (std::uint32_t unit = blockIdx.x; unit < batch.units; unit += gridDim.x)
    divide_unit<T>(batch, ranks, unit, threadIdx.x);
}

/// Not a lambda, of which nvcc warns.
struct KernelOf {
  template <class T>
  const void* operator()() const {
    return reinterpret_cast<const void*>(&divide_batch<T>);
  }
};

}  // namespace

const void* divide_kernel(Datatype type) { return host::with_element(type, KernelOf()); }

}  // namespace baton::cuda
