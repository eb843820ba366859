#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>

#include "../../base/block_pool.hpp"
#include "baton/device.hpp"
#include "baton/transport.hpp"

namespace baton::staged {

/// Segments of the host's memory that something may still use after their message was given up. All
/// groups of a transport share it: a message may go on until the last of them is destroyed.
class Abandoned {
 public:
  explicit Abandoned(std::shared_ptr<Device> device)
      : device_(std::move(device)), buffers_(base::BlockPool::Memory::staging, device_.get()) {}
  /// Keeps a block that another pool's take(bytes) gave.
  void keep(std::byte* buffer, std::size_t bytes) {
    const std::lock_guard lock(mutex_);  // groups may be used by different threads
    buffers_.give(buffer, bytes);
  }

 private:
  std::shared_ptr<Device> device_;
  std::mutex mutex_;
  base::BlockPool buffers_;  // of which none is taken
};

/// Shared by the messages of one transport.
struct Route {
  Transport& host;
  bool cancels;  ///< the host's Capabilities::cancels
  Device& device;
  base::BlockPool& pool;
  Abandoned& abandoned;
  Stream to_host, to_device;
  std::size_t segment;
};

/// A message in segments; the last one is shorter than the others. Segments begin and end in order,
/// at most two are under way.
class Transfer {
 public:
  explicit Transfer(const Route& route);

  void begin(bool sends, int peer, int tag, std::byte* data, std::size_t bytes);
  /// Advances without waiting. `first`: all earlier messages of this peer and tag have posted their
  /// last segment. Throws if the message failed, now or in fail(); then cancel() must follow.
  void advance(bool first);
  /// Abandons the message.
  void cancel();
  /// Abandons it, too; the next advance() throws this error.
  void fail(const std::exception_ptr& error);

  bool same_order(const Transfer& other) const {
    return sends_ == other.sends_ && peer_ == other.peer_ && tag_ == other.tag_;
  }
  /// Whether it receives from this peer with this tag, and may have more segments to post.
  bool takes(int peer, int tag) const {
    return !sends_ && peer_ == peer && tag_ == tag && !posted_all_;
  }
  /// Whether its last segment is posted.
  bool posted() const { return posted_all_; }
  bool done() const { return posted_all_ && ended_ == begun_; }
  bool failed() const { return failed_ != nullptr; }
  /// Whether a copy to or from the device is under way.
  bool copying() const;
  std::size_t bytes() const { return moved_; }  ///< bytes sent, once complete

  Transfer* next = nullptr;  ///< in a list of the transport's

 private:
  enum class Phase : std::uint8_t { free, leaving, ready, under_way, lost, arriving };
  struct Slot {
    Phase phase = Phase::free;
    std::byte* buffer = nullptr;  // null: uses the host's data directly
    std::size_t offset = 0, length = 0;
    Message message;
    std::unique_ptr<Marker> copied;
  };
  Slot& slot(std::size_t segment) { return slots_[segment % slots_.size()]; }
  void advance_send(bool first);
  void advance_recv(bool first);
  void copy(Slot& slot, std::byte* to, std::byte* from, std::size_t bytes, Stream stream);
  bool test(Slot& slot, std::size_t& bytes);
  void release(Slot& slot);

  const Route& route_;
  bool sends_ = false, on_device_ = false, posted_all_ = true;
  int peer_ = 0, tag_ = 0;
  std::byte* data_ = nullptr;
  std::size_t room_ = 0;                            // bytes to send, or the most to receive
  std::size_t moved_ = 0;                           // bytes begun to send, or received
  std::size_t begun_ = 0, posted_ = 0, ended_ = 0;  // segments
  std::array<Slot, 2> slots_;
  std::exception_ptr failed_;
};

}  // namespace baton::staged
