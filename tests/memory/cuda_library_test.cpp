/// The shared library, as programs link it, with or without a device.

#include <doctest/doctest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "baton/cuda.hpp"

TEST_CASE("the library loads without the driver's library") {  // before the first call
  std::stringstream maps;
  maps << std::ifstream("/proc/self/maps").rdbuf();
  CHECK(maps.str().find("libbaton-cuda.so") != std::string::npos);
  CHECK(maps.str().find("libcuda.so") == std::string::npos);
}

TEST_CASE("devices can be counted where there is none") { CHECK(baton::cuda_devices() >= 0); }
