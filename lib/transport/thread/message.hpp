#pragma once
/// What lies in Message::state, and the buffers of small messages.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "baton/transport.hpp"

namespace baton::threads {

enum class Side : std::uint8_t { send, buffered_send, recv };
enum class State : std::uint8_t { waiting, copying, done };

/// One side of a message that waits for the other. It lies in the Message of its owner or, if its
/// bytes were buffered, at the head of a Buffer.
///
/// Whoever takes an entry out of a mailbox makes it `copying` under the mailbox's lock, copies, and
/// then makes it `done`: from there on it belongs to its owner alone.
struct Entry {
  Entry* next = nullptr;
  std::byte* data = nullptr;
  std::size_t bytes = 0;  ///< to send, or room; of a receive that is done: what was sent
  int source = 0;
  int destination = 0;
  int tag = 0;
  std::atomic<State> state{State::waiting};
  Side side = Side::recv;
  std::uint8_t arrival = 0;  ///< visits to the mailbox until this send may be matched (delays)
  std::uint8_t report = 0;   ///< tests until completion is reported (delays)
};
static_assert(sizeof(Entry) <= sizeof(Message::state) && alignof(Entry) <= 16);

inline Entry& entry_in(Message& message) {
  return *std::launder(reinterpret_cast<Entry*>(message.state));
}

class BufferPool;

/// A small message whose sender has gone on. Its bytes follow it.
struct alignas(16) Buffer {
  Entry entry;  // first, so that an entry that is a buffered send is its buffer
  BufferPool* pool;

  std::byte* bytes() { return reinterpret_cast<std::byte*>(this + 1); }
};

/// The buffers of one sender: a fixed number, taken from the system at once (which gives memory
/// only when it is touched), so that sending never allocates.
class BufferPool {
 public:
  explicit BufferPool(std::size_t bytes);
  /// A free buffer, or null if all are in use. Only the sender takes.
  Buffer* take();
  /// Gives a buffer back. Any thread.
  void give(Buffer& buffer);

 private:
  static constexpr std::size_t count = 64;
  std::size_t stride_;  // bytes from buffer to buffer
  std::unique_ptr<std::byte[]> storage_;
  std::size_t used_ = 0;  // buffers that have ever been taken
  Entry* free_ = nullptr;
  std::atomic<Entry*> returned_{nullptr};
};

}  // namespace baton::threads
