/// Checks, batches and launches.

#include <fmt/core.h>

#include <algorithm>

#include "baton/cuda_runtime.hpp"
#include "baton/error.hpp"
#include "kernel_table.hpp"
#include "kernels.hpp"
#include "layout.hpp"

namespace baton::cuda {
namespace {

template <class... Parts>
[[noreturn]] void refuse(fmt::format_string<Parts...> sentence, Parts&&... parts) {
  throw Error(ErrorCode::invalid_argument, fmt::format(sentence, std::forward<Parts>(parts)...));
}

/// Launches a kernel over `units`, on at most `most_blocks` thread blocks for each multiprocessor.
void launch(const char* what, const void* kernel, std::uint32_t units, std::uint32_t most_blocks,
            std::size_t shared_bytes, void** parameters, cudaStream_t stream) {
  int device = 0, processors = 0;
  check(cudaGetDevice(&device), what);
  check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device), what);
  const std::uint32_t blocks =
      std::min(units, most_blocks * static_cast<std::uint32_t>(processors));
  check(cudaLaunchKernel(kernel, dim3(blocks), dim3(threads), parameters, shared_bytes, stream),
        what);
}

void check_pieces(const char* what, std::span<const Rows> pieces) {
  for (const Rows& piece : pieces) {
    if (piece.block < 0 || piece.rows < 0) {
      refuse("{}: expected rows and elements of at least 0, found {} rows of {} elements", what,
             piece.rows, piece.block);
    }
  }
}

void check_alignment(const char* what, Datatype type, std::span<const Rows> pieces, int operands) {
  const std::size_t bytes = size_of(type);
  for (const Rows& piece : pieces) {
    if (piece.block == 0 || piece.rows == 0) continue;
    for (int k = 0; k < operands; ++k) {
      if (reinterpret_cast<std::uintptr_t>(piece.at[k]) % bytes != 0) {
        refuse("{}: expected addresses that are multiples of {}, the bytes of {}, found {}", what,
               bytes, name(type), static_cast<const void*>(piece.at[k]));
      }
      if (piece.rows > 1 && piece.stride[k] % static_cast<std::int64_t>(bytes) != 0) {
        refuse("{}: expected strides that are multiples of {}, the bytes of {}, found {}", what,
               bytes, name(type), piece.stride[k]);
      }
    }
  }
}

}  // namespace

void fold(OpKind op, Datatype type, std::span<const Rows> pieces, cudaStream_t stream) {
  constexpr const char* what = "fold on a device";
  const void* kernel = fold_kernel(op, type);
  if (kernel == nullptr) {
    refuse("{}: expected an operation that is defined on {}, found {}", what, name(type), name(op));
  }
  check_pieces(what, pieces);
  check_alignment(what, type, pieces, 3);
  for_batches<3>(pieces, size_of(type), fold_widths(op, type), [&](Batch<Strided<3>>& batch) {
    void* parameters[] = {&batch};
    launch(what, kernel, batch.units, fold_blocks, 0, parameters, stream);
  });
}

void divide(Datatype type, int ranks, std::span<const Rows> pieces, cudaStream_t stream) {
  constexpr const char* what = "division on a device";
  const void* kernel = divide_kernel(type);
  if (kernel == nullptr) {
    refuse("{}: expected a datatype of the library, found {}", what, name(type));
  }
  if (ranks < 1) refuse("{}: expected at least 1 rank, found {}", what, ranks);
  check_pieces(what, pieces);
  check_alignment(what, type, pieces, 1);
  for_batches<1>(pieces, size_of(type), widths_for(size_of(type)), [&](Batch<Strided<1>>& batch) {
    void* parameters[] = {&batch, &ranks};
    launch(what, kernel, batch.units, fold_blocks, 0, parameters, stream);
  });
}

void copy(std::size_t element_bytes, std::span<const Rows> pieces, cudaStream_t stream) {
  constexpr const char* what = "copy on a device";
  check_pieces(what, pieces);
  skip_empty(pieces);
  if (pieces.empty()) return;
  std::span<const Rows> rest = pieces;
  const Sheet<2> first = take_sheet<2>(rest, static_cast<std::int64_t>(element_bytes));
  skip_empty(rest);
  if (rest.empty() && first.contiguous()) {
    check(cudaMemcpyAsync(first.at[0], first.at[1], static_cast<std::size_t>(first.bytes),
                          cudaMemcpyDefault, stream),
          what);
    return;
  }
  for_copy_batches(
      pieces, element_bytes,
      [&](Batch<Strided<2>>& batch) {
        void* parameters[] = {&batch};
        launch(what, copy_kernel(), batch.units, copy_blocks, 0, parameters, stream);
      },
      [&](Batch<Tiles>& batch) {
        std::uint32_t shared_bytes = 0;
        for (const Tiles& tiles : std::span(batch.jobs, batch.count))
          shared_bytes = std::max(shared_bytes, tiles.shared_bytes());
        void* parameters[] = {&batch};
        launch(what, tile_kernel(), batch.units, copy_blocks, shared_bytes, parameters, stream);
      });
}

}  // namespace baton::cuda
