#pragma once

#include <span>
#include <string_view>

namespace baton::simulating {

/// A network of the library: a file of networks/, named without its suffix.
struct ShippedNetwork {
  std::string_view name, text;
};
std::span<const ShippedNetwork> shipped_network_texts();

}  // namespace baton::simulating
