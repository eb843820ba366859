#pragma once
/// A transport that counts what is sent through it, and through those that are split from it.

#include <memory>
#include <utility>

#include "baton/communicator.hpp"
#include "baton/transport.hpp"

namespace baton::transformer::program {

/// Hands everything to another transport.
class CountedTransport final : public Transport, public BlockingCalls, public SingleCopy {
 public:
  /// `sent` must be this rank's, and outlive the transport.
  CountedTransport(std::unique_ptr<Transport> counted, Traffic& sent)
      : counted_(std::move(counted)), sent_(sent) {}

  int rank() const override { return counted_->rank(); }
  int size() const override { return counted_->size(); }
  Capabilities capabilities() const override { return counted_->capabilities(); }
  bool alive() const override { return counted_->alive(); }
  void isend(int peer, int tag, const void* data, std::size_t bytes, Message& message) override {
    count(bytes);
    counted_->isend(peer, tag, data, bytes, message);
  }
  void irecv(int peer, int tag, void* data, std::size_t bytes, Message& message) override {
    counted_->irecv(peer, tag, data, bytes, message);
  }
  bool test(Message& message, std::size_t& bytes) override {
    return counted_->test(message, bytes);
  }
  void cancel(Message& message) override { counted_->cancel(message); }
  void progress() override { counted_->progress(); }
  int probe(int tag) override { return counted_->probe(tag); }
  void idle(std::chrono::microseconds at_most) override { counted_->idle(at_most); }
  std::unique_ptr<Transport> split(int color, int key) override {
    auto part = counted_->split(color, key);
    if (!part) return nullptr;
    return std::make_unique<CountedTransport>(std::move(part), sent_);
  }

  BlockingCalls* blocking() override { return counted_->blocking() ? this : nullptr; }
  void send(const OutgoingMessage& out) override {
    count(out.bytes);
    counted_->blocking()->send(out);
  }
  std::size_t recv(const IncomingMessage& in) override { return counted_->blocking()->recv(in); }
  std::size_t send_recv(const OutgoingMessage& out, const IncomingMessage& in) override {
    count(out.bytes);
    return counted_->blocking()->send_recv(out, in);
  }

  SingleCopy* single_copy() override { return counted_->single_copy() ? this : nullptr; }
  std::size_t least_bytes() const override { return counted_->single_copy()->least_bytes(); }
  bool reads(int peer) const override { return counted_->single_copy()->reads(peer); }
  void offer(int peer, int tag, const void* data, std::size_t bytes, Message& message) override {
    count(bytes);
    counted_->single_copy()->offer(peer, tag, data, bytes, message);
  }
  void fetch(int peer, int tag, const Destination& to, std::size_t bytes,
             Message& message) override {
    counted_->single_copy()->fetch(peer, tag, to, bytes, message);
  }

 private:
  void count(std::size_t bytes) { sent_ += {1, static_cast<std::int64_t>(bytes)}; }
  std::unique_ptr<Transport> counted_;
  Traffic& sent_;
};

}  // namespace baton::transformer::program
