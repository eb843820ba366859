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

/// A message whose bytes its receiver asks for. Both sides change it by compare-and-swap.
struct Offer {
  enum Phase : std::uint64_t {
    open,
    wanted,     ///< as parts, which carry `token`
    read,       ///< by the receiver
    refused,    ///< by the receiver, which gave up
    withdrawn,  ///< by the sender
  };
  /// From the lowest bit: the phase, 8 bits; where it is wanted, the receiver's token, 24; the
  /// generation, 32, which tells uses of the same offer apart. Generation 0 is never used.
  std::atomic<std::uint64_t> state;

  static constexpr std::uint64_t state_of(std::uint32_t generation, Phase phase,
                                          std::uint32_t token = 0) {
    return std::uint64_t{generation} << 32U | std::uint64_t{token} << 8U | phase;
  }
  /// From open to `phase`; false: the sender has withdrawn it.
  bool settle(std::uint32_t generation, Phase phase, std::uint32_t token = 0) {
    std::uint64_t expected = state_of(generation, open);
    return state.compare_exchange_strong(expected, state_of(generation, phase, token),
                                         std::memory_order_acq_rel);
  }
  bool is(std::uint32_t generation, Phase phase) const {
    constexpr std::uint64_t token_bits = std::uint64_t{most_tokens - 1} << 8U;
    return (state.load(std::memory_order_acquire) & ~token_bits) == state_of(generation, phase);
  }
  /// Of a wanted one.
  std::uint32_t token() const {
    return static_cast<std::uint32_t>(state.load(std::memory_order_relaxed) >> 8U) &
           (most_tokens - 1);
  }
  static constexpr std::uint32_t most_tokens = 1U << 24U;
};

/// The content of Kind::offer.
struct OfferRecord {
  std::uint64_t address;  ///< 0: it comes in parts only
  std::uint64_t bytes;
  std::uint32_t generation, slot;
};

inline constexpr int most_ranks = 1024;
/// More than these wait, and with them all later messages to the same rank.
inline constexpr std::size_t offers_per_rank = 16 << 10;

enum class Presence : std::uint32_t { here, failed, left };
/// What a rank says of the memory of all ranks once it has mapped it.
enum class Arrived : std::uint8_t { none, maps, reads, failed };
/// Tells a file from all others.
struct FileId {
  std::uint64_t device, node;

  bool operator==(const FileId&) const = default;
};

/// The beginning of it; one ring from each rank follows it.
struct SharedHead {
  alignas(64) std::atomic<std::uint32_t> bell;  ///< rings; a futex
  alignas(64) std::atomic<std::uint32_t> sleeping;
  alignas(64) std::atomic<std::uint32_t> looks;  ///< at all its messages: it waits, if they grow
  alignas(64) std::atomic<Presence> presence;
  std::array<char, 384> failure;                         ///< a sentence
  std::array<std::atomic<Arrived>, most_ranks> arrived;  ///< by rank
  std::array<Offer, offers_per_rank> offers;
  /// A bit for each offer: it has become wanted, and this rank has not seen that yet.
  std::array<std::atomic<std::uint64_t>, offers_per_rank / 64> wanted;
};

/// A mapping of this process.
class SharedMemory {
 public:
  SharedMemory() = default;
  /// Makes this rank's, an anonymous file. Throws Error(transport).
  SharedMemory(int rank, int size);
  /// Maps the memory of another process. Throws Error(transport).
  SharedMemory(int rank, int size, int peer, const transport::ProcessId& process, int descriptor,
               const FileId& id);
  SharedMemory(SharedMemory&&) = default;
  SharedMemory& operator=(SharedMemory&&) = default;

  explicit operator bool() const { return memory_ != nullptr; }
  SharedHead& head() const { return *reinterpret_cast<SharedHead*>(memory_.get()); }
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

  /// Of its maker: others open it by this number; -1: closed.
  int descriptor() const { return file_.get(); }
  FileId id() const;
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

  void map(int rank, int whose);
  RingHead* ring_heads() const;
  std::byte* ring_data(int source) const;

  int size_ = 0;
  std::size_t ring_bytes_ = 0;
  File file_;
  std::unique_ptr<std::byte, Unmap> memory_;
};

}  // namespace baton::shm
