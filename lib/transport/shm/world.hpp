#pragma once
/// Shared by all groups of a process: the memory of all ranks, and the messages under way.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "../../base/block_pool.hpp"
#include "../groups.hpp"
#include "../peer_memory.hpp"
#include "../place.hpp"
#include "baton/shm.hpp"
#include "message.hpp"
#include "shared_memories.hpp"

namespace baton::shm {

/// Ranks are those of the first group, which was bootstrapped.
class World {
 public:
  /// Collective: see SharedMemories.
  World(int rank, int size, const Exchange& exchange, const ShmOptions& options);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  bool concurrent() const { return concurrent_; }
  /// The lock that a group holds while it uses the world. Locks nothing if one thread uses all
  /// groups.
  std::unique_lock<std::mutex> turn() {
    return concurrent() ? std::unique_lock(mutex_) : std::unique_lock<std::mutex>();
  }
  std::span<const transport::Place> places() const { return memories_.places(); }
  bool crowded() const { return crowded_; }
  bool reads(int rank) const { return memories_.readable(rank) != 0; }
  /// Whether a message to this rank may be one that is given, in parts of whole units.
  bool gives(int rank, std::size_t unit) const;
  bool left(int rank) const { return memories_.left(rank); }

  void send(Entry& entry);
  /// Of a fetch, `to` takes the bytes.
  void receive(Entry& entry, const Destination* to);
  enum class Outcome : std::uint8_t {
    pending,
    done,
    failed,  ///< as Entry::bytes says
    left,    ///< its peer has
  };
  Outcome test(Entry& entry);
  void cancel(Entry& entry);
  /// Of a receive that failed by `thrown`, which it releases.
  std::exception_ptr exception_of(Entry& receive);
  /// Takes what has come, and sends what waits; true: there was something.
  bool progress();
  /// The first of these ranks whose message of this context and tag no receive has taken; -1: none.
  int probe(std::uint32_t context, std::span<const int> sources, int tag);
  /// Forgets messages that came before their receives, such as those of a group that has gone.
  void forget(const std::function<bool(const Arrival&)>& which);

  /// The number of messages that have completed in calls for others, or have come.
  std::uint64_t events() const { return events_; }
  /// The number of times that others have told this rank of something.
  std::uint32_t rings() const { return own_.head().bell.load(std::memory_order_acquire); }
  /// Blocks until something has come, the bell has rung more often than `seen`, or the time has
  /// passed. Other threads take their turns meanwhile.
  void block(std::uint32_t seen, std::chrono::microseconds at_most,
             std::unique_lock<std::mutex>& turn);

  /// 0 is that of the first group.
  transport::Contexts contexts{.next = 1, .end = ~std::uint32_t{0}};

 private:
  struct Peer {
    const SharedMemory* memory;
    RingWriter out;
    RingReader in;
    Entry* first_queued = nullptr;
    Entry* last_queued = nullptr;
  };
  static constexpr std::uint32_t nowhere = ~std::uint32_t{0};
  struct Slot {
    std::uint32_t generation = 0;
    std::uint32_t place = nowhere;  // in wanted_
    std::size_t sent = 0;           // as parts
    Entry* send = nullptr;
  };
  struct NoMore {
    int peer;
    std::uint32_t token;
  };

  /// Where both sides wait, both copy messages of so many bytes: the sender into the ring, the
  /// receiver out of it. On an AMD EPYC (Zen 4, 32 MiB of cache) 16 MiB take 2.1 ms, read in the
  /// sender's memory 3.5; 4 MiB 0.53 and 0.38.
  static constexpr std::size_t least_copied_by_both = 8 << 20;

  Peer& peer(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  const Peer& peer(int rank) const { return peers_[static_cast<std::size_t>(rank)]; }
  bool in_parts(int rank) const { return rank != rank_ && !reads(rank); }
  bool may_go_in_parts(const Entry& send) const;
  bool both_may_copy(const Reading& reading) const;

  bool put(Entry& send);
  bool put_whole(Entry& send);
  bool put_offer(Entry& send);
  template <class Put>
  bool put_all(Peer& to, const Put& put);
  bool flush(Peer& to);
  bool send_parts(Entry& send);
  bool send_wanted();
  void look_at_wanted();
  void look_at_offer(Entry& send);
  void release_slot(Entry& send);

  bool poll(int source);
  void deliver(int source, Record& record);
  void take_part(Reading& reading, std::byte* bytes, std::size_t count);
  void end_parts(Reading& reading);
  void match(Entry& receive, bool first);
  void begin(Entry& receive, const OfferRecord& offer);
  void take_whole(Entry& receive, std::byte* content, std::size_t bytes);
  void keep_exception(Entry& receive, Reading& reading);
  void note_event();
  bool send_no_more();
  void look_at_offers();
  void complete(Entry& entry, Entry::State state, std::size_t bytes);
  void want_parts(Reading& reading);
  bool undecided(Reading& reading);
  void read_some(Reading& reading);
  void withdrawn(Reading& reading);
  Offer& offer_of(int rank, const OfferRecord& offer) const {
    return peer(rank).memory->head().offers[offer.slot];
  }
  void prepare_reading();
  Reading& take_reading();
  void release(Reading& reading);
  void advance(Entry& entry);

  const int rank_;
  const bool concurrent_;
  const SharedMemories memories_;
  const SharedMemory& own_;
  const bool crowded_;
  const std::size_t most_eager_;  // longer messages are offered
  std::vector<Peer> peers_;

  Queues<Entry> posted_;
  Queues<Arrival> arrivals_;
  base::BlockPool blocks_;
  std::deque<Reading> readings_;
  std::vector<Reading*> free_readings_;
  std::vector<Reading*> reads_;  // of other processes' memory
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_slots_;
  std::size_t in_parts_ = 0;  // offers that may become wanted
  std::vector<Entry*> wanted_;
  std::vector<NoMore> no_more_;
  std::uint32_t rings_at_sending_ = 0, rings_at_looking_ = 0;
  int queued_ = 0;
  unsigned tests_ = 0;
  transport::PartReader reader_;
  std::uint64_t events_ = 0;
  std::mutex mutex_;
};

}  // namespace baton::shm
