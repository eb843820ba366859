#include "baton/transport.hpp"

#include "../base/supervision.hpp"

namespace baton {

namespace {

std::size_t wait(Transport& transport, Message& message) {
  std::size_t bytes = 0;
  while (!transport.test(message, bytes)) {
    try {
      base::Supervision::check();
      transport.idle(std::chrono::microseconds(200));
    } catch (...) {
      transport.cancel(message);
      throw;
    }
  }
  return bytes;
}

}  // namespace

void send(Transport& transport, const OutgoingMessage& out) {
  if (BlockingCalls* const blocking = transport.blocking()) return blocking->send(out);
  Message message;
  transport.isend(out.peer, out.tag, out.data, out.bytes, message);
  wait(transport, message);
}

std::size_t recv(Transport& transport, const IncomingMessage& in) {
  if (BlockingCalls* const blocking = transport.blocking()) return blocking->recv(in);
  Message message;
  transport.irecv(in.peer, in.tag, in.data, in.bytes, message);
  return wait(transport, message);
}

std::size_t send_recv(Transport& transport, const OutgoingMessage& out, const IncomingMessage& in) {
  if (BlockingCalls* const blocking = transport.blocking()) return blocking->send_recv(out, in);
  Message sending;
  transport.isend(out.peer, out.tag, out.data, out.bytes, sending);
  std::size_t received = 0;
  try {
    received = recv(transport, in);
  } catch (...) {
    transport.cancel(sending);
    throw;
  }
  wait(transport, sending);
  return received;
}

}  // namespace baton
