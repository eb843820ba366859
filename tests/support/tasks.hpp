#pragma once

#include <cstddef>
#include <filesystem>

namespace support {

/// Threads of this process.
inline std::size_t threads() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& task : std::filesystem::directory_iterator("/proc/self/task"))
    ++count;
  return count;
}

}  // namespace support
