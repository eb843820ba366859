/// Attention, backward.

#include "attention.cuh"

namespace baton::transformer::cuda {

template <class T>
void attention_backward(const Attention<T>& of, cudaStream_t stream) {
  if constexpr (std::is_same_v<T, bf16>)
    if (has_wgmma()) return attention_backward_by_warpgroups(of, stream);
  with_sizes(
      of, [&]<class Kind, int width>() { enqueue_backward<DeviceTeam, Kind, width>(of, stream); });
}

void load_attention_backward_kernels() {
  with_all_sizes([&]<class Kind, int width>() { prepare_backward<DeviceTeam, Kind, width>(); });
}

template void attention_backward(const Attention<float>&, cudaStream_t);
template void attention_backward(const Attention<bf16>&, cudaStream_t);

}  // namespace baton::transformer::cuda
