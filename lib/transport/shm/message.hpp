#pragma once
/// The content of Message::state, and messages that have come before their receives.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <vector>

#include "baton/transport.hpp"
#include "shared_memory.hpp"

namespace baton::shm {

/// Messages and receives with equal keys match. A context is a group's number.
struct Key {
  std::uint32_t context;
  std::int32_t source;  ///< in the world
  std::int32_t tag;

  bool operator==(const Key&) const = default;
};

struct Reading;

/// One side of a message under way.
struct Entry {
  enum class State : std::uint8_t {
    queued,   ///< a send: the ring is full, or no offer is free
    offered,  ///< a send
    posted,   ///< a receive
    reading,  ///< a receive: see `reading`
    failed,   ///< `bytes` is the system's error, or a `Failure`
    done,     ///< `bytes` were sent
  };
  union {
    Entry* next;       ///< queued, posted
    Reading* reading;  ///< reading, thrown
  };
  std::byte* data;    ///< of a fetch, its Reading; of a send that is given, its Source
  std::size_t bytes;  ///< to send; of a receive, the room
  std::uint32_t context;
  std::int32_t peer;  ///< in the world
  std::int32_t tag;
  std::uint32_t slot;  ///< of the offer
  State state;
  bool fetch;  ///< a receive with a Destination that takes parts
  bool given;  ///< a send with a Source
};
static_assert(sizeof(Entry) <= sizeof(Message::state) && alignof(Entry) <= 16);

inline Entry& entry_in(Message& message) {
  return *std::launder(reinterpret_cast<Entry*>(message.state));
}
inline Key key_of(const Entry& receive) { return {receive.context, receive.peer, receive.tag}; }

/// Entry::bytes of a message that failed without an error of the system's.
enum Failure : std::size_t {
  peer_gave_up = 1U << 30U,
  thrown,  ///< by Destination::take: see Reading::thrown
};

/// A message that came before its receive.
struct alignas(16) Arrival {
  Arrival* next;
  Key key;
  bool offered;
  std::size_t bytes;
  OfferRecord offer;
  /// The bytes of a message that was not offered follow.
  std::byte* content() { return reinterpret_cast<std::byte*>(this + 1); }
};
static_assert(sizeof(Arrival) % 16 == 0);
inline const Key& key_of(const Arrival& arrival) { return arrival.key; }

/// A message that is read, or whose parts come.
struct Reading {
  Entry* entry;  ///< null: its receiver gave it up
  std::int32_t peer;
  OfferRecord offer;
  Destination to;
  std::size_t room;
  std::size_t done;
  std::uint32_t token;
  bool parts = false;  ///< come, or are asked for
  /// Until then the sender may show that it waits; 0: it is read.
  std::chrono::steady_clock::time_point decide_at{};
  std::uint32_t looks = 0;    ///< of the sender, at the beginning
  std::exception_ptr thrown;  ///< by Destination::take
};

/// Queues by key, in order of arrival; entries are linked by `next`.
template <class T>
class Queues {
 public:
  void append(T& entry) {
    Queue& queue = queue_of(key_of(entry));
    entry.next = nullptr;
    (queue.last == nullptr ? queue.first : queue.last->next) = &entry;
    queue.last = &entry;
  }
  /// Before all others of its key.
  void prepend(T& entry) {
    Queue& queue = queue_of(key_of(entry));
    entry.next = queue.first;
    queue.first = &entry;
    if (queue.last == nullptr) queue.last = &entry;
  }
  /// Takes the first with this key; null if there is none.
  T* take(const Key& key) {
    Queue& queue = queue_of(key);
    for (T *before = nullptr, *e = queue.first; e != nullptr; before = e, e = e->next)
      if (key_of(*e) == key) return unlink(queue, before, e);
    return nullptr;
  }
  /// The first with this key; null if there is none.
  T* find(const Key& key) {
    for (T* e = queue_of(key).first; e != nullptr; e = e->next)
      if (key_of(*e) == key) return e;
    return nullptr;
  }
  void remove(T& entry) {
    Queue& queue = queue_of(key_of(entry));
    T* before = nullptr;
    for (T* e = queue.first; e != &entry; e = e->next) before = e;
    unlink(queue, before, &entry);
  }
  /// Takes all for which `which` holds, and gives them to `then`.
  template <class Which, class Then>
  void take_all(const Which& which, const Then& then) {
    for (Queue& queue : queues_)
      for (T *before = nullptr, *e = queue.first, *next = nullptr; e != nullptr; e = next) {
        next = e->next;
        if (which(*e)) {
          then(unlink(queue, before, e));
        } else {
          before = e;
        }
      }
  }

 private:
  struct Queue {
    T* first = nullptr;
    T* last = nullptr;
  };
  static constexpr unsigned bits = 8;

  Queue& queue_of(const Key& key) {
    const std::uint64_t mixed = (static_cast<std::uint64_t>(key.context) << 40U) ^
                                (static_cast<std::uint64_t>(key.source) << 24U) ^
                                static_cast<std::uint32_t>(key.tag);
    return queues_[static_cast<std::size_t>(mixed * 0x9e3779b97f4a7c15U >> (64U - bits))];
  }
  static T* unlink(Queue& queue, T* before, T* e) {
    (before == nullptr ? queue.first : before->next) = e->next;
    if (queue.last == e) queue.last = before;
    return e;
  }

  std::vector<Queue> queues_ = std::vector<Queue>(1U << bits);
};

}  // namespace baton::shm
