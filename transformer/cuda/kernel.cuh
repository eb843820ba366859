#pragma once
/// The threads of a block on the device, and launches.

#include <cuda_runtime.h>

#include <cstdint>

#include "baton/cuda_runtime.hpp"
#include "team.hpp"

namespace baton::transformer::cuda {

using baton::cuda::check;

struct Nothing {};

/// The device's HostTeam: this thread, and its state in registers.
template <class State>
class DeviceTeam {
 public:
  using Argument = Nothing;
  DeviceTeam() = default;
  /// As teams that take a kernel's last argument and shared memory do; this one takes nothing.
  __device__ __forceinline__ DeviceTeam(const Nothing&, Chunk*) {}
  template <class Body>
  __device__ __forceinline__ void step(Body body) {
    body(static_cast<int>(threadIdx.x), state_);
    __syncthreads();
  }
  template <class Body>
  __device__ __forceinline__ void run(Body body) {
    body(static_cast<int>(threadIdx.x), state_);
  }
  template <int width, class Value, class Op>
  __device__ __forceinline__ void among(Value value, Op op) {
    auto& own = value(state_);
#pragma unroll
    for (int offset = width / 2; offset > 0; offset /= 2)
      own = op(own, __shfl_xor_sync(0xffffffff, own, offset));
  }
  template <int offset, class Give, class Take>
  __device__ __forceinline__ void swap(Give give, Take take) {
    const int thread = static_cast<int>(threadIdx.x);
    take(thread, state_, __shfl_xor_sync(0xffffffff, give(thread, state_), offset));
  }
  template <class At, class To>
  __device__ __forceinline__ void load_matrices(At at, To to) {
    Chunk& words = to(state_);
    asm volatile(
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
        : "=r"(words.word[0]), "=r"(words.word[1]), "=r"(words.word[2]), "=r"(words.word[3])
        : "r"(
            static_cast<std::uint32_t>(__cvta_generic_to_shared(at(static_cast<int>(threadIdx.x)))))
        : "memory");
  }
  template <class Kind, class Sums, class A, class B>
  __device__ __forceinline__ void mma(Sums sum, A a, B b) {
    float(&c)[4] = sum(state_);
    const auto x = a(state_);
    const auto y = b(state_);
    if constexpr (sizeof(typename Kind::Element) == 2) {
      asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
          "{%8,%9}, {%0,%1,%2,%3};"
          : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
          : "r"(x.word[0]), "r"(x.word[1]), "r"(x.word[2]), "r"(x.word[3]), "r"(y.word[0]),
            "r"(y.word[1]));
    } else {
      asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
          "{%8,%9}, {%0,%1,%2,%3};"
          : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
          : "r"(x.word[0]), "r"(x.word[1]), "r"(x.word[2]), "r"(x.word[3]), "r"(y.word[0]),
            "r"(y.word[1]));
    }
  }

 protected:
  State state_;
};

/// Thread blocks for `units` of `each` at a time; loops take what is beyond.
inline unsigned blocks_for(std::int64_t units, std::int64_t each) {
  const std::int64_t blocks = (units + each - 1) / each;
  return static_cast<unsigned>(blocks < 65536 ? blocks : 65536);
}

/// Asking for a kernel's attributes loads it.
template <class... Kernel>
void load_all(Kernel... kernel) {
  cudaFuncAttributes attributes;
  (check(cudaFuncGetAttributes(&attributes, kernel), "loading a kernel"), ...);
}

/// Throws what <<<>>> could not launch.
inline void launched(const char* what) { check(cudaGetLastError(), what); }

}  // namespace baton::transformer::cuda
