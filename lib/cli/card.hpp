#pragma once

#include <functional>
#include <memory>

#include "baton/device.hpp"

namespace baton::cli {

/// A device, and what its users do beside the library: streams of their own.
struct Card {
  std::shared_ptr<Device> device;
  std::function<Stream()> make_stream;
  std::function<void(Stream)> end_stream;
};

/// How many CUDA devices there are. Throws Error(unsupported) in a build without CUDA.
int cuda_cards();
Card cuda_card(int ordinal);

}  // namespace baton::cli
