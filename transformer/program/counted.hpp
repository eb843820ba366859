#pragma once
/// A transport that counts what is sent through it, and through its parts.

#include <memory>
#include <utility>

#include "baton/communicator.hpp"
#include "baton/forwarding.hpp"

namespace baton::transformer::program {

class CountedTransport final : public ForwardingTransport, public BlockingCalls, public SingleCopy {
 public:
  /// `sent` must be this rank's, and outlive the transport.
  CountedTransport(std::unique_ptr<Transport> counted, Traffic& sent)
      : ForwardingTransport(std::move(counted)), sent_(sent) {}

  void isend(int peer, int tag, const void* data, std::size_t bytes, Message& message) override {
    count(bytes);
    inner().isend(peer, tag, data, bytes, message);
  }

  BlockingCalls* blocking() override { return inner().blocking() ? this : nullptr; }
  void send(const OutgoingMessage& out) override {
    count(out.bytes);
    inner().blocking()->send(out);
  }
  std::size_t recv(const IncomingMessage& in) override { return inner().blocking()->recv(in); }
  std::size_t send_recv(const OutgoingMessage& out, const IncomingMessage& in) override {
    count(out.bytes);
    return inner().blocking()->send_recv(out, in);
  }

  SingleCopy* single_copy() override { return inner().single_copy() ? this : nullptr; }
  std::size_t least_bytes() const override { return inner().single_copy()->least_bytes(); }
  bool reads(int peer) const override { return inner().single_copy()->reads(peer); }
  void offer(int peer, int tag, const void* data, std::size_t bytes, Message& message) override {
    count(bytes);
    inner().single_copy()->offer(peer, tag, data, bytes, message);
  }
  void fetch(int peer, int tag, const Destination& to, std::size_t bytes,
             Message& message) override {
    inner().single_copy()->fetch(peer, tag, to, bytes, message);
  }

 private:
  std::unique_ptr<Transport> wrapped(std::unique_ptr<Transport> part) override {
    return std::make_unique<CountedTransport>(std::move(part), sent_);
  }
  void count(std::size_t bytes) { sent_ += {1, static_cast<std::int64_t>(bytes)}; }
  Traffic& sent_;
};

}  // namespace baton::transformer::program
