/// The division of avg.

#include "kernel_table.hpp"
#include "units.hpp"

namespace baton::cuda {
namespace {

template <class T>
__global__ void __launch_bounds__(threads)
    divide_kernel(const __grid_constant__ Batch<Strided<1>> batch, int ranks) {
  for (std::uint32_t unit = blockIdx.x; unit < batch.units; unit += gridDim.x)
    divide_unit<T>(batch, ranks, unit, threadIdx.x);
}

template <class T>
const void* divide() {
  return reinterpret_cast<const void*>(&divide_kernel<T>);
}

}  // namespace

const void* divide_kernel(Datatype type) {
  switch (type) {
    case Datatype::i8:
      return divide<std::int8_t>();
    case Datatype::u8:
      return divide<std::uint8_t>();
    case Datatype::i32:
      return divide<std::int32_t>();
    case Datatype::u32:
      return divide<std::uint32_t>();
    case Datatype::i64:
      return divide<std::int64_t>();
    case Datatype::u64:
      return divide<std::uint64_t>();
    case Datatype::f8e4m3:
      return divide<f8e4m3>();
    case Datatype::f8e5m2:
      return divide<f8e5m2>();
    case Datatype::f16:
      return divide<f16>();
    case Datatype::bf16:
      return divide<bf16>();
    case Datatype::f32:
      return divide<float>();
    case Datatype::f64:
      return divide<double>();
    case Datatype::user:
      break;
  }
  return nullptr;
}

}  // namespace baton::cuda
