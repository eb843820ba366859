#include "world.hpp"

#include <algorithm>
#include <cstddef>
#include <new>

namespace baton::shm {
namespace {

// On an Intel Xeon, an all-reduce of 16 KiB on 2 ranks takes 4.5 us, with 4 KiB 6.8; 12 KiB gain
// nothing more.
constexpr std::size_t most_bytes_in_ring = 8 << 10;
constexpr unsigned tests_per_look = 16;  // at the other ranks' rings

}  // namespace

World::World(int rank, int size, const Exchange& exchange, const ShmOptions& options)
    : rank_(rank),
      concurrent_(options.concurrent),
      memories_(rank, size, exchange, options.meeting),
      own_(memories_.own()),
      crowded_(transport::crowded(memories_.places(), rank)),
      most_eager_(std::min(most_bytes_in_ring, own_.most_content())),
      slots_(offers_per_rank),
      free_slots_(offers_per_rank) {
  for (int r = 0; r < size; ++r)
    peers_.push_back({.memory = &memories_.of(r),
                      .out = memories_.of(r).ring<RingWriter>(rank),
                      .in = own_.ring<RingReader>(r)});
  // Offers that are used first lie in cache lines of their own.
  constexpr std::uint32_t lines = offers_per_rank * sizeof(Offer) / 64;
  for (std::uint32_t i = 0; i < offers_per_rank; ++i)
    free_slots_[offers_per_rank - 1 - i] = i % lines * (offers_per_rank / lines) + i / lines;
}

World::~World() {
  forget([](const Arrival&) { return true; });
}

// In shorter parts, a message would take more turns than it saves time.
bool World::gives(int rank, std::size_t unit) const {
  return rank != rank_ && most_eager_ == most_bytes_in_ring && unit <= most_eager_;
}

void World::advance(Entry& entry) {
  using enum Entry::State;
  switch (entry.state) {
    case queued:
      flush(peer(entry.peer));
      break;
    case offered:
      if (!may_go_in_parts(entry) || !send_parts(entry)) look_at_offer(entry);
      break;
    case posted:
      poll(entry.peer);
      break;
    case reading:
      if (entry.reading->parts)
        poll(entry.peer);
      else
        read_some(*entry.reading);
      break;
    case failed:
    case done:
      return;
  }
  if (entry.state == done) return;
  // Others may wait for this rank, which may wait for them.
  if (++tests_ % tests_per_look == 0)
    progress();
  else if (!reads_.empty() && entry.state != reading)
    read_some(*reads_.front());
}

World::Outcome World::test(Entry& entry) {
  using enum Entry::State;
  if (entry.state != done) advance(entry);
  if (entry.state == done) return Outcome::done;
  if (entry.state == failed) return Outcome::failed;
  if (!left(entry.peer)) [[likely]]
    return Outcome::pending;
  // What it did before it left comes first.
  while (poll(entry.peer)) {
  }
  advance(entry);
  if (entry.state == done) return Outcome::done;
  if (entry.state == failed) return Outcome::failed;
  if (entry.state == reading && !entry.reading->parts) return Outcome::pending;
  cancel(entry);
  return Outcome::left;
}

bool World::progress() {
  std::atomic<std::uint32_t>& looks = own_.head().looks;
  looks.store(looks.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  bool any = false;
  for (int r = 0; r < static_cast<int>(peers_.size()); ++r) any |= poll(r);
  if (!reads_.empty()) {
    read_some(*reads_.front());
    any = true;
  }
  if (queued_ > 0)
    for (Peer& to : peers_)
      if (to.first_queued != nullptr) any |= flush(to);
  if (in_parts_ > 0) any |= send_wanted();
  any |= send_no_more();
  return any;
}

void World::cancel(Entry& entry) {
  using enum Entry::State;
  switch (entry.state) {
    case queued: {
      Peer& to = peer(entry.peer);
      Entry* before = nullptr;
      for (Entry* e = to.first_queued; e != &entry; e = e->next) before = e;
      (before == nullptr ? to.first_queued : before->next) = entry.next;
      if (to.last_queued == &entry) to.last_queued = before;
      --queued_;
      break;
    }
    case offered: {
      const std::uint32_t generation = slots_[entry.slot].generation;
      Offer& offer = own_.head().offers[entry.slot];
      if (!offer.settle(generation, Offer::withdrawn) && offer.is(generation, Offer::wanted))
        no_more_.push_back({entry.peer, offer.token()});
      release_slot(entry);
      send_no_more();
      break;
    }
    case posted:
      posted_.remove(entry);
      if (entry.fetch) release(*reinterpret_cast<Reading*>(entry.data));
      break;
    case reading: {
      Reading& reading = *entry.reading;
      reading.entry = nullptr;
      if (reading.parts) break;  // they still come
      if (offer_of(entry.peer, reading.offer).settle(reading.offer.generation, Offer::refused))
        peer(entry.peer).memory->ring_bell();
      std::erase(reads_, &reading);
      release(reading);
      break;
    }
    case failed:
      if (entry.bytes == thrown) exception_of(entry);
      break;
    case done:
      break;
  }
  entry.state = done;
}

int World::probe(std::uint32_t context, std::span<const int> sources, int tag) {
  progress();
  for (const int source : sources) {
    const Key key{context, source, tag};
    while (Arrival* const arrival = arrivals_.find(key)) {
      if (!arrival->offered ||
          offer_of(source, arrival->offer).is(arrival->offer.generation, Offer::open))
        return source;
      arrivals_.remove(*arrival);
      blocks_.give(reinterpret_cast<std::byte*>(arrival), sizeof *arrival);
    }
  }
  return -1;
}

void World::forget(const std::function<bool(const Arrival&)>& which) {
  arrivals_.take_all(which, [&](Arrival* a) {
    blocks_.give(reinterpret_cast<std::byte*>(a), sizeof *a + a->bytes);
  });
}

void World::block(std::uint32_t seen, std::chrono::microseconds at_most,
                  std::unique_lock<std::mutex>& turn) {
  std::atomic<std::uint32_t>& sleeping = own_.head().sleeping;
  sleeping.fetch_add(1, std::memory_order_seq_cst);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const bool any =
      std::ranges::any_of(peers_, [](Peer& from) { return from.in.front() != nullptr; });
  if (!any) {
    if (turn) turn.unlock();
    own_.wait(seen, at_most);
    if (concurrent()) turn.lock();
  }
  sleeping.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace baton::shm
