/// Attention, forward.

#include "attention.cuh"

namespace baton::transformer::cuda {

template <class T>
void attention(const Attention<T>& of, cudaStream_t stream) {
  if constexpr (std::is_same_v<T, bf16>)
    if (has_wgmma()) return attention_by_warpgroups(of, stream);
  with_sizes(of, [&]<class Kind, int width>() {
    enqueue<DeviceTeam, ForwardWork<Kind, width>>(of, stream);
  });
}

void load_attention_kernels() {
  with_all_sizes([&]<class Kind, int width>() { prepare<DeviceTeam, ForwardWork<Kind, width>>(); });
}

template void attention(const Attention<float>&, cudaStream_t);
template void attention(const Attention<bf16>&, cudaStream_t);

}  // namespace baton::transformer::cuda
