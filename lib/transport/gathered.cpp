#include "gathered.hpp"

#include <algorithm>

namespace baton::transport {

Part::Part(Transport& group, const std::vector<int>& ranks)
    : group_(group),
      ranks_(ranks),
      size_(static_cast<int>(ranks.size())),
      index_(static_cast<int>(std::ranges::find(ranks, group.rank()) - ranks.begin())) {}

// A rank has d blocks, from its own on; it gets the next d from rank r + d.
void all_gather(const Part& part, std::span<std::byte> blocks, int tag) {
  const int rank = part.index(), size = part.size();
  const std::size_t block = blocks.size() / static_cast<std::size_t>(size);
  const auto before = static_cast<std::ptrdiff_t>(block) * rank;
  std::rotate(blocks.begin(), blocks.begin() + before, blocks.end());
  for (int d = 1; d < size; d *= 2) {
    const std::size_t bytes = static_cast<std::size_t>(std::min(d, size - d)) * block;
    send_recv(part.group(), {part.rank((rank - d + size) % size), tag, blocks.data(), bytes},
              {part.rank((rank + d) % size), tag,
               blocks.data() + static_cast<std::size_t>(d) * block, bytes});
  }
  std::rotate(blocks.begin(), blocks.end() - before, blocks.end());
}

}  // namespace baton::transport
