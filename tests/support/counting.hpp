#pragma once
/// A transport that counts what is sent through it, and through its parts.

#include <memory>
#include <utility>

#include "baton/communicator.hpp"
#include "baton/forwarding.hpp"

namespace support {

class CountingTransport final : public baton::ForwardingTransport, public baton::BlockingCalls {
 public:
  /// `sent` must be nobody else's, and outlive the transport.
  CountingTransport(std::unique_ptr<baton::Transport> counted, baton::Traffic& sent)
      : ForwardingTransport(std::move(counted)), sent_(sent) {}

  void isend(int peer, int tag, const void* data, std::size_t bytes,
             baton::Message& message) override {
    count(bytes);
    inner().isend(peer, tag, data, bytes, message);
  }
  baton::BlockingCalls* blocking() override { return inner().blocking() ? this : nullptr; }
  std::size_t recv(const baton::IncomingMessage& in) override {
    return inner().blocking()->recv(in);
  }
  void send(const baton::OutgoingMessage& out) override {
    count(out.bytes);
    inner().blocking()->send(out);
  }
  std::size_t send_recv(const baton::OutgoingMessage& out,
                        const baton::IncomingMessage& in) override {
    count(out.bytes);
    return inner().blocking()->send_recv(out, in);
  }

 private:
  std::unique_ptr<Transport> wrapped(std::unique_ptr<Transport> part) override {
    return std::make_unique<CountingTransport>(std::move(part), sent_);
  }
  void count(std::size_t bytes) { sent_ += {1, static_cast<std::int64_t>(bytes)}; }
  baton::Traffic& sent_;
};

}  // namespace support
