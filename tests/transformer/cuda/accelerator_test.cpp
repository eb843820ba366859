/// The accelerator of CUDA devices on stand-ins for CUDA's runtime, cuBLASLt and the launches of
/// kernels: everything but these.

#include <doctest/doctest.h>

#include <vector>

#include "operations.hpp"
#include "stand_in_runtime.hpp"
#include "support/sanitizer.hpp"
#include "transformer/block.hpp"
#include "transformer/cuda/cuda_accelerator.hpp"

using namespace baton::transformer;
using namespace accelerator_cases;

namespace {

/// 4 are left to transformer/accelerator_test.cpp under a sanitizer.
const std::vector<int> ranks_of_groups =
    support::under_sanitizer ? std::vector{2} : std::vector{2, 4};

TestDevice test_device() {
  support::StandInOptions options;
  options.memory = std::size_t{256} << 20;
  const auto device = std::make_shared<support::StandInDevice>(options);
  support::stand_in_for_cuda(device);
  return {device, [] { return cuda_accelerator({.reserve = 1 << 20}); }};
}

}  // namespace

TEST_CASE("every operation gives what the host's gives, and the same bits a second time") {
  operations<float>(test_device());
  operations<baton::bf16>(test_device());
}

TEST_CASE("tensors without elements leave what the host leaves") {
  without_elements<float>(test_device());
  without_elements<baton::bf16>(test_device());
}

TEST_CASE("biases and ReLU are epilogues of products, the exact GELU is a kernel") {
  constexpr auto none = CUBLASLT_EPILOGUE_DEFAULT, bias = CUBLASLT_EPILOGUE_BIAS,
                 relu = CUBLASLT_EPILOGUE_RELU, relu_bias = CUBLASLT_EPILOGUE_RELU_BIAS;
  const auto accelerator = test_device().make();
  const AcceleratorScope scope(accelerator.get());
  Array<float> x({3, 4}), weight({5, 4}), added({5}), pre({3, 5}), y({3, 5});
  const auto of = [&](Activation f, const View<const float>& bias, Array<float>& pre) {
    support::epilogues();
    linear_activate<float>(f, x, weight, bias, pre.view(), y.view());
    const auto used = support::epilogues();
    REQUIRE(used.size() == 1);
    return used[0];
  };
  CHECK(of(Activation::relu, {}, y) == relu);
  CHECK(of(Activation::relu, added, y) == relu_bias);
  CHECK(of(Activation::relu, {}, pre) == none);  // pre is wanted, too
  CHECK(of(Activation::relu, added, pre) == bias);
  CHECK(of(Activation::gelu, {}, y) == none);
  CHECK(of(Activation::gelu, added, y) == bias);

  for (const Activation f : activations) {
    TransformerBlock<float> block({.d_model = 8, .heads = 2, .d_ff = 16, .activation = f},
                                  {.seed = 1});
    Context context;
    support::epilogues();
    block.forward(Array<float>({1, 3, 8}), context);
    const auto fc1 = f == Activation::relu ? relu_bias : bias;
    CHECK(support::epilogues() == std::vector{none, none, none, none, fc1, none});
  }
}

TEST_CASE("what cannot be done is refused") { refusals(test_device()); }

TEST_CASE("every form of a block gives what the host's whole block gives") {
  for (const int ranks : ranks_of_groups) {
    blocks<float>(ranks, test_device());
    blocks<baton::bf16>(ranks, test_device());
  }
}

TEST_CASE("steps of training, masters, linear layers and vocabularies give what the host's give") {
  masters(test_device());
  for (const int ranks : ranks_of_groups) {
    training<float>(ranks, test_device());
    training<baton::bf16>(ranks, test_device());
    linear_layers<float>(ranks, test_device());
    linear_layers<baton::bf16>(ranks, test_device());
    language_model<float>(ranks, test_device());
    sharded_language_model<baton::bf16>(ranks, test_device());
    if (!support::under_sanitizer) {
      language_model<baton::bf16>(ranks, test_device());
      sharded_language_model<float>(ranks, test_device());
    }
    vocabulary<float>(ranks, test_device());
    vocabulary<baton::bf16>(ranks, test_device());
  }
}
