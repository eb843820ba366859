#pragma once
/// Layers on CUDA devices, in the library baton-transformer-cuda. The library loads without a
/// driver.

#include <cstddef>
#include <memory>

#include "../accelerator.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// Settings of cuda_accelerator().
struct CudaAcceleratorOptions {
  int ordinal = 0;  ///< the device's number
  /// Factors of products of f32 are rounded to tf32, 10 bits of mantissa, for tensor cores.
  bool tf32 = false;
  /// Bytes of the device's memory that are allocated at once, since a later allocation may wait for
  /// streams that collectives hold. More is allocated when it is needed.
  std::size_t reserve = std::size_t{256} << 20;
};

/// An accelerator on a CUDA device, with a stream and memory of its own, for one rank: ranks that
/// share a device have one each. Its device() is cuda_device(ordinal). Attention takes heads of up
/// to 128 elements. cuBLASLt applies ReLU after a linear layer if the layer's result is not needed
/// (linear_activate()); NaN may then become 0.
///
/// All kernels of this library are loaded when the accelerator is made. cuBLASLt loads its own when
/// a product first needs them; CUDA may then wait for all streams of the device. If collectives
/// hold streams, set CUDA_MODULE_LOADING=EAGER in the environment before the first call of CUDA.
///
/// Throws Error(unsupported) if there is no such device, or cuda_device() does not support it.
/// Its functions throw Error(unsupported) for operands that are not f32 or bf16.
std::unique_ptr<Accelerator> cuda_accelerator(const CudaAcceleratorOptions& options = {});

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
