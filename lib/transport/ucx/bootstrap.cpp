#include "bootstrap.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace baton::ucx {

// A rank has d blocks, from its own on; it gets the next d from rank r + d.
void all_gather(Transport& group, int tag, std::span<std::byte> blocks) {
  const int rank = group.rank(), size = group.size();
  const std::size_t block = blocks.size() / static_cast<std::size_t>(size);
  const auto own = blocks.begin() + static_cast<std::ptrdiff_t>(block) * rank;
  std::rotate(blocks.begin(), own, blocks.end());
  for (int d = 1; d < size; d *= 2) {
    const std::size_t bytes = static_cast<std::size_t>(std::min(d, size - d)) * block;
    send_recv(group, {(rank - d + size) % size, tag, blocks.data(), bytes},
              {(rank + d) % size, tag, blocks.data() + static_cast<std::size_t>(d) * block, bytes});
  }
  std::rotate(blocks.begin(), blocks.end() - static_cast<std::ptrdiff_t>(block) * rank,
              blocks.end());
}

std::vector<Bytes> exchange_through(Transport& group, const Bytes& own) {
  const auto rank = static_cast<std::size_t>(group.rank());
  std::vector<std::uint64_t> lengths(static_cast<std::size_t>(group.size()));
  lengths[rank] = own.size();
  all_gather(group, 0, std::as_writable_bytes(std::span(lengths)));
  const std::size_t room = *std::ranges::max_element(lengths);
  Bytes all(room * lengths.size());
  std::ranges::copy(own, all.begin() + static_cast<std::ptrdiff_t>(room * rank));
  all_gather(group, 0, all);
  std::vector<Bytes> blocks;
  for (std::size_t r = 0; r < lengths.size(); ++r) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(room * r);
    blocks.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(lengths[r]));
  }
  return blocks;
}

}  // namespace baton::ucx
