/// The library itself, with or without a device.

#include <doctest/doctest.h>

#include <fstream>
#include <sstream>

#include "support/ranks.hpp"
#include "transformer/cuda/cuda_accelerator.hpp"

using namespace baton;
using namespace baton::transformer;

TEST_CASE("the library is loaded without the driver's") {  // the first case: nothing was called yet
  std::stringstream maps;
  maps << std::ifstream("/proc/self/maps").rdbuf();
  CHECK(maps.str().find("libbaton-transformer-cuda.so") != std::string::npos);
  CHECK(maps.str().find("libcuda.so") == std::string::npos);
}

TEST_CASE("a device that is not there is refused") {
  const Error error = support::error_of([] { cuda_accelerator({.ordinal = 1000}); });
  CHECK(error.code == ErrorCode::unsupported);
  CHECK_MESSAGE(support::holds(error.what(), {"expected CUDA device 1000", "found"}), error.what());
}
