#pragma once
/// What the library does to memory of a CUDA device: folds, divisions and strided copies, enqueued
/// on a stream.

#include <cstddef>
#include <cstdint>
#include <span>

#include "baton/device.hpp"

typedef struct CUstream_st* cudaStream_t;  // as in <cuda_runtime_api.h>

namespace baton::cuda {

/// All of these return after enqueueing work on `stream`, of the current device. What they read and
/// write must stay valid until the stream has done it, and be accessible to that device. Pieces of
/// one call are done in any order: none may write what another touches.
///
/// All throw Error(device) with CUDA's own code and text where CUDA refuses, and
/// Error(invalid_argument) on a negative number of elements or rows.

/// into[i] = left[i] (+) right[i], bit by bit as lib/memory/README.md says. `into` may be `left` or
/// `right`, no other overlap. Throws Error(invalid_argument) where the operation is not defined on
/// the type, and where an address or stride is no multiple of the element's size.
void fold(OpKind op, Datatype type, std::span<const Rows> pieces, cudaStream_t stream);

/// data[i] /= ranks, as avg ends. Throws as fold() does, and on `ranks` below 1.
void divide(Datatype type, int ranks, std::span<const Rows> pieces, cudaStream_t stream);

/// into[i] = from[i], of elements of any size and alignment. No overlap.
void copy(std::size_t element_bytes, std::span<const Rows> pieces, cudaStream_t stream);

/// Loads all kernels into the current device. CUDA loads a kernel when it is first launched, which
/// may wait for all that runs on the device; where a stream waits for a later launch, that is a
/// deadlock. Repeating it costs some microseconds.
void load_kernels();

}  // namespace baton::cuda
