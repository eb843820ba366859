/// The accelerator of CUDA devices on stand-ins for CUDA's runtime, cuBLASLt and the launches of
/// kernels: everything but these.

#include <doctest/doctest.h>

#include "operations.hpp"
#include "stand_in_runtime.hpp"
#include "transformer/cuda/cuda_accelerator.hpp"

using namespace baton::transformer;
using namespace accelerator_cases;

namespace {

Card card() {
  support::StandInOptions options;
  options.memory = std::size_t{256} << 20;
  const auto device = std::make_shared<support::StandInDevice>(options);
  support::stand_in_for_cuda(device);
  return {device, [] { return cuda_accelerator({.reserve = 1 << 20}); }};
}

}  // namespace

TEST_CASE("every operation gives what the host's gives, and the same bits a second time") {
  operations<float>(card());
  operations<baton::bf16>(card());
}

TEST_CASE("tensors without elements leave what the host leaves") {
  without_elements<float>(card());
  without_elements<baton::bf16>(card());
}

TEST_CASE("what cannot be done is refused") { refusals(card()); }

TEST_CASE("every form of a block gives what the host's whole block gives") {
  for (const int ranks : {2, 4}) {
    blocks<float>(ranks, card());
    blocks<baton::bf16>(ranks, card());
  }
}

TEST_CASE("steps of training, masters, linear layers and vocabularies give what the host's give") {
  masters(card());
  for (const int ranks : {2, 4}) {
    training<float>(ranks, card());
    training<baton::bf16>(ranks, card());
    linear_layers<float>(ranks, card());
    linear_layers<baton::bf16>(ranks, card());
    vocabulary<float>(ranks, card());
    vocabulary<baton::bf16>(ranks, card());
  }
}
