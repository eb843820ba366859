#include "baton/transport.hpp"

#include <cassert>

namespace baton {
namespace {

constexpr std::chrono::microseconds nap{200};

}  // namespace

void Transport::send(int peer, int tag, const void* data, std::size_t bytes) {
  Message message;
  isend(peer, tag, data, bytes, message);
  std::size_t sent = 0;
  while (!test(message, sent)) idle(nap);
}

std::size_t Transport::recv(int peer, int tag, void* data, std::size_t bytes) {
  Message message;
  irecv(peer, tag, data, bytes, message);
  std::size_t sent = 0;
  while (!test(message, sent)) idle(nap);
  return sent;
}

void Transport::offer(int peer, int tag, const void* data, std::size_t bytes, Message& message) {
  isend(peer, tag, data, bytes, message);
}

void Transport::fetch(int peer, int tag, const Destination& to, std::size_t bytes,
                      Message& message) {
  assert(!to.take && "called only where reads() says so");
  irecv(peer, tag, to.data, bytes, message);
}

std::size_t Transport::send_recv(const Out& out, const In& in) {
  Message sending;
  isend(out.peer, out.tag, out.data, out.bytes, sending);
  const std::size_t received = recv(in.peer, in.tag, in.data, in.bytes);
  std::size_t sent = 0;
  while (!test(sending, sent)) idle(nap);
  return received;
}

}  // namespace baton
