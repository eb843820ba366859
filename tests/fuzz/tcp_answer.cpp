/// What a rank reads at the place where UCX's ranks meet, which may be any program. The first byte:
/// the number of ranks, less one; the second: 0: all bytes are the program's; otherwise they are
/// the text of an answer that is proved.

#include <sys/socket.h>

#include <chrono>
#include <stdexcept>
#include <vector>

#include "target.hpp"
#include "transport/tcp/meeting.hpp"

using namespace baton;
using namespace std::chrono_literals;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const int ranks = data[0] + 1;
  const auto bytes = std::as_bytes(std::span(data + 2, size - 2));
  if (data[1] != 0) {
    if (const auto blocks = tcp::blocks_of(bytes, ranks)) {
      std::size_t sum = 0;
      for (const tcp::Bytes& block : *blocks) sum += sizeof(std::uint64_t) + block.size();
      fuzz::require(blocks->size() == static_cast<std::size_t>(ranks) && sum == bytes.size(),
                    "blocks are the text");
    }
    return 0;
  }
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) != 0)
    throw std::runtime_error("cannot make a pair of sockets");
  const tcp::Socket host(ends[0]), place(ends[1]);
  place.write(bytes, std::chrono::steady_clock::now() + 1s);
  shutdown(ends[1], SHUT_WR);
  const tcp::Bytes key(8);
  const bool came = fuzz::accepted([&] {
    tcp::attend(host, "the place", key, {.rank = ranks - 1, .size = ranks}, tcp::Bytes(1),
                std::chrono::steady_clock::now() + 11s);
  });
  fuzz::require(!came, "nobody believes an answer without a proof");
  return 0;
}
