#pragma once
/// The place where the two sides of a message to one rank meet.

#include <array>
#include <cstddef>
#include <mutex>

#include "message.hpp"

namespace baton::threads {

/// Waiting sends and receives of one rank, in order of posting for each (source, tag). All
/// functions but lock() need the lock.
///
/// Invariant without delays: of one (source, tag), either sends or receives wait, never both, since
/// the second side takes the first.
class alignas(64) Mailbox {
 public:
  struct Pair {
    Entry* send = nullptr;
    Entry* recv = nullptr;
  };

  std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }

  void append(Entry& entry);
  /// Takes the receive, or the send, that has waited longest; null if none waits.
  Entry* take_recv(int source, int tag) { return take(source, tag, true); }
  Entry* take_send(int source, int tag) { return take(source, tag, false); }
  /// Takes `entry`; false if it no longer waits here.
  bool remove(Entry& entry);
  /// Takes the entries of a leaving rank: its sends, and its receives if the mailbox is its own.
  void remove_all(int source, bool receives);

  /// With delays: brings every waiting send nearer to its arrival.
  void age();
  /// With delays: takes an arrived send and the receive for it.
  Pair take_pair();

 private:
  struct Queue {
    Entry* first = nullptr;
    Entry* last = nullptr;
  };
  static constexpr int queue_bits = 6;

  Queue& queue_of(int source, int tag);
  Entry* take(int source, int tag, bool recv);
  static void unlink(Queue& queue, Entry* before, Entry& entry);

  std::mutex mutex_;
  std::array<Queue, 1 << queue_bits> queues_;  // by hash of (source, tag)
};

}  // namespace baton::threads
