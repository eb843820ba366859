#pragma once
/// A transport that counts what is sent through it, and through those that are split from it.

#include <memory>

#include "baton/communicator.hpp"
#include "baton/transport.hpp"

namespace support {

class CountingTransport final : public baton::Transport, public baton::BlockingCalls {
 public:
  /// `sent` must be nobody else's, and outlive the transport.
  CountingTransport(std::unique_ptr<baton::Transport> counted, baton::Traffic& sent)
      : counted_(std::move(counted)), sent_(sent) {}

  int rank() const override { return counted_->rank(); }
  int size() const override { return counted_->size(); }
  baton::Capabilities capabilities() const override { return counted_->capabilities(); }
  bool alive() const override { return counted_->alive(); }
  void isend(int peer, int tag, const void* data, std::size_t bytes,
             baton::Message& message) override {
    count(bytes);
    counted_->isend(peer, tag, data, bytes, message);
  }
  void irecv(int peer, int tag, void* data, std::size_t bytes, baton::Message& message) override {
    counted_->irecv(peer, tag, data, bytes, message);
  }
  baton::BlockingCalls* blocking() override { return counted_->blocking() ? this : nullptr; }
  std::size_t recv(const baton::IncomingMessage& in) override {
    return counted_->blocking()->recv(in);
  }
  void send(const baton::OutgoingMessage& out) override {
    count(out.bytes);
    counted_->blocking()->send(out);
  }
  std::size_t send_recv(const baton::OutgoingMessage& out,
                        const baton::IncomingMessage& in) override {
    count(out.bytes);
    return counted_->blocking()->send_recv(out, in);
  }
  bool test(baton::Message& message, std::size_t& bytes) override {
    return counted_->test(message, bytes);
  }
  void cancel(baton::Message& message) override { counted_->cancel(message); }
  void progress() override { counted_->progress(); }
  int probe(int tag) override { return counted_->probe(tag); }
  void idle(std::chrono::microseconds at_most) override { counted_->idle(at_most); }
  std::unique_ptr<Transport> split(int color, int key) override {
    auto part = counted_->split(color, key);
    if (!part) return nullptr;
    return std::make_unique<CountingTransport>(std::move(part), sent_);
  }

 private:
  void count(std::size_t bytes) { sent_ += {1, static_cast<std::int64_t>(bytes)}; }
  std::unique_ptr<baton::Transport> counted_;
  baton::Traffic& sent_;
};

}  // namespace support
