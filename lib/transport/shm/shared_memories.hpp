#pragma once
/// The memory of all ranks: made, mapped, and left.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "../peer_memory.hpp"
#include "../place.hpp"
#include "../process.hpp"
#include "baton/error.hpp"
#include "baton/exchange.hpp"
#include "shared_memory.hpp"

namespace baton::shm {

class SharedMemories {
 public:
  /// Collective: makes this rank's memory, and maps all ranks'. `exchange` brings their contacts.
  /// Throws Error(transport, timeout, invalid_argument); where a rank cannot map another's memory,
  /// all that have mapped its own raise its sentence.
  SharedMemories(int rank, int size, const Exchange& exchange, std::chrono::milliseconds meeting);
  /// Tells all that this rank has left.
  ~SharedMemories();
  SharedMemories(const SharedMemories&) = delete;
  SharedMemories& operator=(const SharedMemories&) = delete;

  const SharedMemory& own() const { return of(rank_); }
  const SharedMemory& of(int rank) const { return memories_[static_cast<std::size_t>(rank)]; }
  bool left(int rank) const {
    return of(rank).head().presence.load(std::memory_order_acquire) != Presence::here;
  }
  std::span<const transport::Place> places() const { return places_; }
  /// The process of a rank if all ranks may read each other's memory; else 0, and for this rank.
  pid_t readable(int rank) const { return readable_[static_cast<std::size_t>(rank)]; }

 private:
  struct Contact {
    transport::Place place;
    transport::ProcessId process;
    transport::OwnWord word;
    FileId file;
    std::int64_t descriptor;
  };

  void make_own(const Exchange& exchange);
  std::vector<Contact> contacts_by(const Exchange& exchange) const;
  void map_all(const std::vector<Contact>& contacts);
  void await_arrivals(const std::vector<Contact>& contacts);
  void pass_on(const Error& error);

  int size() const { return static_cast<int>(memories_.size()); }
  std::atomic<Arrived>& arrived(int whose, int rank) const {
    return of(whose).head().arrived[static_cast<std::size_t>(rank)];
  }

  const int rank_;
  const std::chrono::milliseconds meeting_;
  const pid_t process_;
  std::vector<SharedMemory> memories_;
  std::vector<transport::Place> places_;
  std::vector<pid_t> readable_;
};

}  // namespace baton::shm
