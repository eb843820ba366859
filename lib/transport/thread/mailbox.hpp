#pragma once
/// Where the two sides of the messages to one rank find each other.

#include <array>
#include <cstddef>
#include <mutex>

#include "message.hpp"

namespace baton::threads {

/// The sends and receives to one rank that wait for their other side, in the order of their posting
/// for each (source, tag). Everything but lock() is called with the lock held.
///
/// Invariant without delays: of one (source, tag), either sends wait or receives, never both, since
/// whoever comes second takes the first.
class alignas(64) Mailbox {
 public:
  struct Pair {
    Entry* send = nullptr;
    Entry* recv = nullptr;
  };

  std::unique_lock<std::mutex> lock() { return std::unique_lock(mutex_); }

  void append(Entry& entry);
  /// Takes out the receive, or the send, that has waited longest; null if none waits.
  Entry* take_recv(int source, int tag) { return take(source, tag, true); }
  Entry* take_send(int source, int tag) { return take(source, tag, false); }
  /// Takes out `entry`; false if it does not wait here any more.
  bool remove(Entry& entry);
  /// Takes out what a rank that leaves has left: its sends, and its receives if the box is its own.
  void remove_all(int source, bool receives);

  /// Delays: brings every send that waits nearer to its arrival.
  void age();
  /// Delays: takes out a send that has arrived and the receive for it.
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
