#pragma once

#include <cstdint>
#include <string_view>

namespace baton::base {

/// Fowler, Noll & Vo's hash, 1a.
inline std::uint64_t hash(std::string_view text, std::uint64_t seed = 0xcbf29ce484222325u) {
  for (const char c : text) seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return seed;
}

}  // namespace baton::base
