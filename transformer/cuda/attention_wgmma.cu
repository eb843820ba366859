/// Attention of bf16 by warpgroups, compiled for compute capability 9.0 alone.

#include "attention.cuh"
#include "wgmma.cuh"

namespace baton::transformer::cuda {
namespace {

int compute_capability_major() {
  int device = 0, major = 0;
  check(cudaGetDevice(&device), "the current device");
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
        "a device's compute capability");
  return major;
}

/// The driver's cuTensorMapEncodeTiled; null if it has none.
auto encoder() {
  static const auto found = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(
      baton::cuda::driver_function("cuTensorMapEncodeTiled"));
  return found;
}

/// Whether TMA can bring a tensor's tiles; then `map` says how.
bool mapped(const Attention<bf16>& of, Source which, CUtensorMap& map) {
  const Heads<const bf16>& from = of.tensor(which);
  const std::int64_t positions = of.positions(which);
  const std::int64_t heads = of.head_count(which);
  if (!encoder() || positions > INT32_MAX) return false;
  const auto unsign = [](std::int64_t x) { return static_cast<cuuint64_t>(x); };
  const cuuint64_t sizes[] = {unsign(of.size), unsign(positions), unsign(heads),
                              unsign(of.samples)};
  // Of one, no stride matters.
  const auto bytes = [&](std::int64_t stride, std::int64_t count) {
    return unsign(count == 1 ? static_cast<std::int64_t>(sizeof(Chunk))
                             : stride * static_cast<std::int64_t>(sizeof(bf16)));
  };
  const cuuint64_t strides[] = {bytes(from.position, positions), bytes(from.head, heads),
                                bytes(from.sample, of.samples)};
  const cuuint32_t box[] = {64, 64, 1, 1}, every[] = {1, 1, 1, 1};
  return encoder()(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 4, const_cast<bf16*>(from.data), sizes,
                   strides, box, every, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                   CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                   CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}
bool mapped(const Attention<bf16>& of, bool backward, TensorMaps& maps) {
  bool all = of.whole_chunks && !of.drops && of.samples * of.heads * of.queries * of.keys > 0;
  for (const Source which : {Source::q, Source::k, Source::v, Source::dout})
    if (all && (backward || which != Source::dout))
      all = mapped(of, which, maps.of[static_cast<int>(which)]);
  return all;
}

/// A kernel's width as a value.
template <int width_>
struct Width {
  static constexpr int width = width_;
};
/// Calls call(width) with the one that fits.
template <class Call>
void with_width(const Attention<bf16>& of, Call call) {
  of.size <= narrow_head ? call(Width<narrow_head>()) : call(Width<largest_head>());
}

}  // namespace

bool has_wgmma() { return compute_capability_major() == 9; }

void attention_by_warpgroups(const Attention<bf16>& of, cudaStream_t stream) {
  TensorMaps maps;
  const bool copied = mapped(of, false, maps);
  with_width(of, [&]<class W>(W) {
    copied ? enqueue<TmaTeam, ForwardWork<TmaBf16, W::width>>(of, stream, maps)
           : enqueue<WarpgroupTeam, ForwardWork<WarpgroupBf16, W::width>>(of, stream);
  });
}
void attention_backward_by_warpgroups(const Attention<bf16>& of, cudaStream_t stream) {
  TensorMaps maps;
  const bool copied = mapped(of, true, maps);
  with_width(of, [&]<class W>(W) {
    copied ? enqueue_backward<TmaTeam, TmaBf16, W::width>(of, stream, maps)
           : enqueue_backward<WarpgroupTeam, WarpgroupBf16, W::width>(of, stream);
  });
}

void load_attention_warpgroup_kernels() {
  if (!has_wgmma()) return;
  const auto prepare_all = []<class W>(W) {
    prepare<TmaTeam, ForwardWork<TmaBf16, W::width>>();
    prepare_backward<TmaTeam, TmaBf16, W::width>();
    prepare<WarpgroupTeam, ForwardWork<WarpgroupBf16, W::width>>();
    prepare_backward<WarpgroupTeam, WarpgroupBf16, W::width>();
  };
  prepare_all(Width<narrow_head>());
  prepare_all(Width<largest_head>());
}

}  // namespace baton::transformer::cuda
