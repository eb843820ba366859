#include "memory/residence.hpp"

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <filesystem>
#include <vector>

#include "support/ranks.hpp"

using namespace baton;
using support::error_of;
using support::holds;

TEST_CASE("buffers in a CUDA device's memory are refused by a communicator for the host's") {
  std::vector<float> buffer(100), host(100);
  // Nothing is a device's while no driver is loaded.
  CHECK(!host::in_device_memory(buffer.data()));
  const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  void* const driver = dlopen((folder / "memory/driver/libcuda.so.1").c_str(), RTLD_NOW);
  REQUIRE(driver);
  const auto owns = reinterpret_cast<void (*)(const void*, std::size_t, bool)>(
      dlsym(driver, "stand_in_driver_owns"));
  REQUIRE(static_cast<bool>(owns));
  CHECK(!host::in_device_memory(buffer.data()));
  owns(buffer.data(), buffer.size() * sizeof(float), false);
  CHECK(host::in_device_memory(buffer.data()));
  CHECK(host::in_device_memory(buffer.data() + 99));
  CHECK(!host::in_device_memory(host.data()));
  support::on_ranks(1, [&](Communicator& c) {
    for (const bool input : {false, true}) {
      const Error error =
          error_of([&] { c.all_reduce(input ? buffer : host, input ? host : buffer, sum); });
      CHECK(error.code == ErrorCode::invalid_argument);
      CHECK_MESSAGE(holds(error.what(), {"all_reduce", "the host can reach", "CUDA device's"}),
                    error.what());
    }
    CHECK_NOTHROW(c.all_reduce(host, sum));
    // What a call would send may be asked of any memory; the call itself is refused afterwards,
    // too.
    const Call asked = calls::all_gather(ConstData(buffer), Data(buffer));
    CHECK_NOTHROW(c.traffic(asked));
    CHECK_NOTHROW(c.chosen(asked));
    CHECK(error_of([&] { c.run(asked); }).code == ErrorCode::invalid_argument);
    owns(buffer.data(), buffer.size() * sizeof(float), true);  // managed: the host reaches it
    CHECK(!host::in_device_memory(buffer.data()));
    CHECK_NOTHROW(c.all_reduce(buffer, host, sum));
  });
}
