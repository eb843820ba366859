#pragma once
/// The library's work on a CUDA device's memory: folds, divisions and strided copies, enqueued on a
/// stream.

#include <cstddef>
#include <cstdint>
#include <span>

#include "baton/device.hpp"

using cudaStream_t = struct CUstream_st*;  // as in <cuda_runtime_api.h>

namespace baton::cuda {

/// All functions enqueue work on `stream`, of the current device, and return. All memory must be
/// accessible to that device and stay valid until the work is done. Pieces of one call run in any
/// order: none may write memory that another one uses.
///
/// All throw Error(device) with CUDA's own code and text, and Error(invalid_argument) for a
/// negative number of elements or rows.

/// into[i] = left[i] (+) right[i], bit by bit as lib/memory/README.md says. `into` may be `left` or
/// `right`; no other overlap. Throws Error(invalid_argument) if the op is not defined on the type,
/// and if an address or stride is no multiple of the element's size.
void fold(OpKind op, Datatype type, std::span<const Rows> pieces, cudaStream_t stream);

/// data[i] /= ranks, the last step of avg. Throws as fold() does, and for `ranks` below 1.
void divide(Datatype type, int ranks, std::span<const Rows> pieces, cudaStream_t stream);

/// into[i] = from[i], for elements of any size and alignment. No overlap.
void copy(std::size_t element_bytes, std::span<const Rows> pieces, cudaStream_t stream);

/// Loads all kernels into the current device. CUDA loads a kernel at its first launch, and this may
/// wait for all work of the device. That is a deadlock if a stream waits for a later launch. A
/// second call costs some microseconds.
void load_kernels();

}  // namespace baton::cuda
