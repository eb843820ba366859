#pragma once
/// A base for transports that add something to another one: a count, a checksum, a fault.

#include <memory>
#include <utility>

#include "baton/transport.hpp"

#pragma GCC visibility push(default)
namespace baton {

/// Hands every call to another transport, and every part of it to wrapped(). It has no blocking
/// calls and no single copy: a class that overrides isend() sees every message.
class ForwardingTransport : public Transport {
 public:
  /// Of the same ranks as `inner`, which must not be null.
  explicit ForwardingTransport(std::unique_ptr<Transport> inner) : inner_(std::move(inner)) {}

  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  Capabilities capabilities() const override { return inner_->capabilities(); }
  void isend(int peer, int tag, const void* data, std::size_t bytes, Message& message) override {
    inner_->isend(peer, tag, data, bytes, message);
  }
  void irecv(int peer, int tag, void* data, std::size_t bytes, Message& message) override {
    inner_->irecv(peer, tag, data, bytes, message);
  }
  bool test(Message& message, std::size_t& bytes) override { return inner_->test(message, bytes); }
  void cancel(Message& message) override { inner_->cancel(message); }
  void progress() override { inner_->progress(); }
  int probe(int tag) override { return inner_->probe(tag); }
  void idle(std::chrono::microseconds at_most) override { inner_->idle(at_most); }
  std::unique_ptr<Transport> split(int color, int key) override {
    auto part = inner_->split(color, key);
    return part ? wrapped(std::move(part)) : nullptr;
  }
  std::unique_ptr<Transport> subgroup(const std::vector<int>& ranks, int number) override {
    return wrapped(inner_->subgroup(ranks, number));
  }
  void expect_strays() override { inner_->expect_strays(); }
  bool alive() const override { return inner_->alive(); }

 protected:
  /// The same addition to a part of the transport.
  virtual std::unique_ptr<Transport> wrapped(std::unique_ptr<Transport> part) = 0;
  /// The transport to which calls go.
  Transport& inner() const { return *inner_; }
  /// Destroys the inner transport, before the members of a derived class.
  void close() { inner_.reset(); }

 private:
  std::unique_ptr<Transport> inner_;
};

}  // namespace baton
#pragma GCC visibility pop
