#pragma once

#include <functional>
#include <memory>

#include "baton/device.hpp"

namespace baton::cli::bench_device {

/// A device with streams as its users make them, beside the library's.
struct Gpu {
  std::shared_ptr<Device> device;
  std::function<Stream()> make_stream;
  std::function<void(Stream)> end_stream;
};

}  // namespace baton::cli::bench_device
