/// A transformer on a CUDA device. Exit code 77 where there is no device.

#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>

#include "accelerator_cases.hpp"
#include "baton/cuda.hpp"
#include "transformer/cuda/cuda_accelerator.hpp"

using namespace baton;
using namespace baton::transformer;
using namespace accelerator_cases;

namespace {

TestDevice test_device() {
  return {cuda_device(0), [] { return cuda_accelerator({.reserve = 16 << 20}); }, true};
}

}  // namespace

TEST_CASE("CUDA: on 1, 2 and 4 ranks, every form of a block gives the host's whole block") {
  for (const int ranks : {1, 2, 4}) {
    CAPTURE(ranks);
    blocks<float>(ranks, test_device());
    blocks<bf16>(ranks, test_device());
  }
}

TEST_CASE("CUDA: steps of training in every form leave the host's losses and weights") {
  for (const int ranks : {1, 2, 4}) {
    CAPTURE(ranks);
    training<float>(ranks, test_device());
    training<bf16>(ranks, test_device());
  }
}

TEST_CASE("CUDA: values of bf16 follow masters in f32") { masters(test_device()); }

TEST_CASE("CUDA: linear layers and vocabularies give what the host's give") {
  for (const int ranks : {1, 2, 4}) {
    CAPTURE(ranks);
    linear_layers<float>(ranks, test_device());
    linear_layers<bf16>(ranks, test_device());
    language_model<float>(ranks, test_device());
    language_model<bf16>(ranks, test_device());
    sharded_language_model<float>(ranks, test_device());
    sharded_language_model<bf16>(ranks, test_device());
    files<float>(ranks, test_device());
    files<bf16>(ranks, test_device());
    vocabulary<float>(ranks, test_device());
    vocabulary<bf16>(ranks, test_device());
  }
}

int main(int count, char** arguments) {
  // Before the first call of CUDA: cuBLASLt's kernels are loaded before collectives hold streams.
  setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  if (cuda_devices() == 0) {
    std::puts("skipped: expected a CUDA device, found none");
    return 77;
  }
  return doctest::Context(count, arguments).run();
}
