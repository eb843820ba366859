#pragma once
/// A rank's memory that all ranks share: what others write to it, and its offers.

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "../process.hpp"
#include "ring.hpp"

namespace baton::shm {

/// A message whose bytes its receiver asks for. Both sides change `state` by compare-and-swap.
struct alignas(16) Offer {
  enum Phase : std::uint64_t {
    open,
    wanted,     ///< as parts, which carry `token`
    read,       ///< by the receiver
    refused,    ///< by the receiver, which gave up
    withdrawn,  ///< by the sender
  };
  /// A generation and, in the lowest 8 bits, a phase.
  std::atomic<std::uint64_t> state;
  std::uint32_t token;

  static constexpr std::uint64_t state_of(std::uint64_t generation, Phase phase) {
    return generation << 8U | phase;
  }
  /// From open to `phase`; false: the sender has withdrawn it.
  bool settle(std::uint64_t generation, Phase phase) {
    std::uint64_t expected = state_of(generation, open);
    return state.compare_exchange_strong(expected, state_of(generation, phase),
                                         std::memory_order_acq_rel);
  }
  bool is(std::uint64_t generation, Phase phase) const {
    return state.load(std::memory_order_acquire) == state_of(generation, phase);
  }
};

/// The content of Kind::offer.
struct OfferRecord {
  std::uint64_t address, bytes, generation;
  std::uint32_t slot;
};

inline constexpr int most_ranks = 1024;
/// More than these wait, and with them all later messages to the same rank.
inline constexpr std::size_t offers_per_rank = 16 << 10;

enum class Presence : std::uint32_t { here, failed, left };

/// The beginning of a segment; one ring from each rank follows it.
struct SegmentHead {
  alignas(64) std::atomic<std::uint32_t> bell;  ///< rings; a futex
  alignas(64) std::atomic<std::uint32_t> sleeping;
  alignas(64) std::atomic<Presence> presence;
  std::array<char, 384> failure;                              ///< a sentence
  std::array<std::atomic<std::uint8_t>, most_ranks> arrived;  ///< ranks that have mapped it
  std::array<Offer, offers_per_rank> offers;
};

/// A mapping of this process.
class Segment {
 public:
  Segment() = default;
  /// Makes this rank's segment, of anonymous memory. Throws Error(transport).
  Segment(int rank, int size);
  /// Maps a segment of another process. Throws Error(transport).
  Segment(int rank, int size, int peer, const transport::ProcessId& process, int descriptor);
  Segment(Segment&&) = default;
  Segment& operator=(Segment&&) = default;

  explicit operator bool() const { return memory_ != nullptr; }
  SegmentHead& head() const { return *reinterpret_cast<SegmentHead*>(memory_.get()); }
  /// The ring that `source` writes.
  template <class End>
  End ring(int source) const {
    return End(ring_heads()[source], ring_data(source), ring_bytes_);
  }
  /// The most content of a record.
  std::size_t most_content() const { return ring_bytes_ / 4 - sizeof(Record); }

  /// Wakes the rank if it sleeps, after something that it sees by itself has been written.
  void wake() const {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (head().sleeping.load(std::memory_order_relaxed) != 0) [[unlikely]]
      ring_bell();
  }
  /// Tells the rank of something that it would not see.
  void ring_bell() const;
  /// Waits until the bell has rung more often than `seen`.
  void wait(std::uint32_t seen, std::chrono::microseconds at_most) const;

  /// Of the segment's maker: others open it by this number; -1: closed.
  int descriptor() const { return file_.get(); }
  void close() { file_ = File(); }

 private:
  struct Unmap {
    std::size_t bytes;
    void operator()(std::byte* memory) const;
  };
  class File {
   public:
    explicit File(int descriptor = -1) : descriptor_(descriptor) {}
    File(File&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
    File& operator=(File&& other) noexcept {
      std::swap(descriptor_, other.descriptor_);
      return *this;
    }
    ~File();
    int get() const { return descriptor_; }

   private:
    int descriptor_;
  };

  void map(int rank, const char* whose);
  RingHead* ring_heads() const;
  std::byte* ring_data(int source) const;

  int size_ = 0;
  std::size_t ring_bytes_ = 0;
  File file_;
  std::unique_ptr<std::byte, Unmap> memory_;
};

}  // namespace baton::shm
