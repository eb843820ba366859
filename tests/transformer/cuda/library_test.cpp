/// The shared library, as programs link it, with or without a device.

#include <doctest/doctest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "baton/error.hpp"
#include "transformer/cuda/cuda_accelerator.hpp"

using namespace baton;
using namespace baton::transformer;

TEST_CASE("the library loads without the driver's library") {  // before the first call
  std::stringstream maps;
  maps << std::ifstream("/proc/self/maps").rdbuf();
  CHECK(maps.str().find("libbaton-transformer-cuda.so") != std::string::npos);
  CHECK(maps.str().find("libcuda.so") == std::string::npos);
}

TEST_CASE("a device that does not exist is refused") {
  try {
    cuda_accelerator({.ordinal = 1000});
    FAIL("expected an Error, found none");
  } catch (const Error& error) {
    CHECK(error.code == ErrorCode::unsupported);
    const std::string sentence = error.what();
    CHECK_MESSAGE(sentence.find("expected CUDA device 1000") != std::string::npos, sentence);
    CHECK_MESSAGE(sentence.find("found") != std::string::npos, sentence);
  }
}
