#pragma once
/// Products of warpgroups on devices of compute capability 9.0, PTX's wgmma of bf16, and copies of
/// tiles by their Tensor Memory Accelerator (TMA), PTX's cp.async.bulk.tensor.

#include <cuda.h>

#include "wgmma_factors.hpp"

namespace baton::transformer::cuda {

// Numbers of bytes in descriptors are numbers of chunks. Eight rows of a panel are 64 chunks.

/// Of what lies `offset` chunks behind the tile: a sum, so that a tile's products share all but
/// that.
__device__ __forceinline__ std::uint64_t descriptor(const Chunk* tile, int leading, int offset) {
  constexpr std::uint64_t eight_rows = 64, swizzle_of_128_bytes = 1;
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(tile));
  const std::uint32_t low = (address / sizeof(Chunk) & 0x3fff) | leading << 16;
  return (eight_rows << 32 | swizzle_of_128_bytes << 62 | low) + offset;
}
/// Rows go on by the swizzle alone: a step is two chunks, four steps are a panel.
template <int rows>
__device__ __forceinline__ std::uint64_t descriptor(const Across<rows>& of) {
  return descriptor(of.tile, 1, (of.step / 4 * rows + of.first) * 8 + of.step % 4 * 2);
}
template <int rows>
__device__ __forceinline__ std::uint64_t descriptor(const Down<rows>& of) {
  return descriptor(of.tile, rows * 8, of.step * 16 * 8);
}

#define BATON_EIGHT(c, n)                                                        \
  "+f"(c[n][0]), "+f"(c[n][1]), "+f"(c[n][2]), "+f"(c[n][3]), "+f"(c[n + 1][0]), \
      "+f"(c[n + 1][1]), "+f"(c[n + 1][2]), "+f"(c[n + 1][3])
#define BATON_32(c, n) \
  BATON_EIGHT(c, n), BATON_EIGHT(c, n + 2), BATON_EIGHT(c, n + 4), BATON_EIGHT(c, n + 6)
#define BATON_FIRST_32                                                                         \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24," \
  "%25,%26,%27,%28,%29,%30,%31"
#define BATON_NEXT_32                                                                            \
  "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54," \
  "%55,%56,%57,%58,%59,%60,%61,%62,%63"

/// c, or nothing, + a · bᵀ, with both in shared memory.
__device__ __forceinline__ void wgmma(float (&c)[8][4], std::uint64_t a, std::uint64_t b,
                                      bool adds) {
  asm volatile(
      "{ .reg .pred p; setp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" BATON_FIRST_32
      "}, %32, %33, p, 1, 1, 0, 0; }"
      : BATON_32(c, 0)
      : "l"(a), "l"(b), "r"(static_cast<int>(adds)));
}
/// The same of a's words; b is down its columns.
__device__ __forceinline__ void wgmma(float (&c)[8][4], const Chunk& a, std::uint64_t b,
                                      bool adds) {
  asm volatile(
      "{ .reg .pred p; setp.ne.b32 p, %37, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" BATON_FIRST_32
      "}, {%32,%33,%34,%35}, %36, p, 1, 1, 1; }"
      : BATON_32(c, 0)
      : "r"(a.word[0]), "r"(a.word[1]), "r"(a.word[2]), "r"(a.word[3]), "l"(b),
        "r"(static_cast<int>(adds)));
}
__device__ __forceinline__ void wgmma(float (&c)[16][4], const Chunk& a, std::uint64_t b,
                                      bool adds) {
  asm volatile(
      "{ .reg .pred p; setp.ne.b32 p, %69, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" BATON_FIRST_32 "," BATON_NEXT_32
      "}, {%64,%65,%66,%67}, %68, p, 1, 1, 1; }"
      : BATON_32(c, 0), BATON_32(c, 8)
      : "r"(a.word[0]), "r"(a.word[1]), "r"(a.word[2]), "r"(a.word[3]), "l"(b),
        "r"(static_cast<int>(adds)));
}

#undef BATON_NEXT_32
#undef BATON_FIRST_32
#undef BATON_32
#undef BATON_EIGHT

/// The device's team with products of warpgroups.
template <class State>
class WarpgroupTeam : public DeviceTeam<State> {
 public:
  using DeviceTeam<State>::DeviceTeam;
  __device__ __forceinline__ void begin_products() {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  }
  template <class Sum, int rows, int columns>
  __device__ __forceinline__ void product(Sum sum, const Across<rows>& a, const Across<columns>& b,
                                          bool adds) {
    wgmma(sum(this->state_), descriptor(a), descriptor(b), adds);
  }
  template <class Sum, class A, int rows>
  __device__ __forceinline__ void product(Sum sum, A a, const Down<rows>& b, bool adds) {
    wgmma(sum(this->state_), a(this->state_), descriptor(b), adds);
  }
  __device__ __forceinline__ void end_products() {
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  }
  template <int pending, class Sums>
  __device__ __forceinline__ void await_products(Sums sums) {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
    pin(sums(this->state_));
  }

 private:
  /// No use of sums moves up beyond this.
  static __device__ __forceinline__ void pin(float& sum) { asm volatile("" : "+f"(sum)::"memory"); }
  template <class T, int count>
  static __device__ __forceinline__ void pin(T (&sums)[count]) {
#pragma unroll
    for (T& sum : sums) pin(sum);
  }
};

/// Attention's tensors as TMA sees them, in the order of Source, in boxes of 64 elements of
/// 64 positions.
struct TensorMaps {
  CUtensorMap of[4];
};

/// A WarpgroupTeam with copies of tiles, in two stages. The first thread starts them; each stage
/// has a barrier that counts their bytes.
template <class State>
class TmaTeam : public WarpgroupTeam<State> {
 public:
  using Argument = TensorMaps;
  /// `barriers`: one chunk of shared memory.
  __device__ __forceinline__ TmaTeam(const TensorMaps& maps, Chunk* barriers)
      : maps_(maps), barriers_(static_cast<std::uint32_t>(__cvta_generic_to_shared(barriers))) {
    if (threadIdx.x == 0) {
      for (int stage = 0; stage < 2; ++stage)
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier(stage)) : "memory");
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
  }
  template <int width, int rows, class Load>
  __device__ __forceinline__ void copy(int stage, Source which, const Tile& at, Chunk* to, Load) {
    constexpr int box = 64, panels = width / box, bytes = rows * width * sizeof(bf16);
    if (threadIdx.x != 0) return;
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(barrier(stage)),
                 "n"(bytes)
                 : "memory");
#pragma unroll
    for (int panel = 0; panel < panels; ++panel)
#pragma unroll
      for (int row = 0; row < rows; row += box)
        asm volatile(
            "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
            "[%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(static_cast<std::uint32_t>(
                __cvta_generic_to_shared(to + (panel * rows + row) * 8))),
            "l"(&maps_.of[static_cast<int>(which)]), "r"(barrier(stage)), "r"(panel * box),
            "r"(static_cast<int>(at.begin) + row), "r"(static_cast<int>(at.head)),
            "r"(static_cast<int>(at.sample))
            : "memory");
  }
  __device__ __forceinline__ void finish_copies(int stage) {
    if (threadIdx.x == 0)
      asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier(stage)) : "memory");
  }
  __device__ __forceinline__ void await_copies(int stage) {
    std::uint32_t done = 0;
    while (!done)
      asm volatile(
          "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
          "selp.u32 %0, 1, 0, p; }"
          : "=r"(done)
          : "r"(barrier(stage)), "r"(phases_ >> stage & 1)
          : "memory");
    phases_ ^= 1u << stage;
  }

 private:
  __device__ __forceinline__ std::uint32_t barrier(int stage) const {
    return barriers_ + stage * static_cast<int>(sizeof(std::uint64_t));
  }
  const TensorMaps& maps_;
  std::uint32_t barriers_, phases_ = 0;  // phases_: a stage's bit changes with each wait
};

}  // namespace baton::transformer::cuda
