#include "baton/transport.hpp"

namespace baton {

std::size_t Transport::recv(int peer, int tag, void* data, std::size_t bytes) {
  Message message;
  irecv(peer, tag, data, bytes, message);
  std::size_t sent = 0;
  while (!test(message, sent)) idle(std::chrono::microseconds(200));
  return sent;
}

}  // namespace baton
