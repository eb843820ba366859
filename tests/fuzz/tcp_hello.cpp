/// What a guest sends at a meeting of UCX's ranks, who may be anybody. The first byte: 0: all bytes
/// are the guest's; otherwise it proves to know the key, by a program that behaves, once its first
/// message is accepted.

#include <sys/socket.h>

#include <chrono>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "target.hpp"
#include "transport/tcp/meeting.hpp"

using namespace baton;
using namespace std::chrono_literals;

namespace {

const tcp::Bytes key(8, std::byte{7});

bool arrives(tcp::Stranger& stranger) {
  return stranger.advance(key) == tcp::Stranger::State::proved;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) != 0)
    throw std::runtime_error("cannot make a pair of sockets");
  tcp::Stranger stranger{tcp::Socket(ends[0])};
  const tcp::Socket own(ends[1]);
  const auto until = std::chrono::steady_clock::now() + 1s;
  const auto bytes = std::as_bytes(std::span(data + 1, size - 1));
  bool arrived = false;
  if (data[0] == 0 || bytes.size() < sizeof(tcp::Hello)) {
    own.write(bytes, until);
    arrived = arrives(stranger);
    fuzz::require(!arrived, "nobody comes in without a proof");
    return 0;
  }
  tcp::Hello hello;
  std::memcpy(&hello, bytes.data(), sizeof hello);
  own.write(tcp::bytes_of(hello), until);
  arrives(stranger);
  tcp::Challenge challenge;
  const auto answered = own.read_some(tcp::room_of(challenge));
  if (!answered || *answered == 0) return 0;
  const auto rest = bytes.subspan(sizeof hello);
  const tcp::Bytes block(rest.begin(), rest.end());
  own.write(tcp::proof_of_guest(key, hello, challenge, block), until);
  own.write(block, until);
  arrived = arrives(stranger);
  fuzz::require(arrived == (hello.bytes == block.size()), "exactly a whole block comes in");
  if (!arrived) return 0;
  tcp::Meeting meeting("the place", 2, 1s);
  meeting.bring(tcp::Bytes(1));
  meeting.greet(stranger.guest());
  fuzz::accepted([&] { fuzz::require(meeting.end(key, 0).size() == 2, "a block for each rank"); });
  return 0;
}
