#pragma once
/// Layers on CUDA devices. In the library baton-transformer-cuda, which loads where there is no
/// driver, too.

#include <cstddef>
#include <memory>

#include "../accelerator.hpp"
#include "baton/export.hpp"

namespace BATON_API baton {
namespace transformer {

struct CudaAcceleratorOptions {
  int ordinal = 0;  ///< of the device
  /// Factors of products of f32 are rounded to tf32, 10 bits of mantissa, for tensor cores.
  bool tf32 = false;
  /// Bytes of the device's memory that are allocated at once, since CUDA may wait for streams that
  /// collectives hold when it allocates later. More is allocated when it is needed.
  std::size_t reserve = std::size_t{256} << 20;
};

/// An accelerator on a CUDA device, with a stream and memory of its own, for one rank: ranks that
/// share a device have one each. Its device() is cuda_device(ordinal). Attention takes heads of up
/// to 128 elements. ReLU is done by cuBLASLt where it follows a linear layer and nothing needs what
/// it is applied to (linear_activate()); NaN may then become 0.
///
/// All of this library's kernels are loaded when it is made. cuBLASLt loads its own when a product
/// first needs them, for which CUDA may wait for all streams of the device: where collectives hold
/// streams, CUDA_MODULE_LOADING=EAGER should be in the environment before CUDA is first called.
///
/// Throws Error(unsupported) where there is no such device, or it lacks what cuda_device() needs.
/// Its functions throw Error(unsupported) for operands that are not f32 or bf16.
std::unique_ptr<Accelerator> cuda_accelerator(const CudaAcceleratorOptions& options = {});

}  // namespace transformer
}  // namespace baton
