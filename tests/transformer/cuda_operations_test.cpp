/// The operations of a transformer on a CUDA device. Exit code 77 where there is no device.

#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdio>

#include "baton/cuda.hpp"
#include "cuda/operations.hpp"
#include "transformer/cuda/cuda_accelerator.hpp"

using namespace baton;
using namespace baton::transformer;
using namespace accelerator_cases;

namespace {

TestDevice test_device(bool tf32 = false) {
  return {cuda_device(0), [tf32] { return cuda_accelerator({.tf32 = tf32}); }};
}

}  // namespace

TEST_CASE("CUDA: operations of f32 give what the host's give, and the same bits a second time") {
  operations<float>(test_device());
}

TEST_CASE("CUDA: operations of bf16 give what the host's give, and the same bits a second time") {
  operations<bf16>(test_device());
}

TEST_CASE("CUDA: tensors without elements leave what the host leaves") {
  without_elements<float>(test_device());
  without_elements<bf16>(test_device());
}

TEST_CASE("CUDA: products in tf32 are those of factors with 10 bits") {
  constexpr std::int64_t n = 256;
  Array<float> x({n, n}), weight({n, n}), expected({n, n});
  fill_uniform(x.view(), {1, 2}, -1, 1);
  fill_uniform(weight.view(), {1, 3}, -1, 1);
  linear<float>(x, weight, {}, expected.view());
  const auto largest = [&](bool tf32) {
    const auto accelerator = test_device(tf32).make();
    const AcceleratorScope scope(accelerator.get());
    const auto there = from_host<float>(x), by = from_host<float>(weight);
    Array<float> y({n, n});
    linear<float>(there, by, {}, y.view());
    const auto found = to_host<float>(y);
    double most = 0;
    for (std::int64_t i = 0; i < n * n; ++i)
      most = std::max(most, std::abs(double{found.data()[i]} - double{expected.data()[i]}));
    return most;
  };
  CHECK(largest(false) < 1e-4);
  CHECK(largest(true) > 1e-4);
  CHECK(largest(true) < 0.1);
}

TEST_CASE("CUDA: what cannot be done is refused") { refusals(test_device()); }

int main(int count, char** arguments) {
  if (cuda_devices() == 0) {
    std::puts("skipped: expected a CUDA device, found none");
    return 77;
  }
  return doctest::Context(count, arguments).run();
}
