#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace baton::simulating {

/// Kinds of events. Events of one instant run in this order, then by rank, then by step.
enum class EventKind : std::uint8_t {
  free_again,  ///< a rank's processor
  tell,        ///< an announcement or its answer goes onto a wire
  inject,      ///< a message goes onto its host's wire
  head,        ///< its first byte reaches the receiver's end of the wire
  delivered,   ///< it has arrived, as far as the processor must wait for it
  announced,   ///< a rendezvous message: its receiver knows of it
  answered,    ///< its sender knows that the receiver waits
  sent,        ///< all of it has left
  panel,       ///< a computation lets messages progress
  computed,    ///< a computation ends
  given_back,  ///< a rank that computes needs no processor from now on
};

struct Event {
  std::int64_t time;
  std::uint64_t what;  ///< kind, rank, step
  /// For `inject` and `head`: the earliest arrival of the last byte. For `tell`: announced or
  /// answered. For `panel` and `computed`: Computing::stretch.
  std::int64_t moment;

  Event(std::int64_t time, EventKind kind, int rank, std::uint32_t step = 0,
        std::int64_t moment = 0)
      : time(time),
        what(static_cast<std::uint64_t>(kind) << 60 | static_cast<std::uint64_t>(rank) << 28 |
             step),
        moment(moment) {}
  EventKind kind() const { return static_cast<EventKind>(what >> 60); }
  int rank() const { return static_cast<int>(what >> 28 & 0xffff'ffff); }
  std::uint32_t step() const { return static_cast<std::uint32_t>(what & 0xfff'ffff); }
  bool operator<(const Event& other) const {
    if (time != other.time) return time < other.time;
    return what != other.what ? what < other.what : moment < other.moment;
  }
};

/// The earliest event first: a heap with four children per node, which are adjacent in memory.
class EventQueue {
 public:
  bool empty() const { return heap_.empty(); }
  const Event& next() const { return heap_.front(); }
  void push(const Event& event) {
    std::size_t at = heap_.size();
    heap_.push_back(event);
    while (at > 0) {
      const std::size_t parent = (at - 1) / 4;
      if (!(event < heap_[parent])) break;
      heap_[at] = heap_[parent];
      at = parent;
    }
    heap_[at] = event;
  }
  Event pop() {
    const Event top = heap_.front();
    const Event last = heap_.back();
    heap_.pop_back();
    const std::size_t size = heap_.size();
    if (size == 0) return top;
    std::size_t at = 0;
    for (;;) {
      const std::size_t first = 4 * at + 1;
      if (first >= size) break;
      std::size_t least = first;
      const std::size_t end = first + 4 < size ? first + 4 : size;
      for (std::size_t child = first + 1; child < end; ++child) {
        if (heap_[child] < heap_[least]) least = child;
      }
      if (!(heap_[least] < last)) break;
      heap_[at] = heap_[least];
      at = least;
    }
    heap_[at] = last;
    return top;
  }

 private:
  std::vector<Event> heap_;
};

}  // namespace baton::simulating
