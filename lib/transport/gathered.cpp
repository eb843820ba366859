#include "gathered.hpp"

#include <algorithm>

namespace baton::transport {

// A rank has d blocks, from its own on; it gets the next d from rank r + d.
void all_gather(Transport& group, std::span<std::byte> blocks, int tag) {
  const int rank = group.rank(), size = group.size();
  const std::size_t block = blocks.size() / static_cast<std::size_t>(size);
  const auto before = static_cast<std::ptrdiff_t>(block) * rank;
  std::rotate(blocks.begin(), blocks.begin() + before, blocks.end());
  for (int d = 1; d < size; d *= 2) {
    const std::size_t bytes = static_cast<std::size_t>(std::min(d, size - d)) * block;
    send_recv(group, {(rank - d + size) % size, tag, blocks.data(), bytes},
              {(rank + d) % size, tag, blocks.data() + static_cast<std::size_t>(d) * block, bytes});
  }
  std::rotate(blocks.begin(), blocks.end() - before, blocks.end());
}

}  // namespace baton::transport
