/// The functions of nccl-tests that prepare and check data, on the stand-in for CUDA's runtime, by
/// data of our own. scripts/nccl-tests compiles it with the header of nccl-tests.

#include <verifiable.h>

#include "pattern.hpp"
#include "support/cuda/stand_in_cuda.hpp"

namespace {

using nccl_pattern::Pattern;

Pattern pattern(int type, int op, int ranks, std::uint64_t seed) {
  return {type, op, ranks, seed,
          [](int rank) { return static_cast<int>(ncclVerifiablePremulScalar<float>(rank)); }};
}

}  // namespace

cudaError_t ncclVerifiablePrepareInput(void* elements, std::intptr_t count, int type, int op,
                                       int ranks, int rank, std::uint64_t seed, std::intptr_t first,
                                       cudaStream_t stream) {
  return cuda_stand_in::give(stream, [=, all = pattern(type, op, ranks, seed)] {
    nccl_pattern::fill(cuda_stand_in::host_view(elements), count, type,
                       [&](std::int64_t i) { return all.input(rank, first + i); });
  });
}

cudaError_t ncclVerifiablePrepareExpected(void* elements, std::intptr_t count, int type, int op,
                                          int ranks, std::uint64_t seed, std::intptr_t first,
                                          cudaStream_t stream) {
  return cuda_stand_in::give(stream, [=, all = pattern(type, op, ranks, seed)] {
    nccl_pattern::fill(cuda_stand_in::host_view(elements), count, type,
                       [&](std::int64_t i) { return all.result(first + i); });
  });
}

cudaError_t ncclVerifiableVerify(const void* results, const void* expected, std::intptr_t count,
                                 int type, int op, int ranks, std::uint64_t seed,
                                 std::intptr_t first, std::int64_t* wrong, cudaStream_t stream) {
  return cuda_stand_in::give(stream, [=, all = pattern(type, op, ranks, seed)] {
    const std::byte* const found = cuda_stand_in::host_view(results);
    const std::size_t bytes = nccl_pattern::form_of(type).bytes;
    *wrong = nccl_pattern::wrong(found, count, type, [&](std::int64_t i) {
      if (expected == nullptr) return all.result(first + i);
      std::uint64_t bits = 0;
      std::memcpy(&bits, cuda_stand_in::host_view(expected) + static_cast<std::size_t>(i) * bytes,
                  bytes);
      return bits;
    });
  });
}
