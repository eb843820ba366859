#pragma once
/// A ring of records from one process to another, in memory that both share. No lock: a writer that
/// is killed leaves whole records only.

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace baton::shm {

enum class Kind : std::uint16_t {
  skip,    ///< the rest of the ring is empty
  whole,   ///< a message with its bytes
  offer,   ///< a message whose bytes the receiver asks for: an OfferRecord
  part,    ///< bytes of a message that was asked for
  no_more  ///< its sender gave it up
};

inline constexpr std::size_t granule = 64;

/// The head of a record, in granules of 64 bytes; its content follows. A record has come once
/// `size` is not 0. The granule behind the last record has size 0.
struct alignas(16) Record {
  std::atomic<std::uint32_t> size;  ///< granules; from the 16th bit on, the kind
  std::uint32_t context;            ///< of a part: the receiver's token
  std::int32_t tag;
  std::uint32_t bytes;  ///< of the content

  Kind kind() const { return static_cast<Kind>(size.load(std::memory_order_relaxed) >> 16U); }
  std::byte* content() { return reinterpret_cast<std::byte*>(this + 1); }
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

/// Granules of a record with this much content.
constexpr std::uint32_t granules(std::size_t bytes) {
  return static_cast<std::uint32_t>((sizeof(Record) + bytes + granule - 1) / granule);
}

/// Shared by both sides of a ring.
struct RingHead {
  alignas(64) std::atomic<std::uint64_t> taken;  ///< granules that the receiver has done with
  alignas(64) std::atomic<std::uint32_t> full;   ///< whether the sender waits for room
};

/// Both sides: where the ring lies, and how far this side is.
class RingEnd {
 public:
  RingEnd() = default;
  /// `bytes`: a power of two.
  RingEnd(RingHead& head, std::byte* data, std::size_t bytes)
      : head_(&head), data_(data), capacity_(bytes / granule) {}

 protected:
  Record& at(std::uint64_t position) const {
    return *reinterpret_cast<Record*>(data_ + (position & (capacity_ - 1)) * granule);
  }
  /// Granules from there to the end of the memory.
  std::uint64_t rest(std::uint64_t position) const {
    return capacity_ - (position & (capacity_ - 1));
  }

  RingHead* head_ = nullptr;
  std::byte* data_ = nullptr;
  std::uint64_t capacity_ = 0;
  std::uint64_t next_ = 0;
};

class RingWriter : public RingEnd {
 public:
  using RingEnd::RingEnd;

  /// Room for a record with this much content, a quarter of the ring at most; null: none now.
  Record* reserve(std::size_t bytes) {
    const std::uint32_t needed = granules(bytes);
    if (needed > rest(next_)) {
      const auto skipped = static_cast<std::uint32_t>(rest(next_));
      if (!fits(skipped + needed)) return nullptr;
      publish(at(next_), skipped, Kind::skip);
    } else if (!fits(needed)) {
      return nullptr;
    }
    return &at(next_);
  }
  /// Shows the record of reserve() to the receiver.
  void publish(Record& record, Kind kind) { publish(record, granules(record.bytes), kind); }
  /// Tells the receiver to ring once it has made room. The caller looks for room once more.
  void await_room() {
    head_->full.store(1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }

 private:
  /// With a granule behind it.
  bool fits(std::uint32_t needed) {
    if (next_ + needed + 1 - taken_ <= capacity_) return true;
    taken_ = head_->taken.load(std::memory_order_acquire);
    return next_ + needed + 1 - taken_ <= capacity_;
  }
  void publish(Record& record, std::uint32_t size, Kind kind) {
    next_ += size;
    at(next_).size.store(0, std::memory_order_relaxed);
    record.size.store(size | static_cast<std::uint32_t>(kind) << 16U, std::memory_order_release);
  }

  std::uint64_t taken_ = 0;
};

class RingReader : public RingEnd {
 public:
  using RingEnd::RingEnd;

  /// The record that came first of those not yet popped; null: none.
  Record* front() {
    for (;;) {
      Record& record = at(next_);
      if (record.size.load(std::memory_order_acquire) == 0) return nullptr;
      if (record.kind() != Kind::skip) [[likely]]
        return &record;
      pop(record);
    }
  }
  void pop(const Record& record) { next_ += record.size.load(std::memory_order_relaxed) & 0xffffU; }
  /// Gives the room of popped records to the sender; true: it waits for that.
  bool give_back() {
    head_->taken.store(next_, std::memory_order_release);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (head_->full.load(std::memory_order_relaxed) == 0) [[likely]]
      return false;
    head_->full.store(0, std::memory_order_relaxed);
    return true;
  }
};

}  // namespace baton::shm
