#pragma once
/// The content of Message::state, and the buffers of small messages.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "baton/transport.hpp"

namespace baton::threads {

enum class Side : std::uint8_t { send, buffered_send, recv };
enum class State : std::uint8_t { waiting, copying, done };

/// One side of a message that waits for the other. It lies in its owner's Message or, if its bytes
/// are buffered, at the head of a Buffer.
///
/// A rank that takes an entry from a mailbox sets it to `copying` under the mailbox's lock, copies,
/// and then sets it to `done`. From then on it belongs to its owner alone.
struct Entry {
  Entry* next = nullptr;
  std::byte* data = nullptr;
  std::size_t bytes = 0;  ///< to send; of a receive, the room and, when done, the length sent
  int source = 0;
  int destination = 0;
  int tag = 0;
  std::atomic<State> state{State::waiting};
  Side side = Side::recv;
  std::uint8_t arrival = 0;  ///< visits to the mailbox until this send may match (delays)
  std::uint8_t report = 0;   ///< tests until completion is reported (delays)
};
static_assert(sizeof(Entry) <= sizeof(Message::state) && alignof(Entry) <= 16);

inline Entry& entry_in(Message& message) {
  return *std::launder(reinterpret_cast<Entry*>(message.state));
}

class BufferPool;

/// A buffered small message; its sender has gone on. Its bytes follow it.
struct alignas(16) Buffer {
  Entry entry;  // first, so that a buffered send's entry has its buffer's address
  BufferPool* pool;

  std::byte* bytes() { return reinterpret_cast<std::byte*>(this + 1); }
};

/// A fixed number of buffers of one sender, taken from the system at once, so that sending never
/// allocates. The system gives memory when it is touched.
class BufferPool {
 public:
  explicit BufferPool(std::size_t bytes);
  /// A free buffer; null if all are in use. For the sender only.
  Buffer* take();
  /// Gives a buffer back. For any thread.
  void give(Buffer& buffer);

 private:
  static constexpr std::size_t count = 64;
  std::size_t stride_;  // bytes from buffer to buffer
  std::unique_ptr<std::byte[]> storage_;
  std::size_t used_ = 0;  // buffers ever taken
  Entry* free_ = nullptr;
  std::atomic<Entry*> returned_{nullptr};
};

}  // namespace baton::threads
