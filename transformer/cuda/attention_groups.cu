/// Attention of bf16 by warpgroups, compiled for compute capability 9.0 alone.

#include "attention.cuh"
#include "groups.cuh"

namespace baton::transformer::cuda {
namespace {

int capability() {
  int device = 0, major = 0;
  check(cudaGetDevice(&device), "the current device");
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
        "a device's compute capability");
  return major;
}

/// A kernel's constants as a value.
template <int width_, bool plain_>
struct Sizes {
  static constexpr int width = width_;
  static constexpr bool plain = plain_;
};

/// Calls call(sizes) with those that fit.
template <class Call>
void with_these(const Attention<bf16>& of, Call call) {
  const auto with = [&]<bool plain>(std::bool_constant<plain>) {
    of.size <= narrow_head ? call(Sizes<narrow_head, plain>()) : call(Sizes<largest_head, plain>());
  };
  of.whole_chunks && !of.drops ? with(std::true_type()) : with(std::false_type());
}

}  // namespace

bool takes_groups() { return capability() == 9; }

void attention_by_groups(const Attention<bf16>& of, cudaStream_t stream) {
  with_these(of,
             [&]<class S>(S) { forward<GroupTeam, GroupBf16, S::width, S::plain>(of, stream); });
}
void attention_backward_by_groups(const Attention<bf16>& of, cudaStream_t stream) {
  with_these(of,
             [&]<class S>(S) { backward<GroupTeam, GroupBf16, S::width, S::plain>(of, stream); });
}

void load_attention_group_kernels() {
  if (!takes_groups()) return;
  const auto prepare_both = []<class S>(S) {
    prepare_forward<GroupTeam, GroupBf16, S::width, S::plain>();
    prepare_backward<GroupTeam, GroupBf16, S::width, S::plain>();
  };
  prepare_both(Sizes<narrow_head, false>());
  prepare_both(Sizes<narrow_head, true>());
  prepare_both(Sizes<largest_head, false>());
  prepare_both(Sizes<largest_head, true>());
}

}  // namespace baton::transformer::cuda
