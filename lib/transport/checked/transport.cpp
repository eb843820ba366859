#include <fmt/core.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "../../base/block_pool.hpp"
#include "../../base/raise.hpp"
#include "baton/checked.hpp"
#include "baton/forwarding.hpp"

namespace baton {
namespace {

using Checksum = std::uint64_t;

/// Any change within one word changes it.
Checksum mixed(Checksum sum, std::uint64_t word) {
  sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
  return sum ^ sum >> 32;
}

Checksum checksum(const std::byte* data, std::size_t bytes, int source, int tag) {
  Checksum sum =
      mixed(mixed(bytes, static_cast<std::uint64_t>(source)), static_cast<std::uint64_t>(tag));
  for (std::uint64_t word; bytes >= sizeof word; data += sizeof word, bytes -= sizeof word) {
    std::memcpy(&word, data, sizeof word);
    sum = mixed(sum, word);
  }
  std::uint64_t rest = 0;
  if (bytes > 0) std::memcpy(&rest, data, bytes);
  return mixed(sum, rest);
}

/// A message and its checksum in a buffer.
struct Transfer {
  Message message{};
  bool receives = false;
  int peer = 0, tag = 0;
  void* data = nullptr;   ///< of a receive
  std::size_t bytes = 0;  ///< of a receive: room
  std::byte* buffer = nullptr;

  std::size_t in_buffer() const { return bytes + sizeof(Checksum); }
};

class CheckedTransport final : public ForwardingTransport {
 public:
  explicit CheckedTransport(std::unique_ptr<Transport> inner)
      : ForwardingTransport(std::move(inner)), cancels_(this->inner().capabilities().cancels) {}
  ~CheckedTransport() override { close(); }  // from now on no buffer is used

  Capabilities capabilities() const override {
    Capabilities can = inner().capabilities();
    can.device_memory = false;
    return can;
  }

  void isend(int peer, int tag, const void* data, std::size_t bytes, Message& message) override {
    Transfer& send = start(message, {.peer = peer, .tag = tag, .bytes = bytes});
    if (bytes > 0) std::memcpy(send.buffer, data, bytes);
    const Checksum sum = checksum(send.buffer, bytes, rank(), tag);
    std::memcpy(send.buffer + bytes, &sum, sizeof sum);
    released_if_thrown(
        message, [&] { inner().isend(peer, tag, send.buffer, send.in_buffer(), send.message); });
  }

  void irecv(int peer, int tag, void* data, std::size_t bytes, Message& message) override {
    Transfer& recv =
        start(message, {.receives = true, .peer = peer, .tag = tag, .data = data, .bytes = bytes});
    released_if_thrown(
        message, [&] { inner().irecv(peer, tag, recv.buffer, recv.in_buffer(), recv.message); });
  }

  bool test(Message& message, std::size_t& bytes) override {
    Transfer& transfer = *transfer_in(message);
    bool done = false;
    released_if_thrown(message, [&] {
      std::size_t found = 0;
      done = inner().test(transfer.message, found);
      if (done) bytes = transfer.receives ? unpack(transfer, found) : transfer.bytes;
    });
    if (done) release(message);
    return done;
  }

  void cancel(Message& message) override {
    Transfer* const transfer = transfer_in(message);
    if (!transfer) return;  // test() has thrown
    inner().cancel(transfer->message);
    if (!cancels_) transfer->buffer = nullptr;  // lost: the message may still come
    release(message);
  }

 private:
  std::unique_ptr<Transport> wrapped(std::unique_ptr<Transport> part) override {
    return checked_transport(std::move(part));
  }

  static Transfer*& transfer_in(Message& message) {
    return *std::launder(reinterpret_cast<Transfer**>(message.state));
  }

  Transfer& start(Message& message, const Transfer& as) {
    if (idle_.empty()) {
      all_.push_back(std::make_unique<Transfer>());
      idle_.reserve(all_.size());
      idle_.push_back(all_.back().get());
    }
    Transfer& transfer = *idle_.back();
    transfer = as;
    transfer.buffer = pool_.take(transfer.in_buffer());
    idle_.pop_back();
    new (message.state) Transfer*(&transfer);
    return transfer;
  }

  void release(Message& message) {
    Transfer& transfer = *std::exchange(transfer_in(message), nullptr);
    pool_.give(transfer.buffer, transfer.in_buffer());
    idle_.push_back(&transfer);
  }

  template <class Body>
  void released_if_thrown(Message& message, const Body& body) {
    try {
      body();
    } catch (...) {
      release(message);
      throw;
    }
  }

  /// The length that was sent, after the check. A message longer than the room has lost its
  /// checksum; the caller sees that it does not fit.
  std::size_t unpack(const Transfer& recv, std::size_t found) const {
    const auto refuse = [&](const std::string& difference) {
      base::raise(ErrorCode::transport,
                  fmt::format("a message from rank {} with tag {} arrived damaged: {}", recv.peer,
                              recv.tag, difference),
                  {.rank = rank(), .peer = recv.peer});
    };
    if (found < sizeof(Checksum))
      refuse(fmt::format("expected a checksum of {} bytes, found a message of {}", sizeof(Checksum),
                         found));
    const std::size_t bytes = found - sizeof(Checksum);
    if (bytes > recv.bytes) {
      if (recv.bytes > 0) std::memcpy(recv.data, recv.buffer, recv.bytes);
      return bytes;
    }
    const Checksum expected = checksum(recv.buffer, bytes, recv.peer, recv.tag);
    Checksum sent = 0;
    std::memcpy(&sent, recv.buffer + bytes, sizeof sent);
    if (sent != expected)
      refuse(fmt::format("expected checksum {:016x} of its {} bytes, found {:016x}", sent, bytes,
                         expected));
    if (bytes > 0) std::memcpy(recv.data, recv.buffer, bytes);
    return bytes;
  }

  const bool cancels_;
  base::BlockPool pool_;
  std::vector<std::unique_ptr<Transfer>> all_;
  std::vector<Transfer*> idle_;
};

}  // namespace

std::unique_ptr<Transport> checked_transport(std::unique_ptr<Transport> inner) {
  if (!inner) base::refuse("expected a transport, found null");
  return std::make_unique<CheckedTransport>(std::move(inner));
}

}  // namespace baton
