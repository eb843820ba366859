#include "world.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <utility>

namespace baton::shm {
namespace {

// On an Intel Xeon, an all-reduce of 16 KiB on 2 ranks takes 4.5 us, with 4 KiB 6.8; 12 KiB gain
// nothing more.
constexpr std::size_t most_bytes_in_ring = 8 << 10;
// Where both sides wait, both copy: the sender into the ring, the receiver out of it. On an AMD
// EPYC (Zen 4, 32 MiB of cache) 16 MiB take 2.1 ms, read in the sender's memory 3.5; 4 MiB 0.53 and
// 0.38.
constexpr std::size_t least_copied_by_both = 8 << 20;
constexpr std::chrono::microseconds time_to_show{20};  // that the sender waits
constexpr std::uint32_t looks_of_waiting = 2;
constexpr int records_at_once = 64;      // of one rank
constexpr unsigned tests_per_look = 16;  // at the other ranks' rings

template <class T>
void make_room(std::vector<T>& vector, std::size_t size) {
  if (vector.capacity() < size) vector.reserve(std::max(size, 2 * vector.capacity()));
}

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

// Sends ------------------------------------------------------------------------------------------

void World::send(Entry& entry) {
  Peer& to = peer(entry.peer);
  if (to.first_queued == nullptr && put(entry)) [[likely]]
    return;
  entry.state = Entry::State::queued;
  entry.next = nullptr;
  (to.first_queued == nullptr ? to.first_queued : to.last_queued->next) = &entry;
  to.last_queued = &entry;
  ++queued_;
  try {
    flush(to);
  } catch (...) {
    cancel(entry);
    throw;
  }
}

bool World::may_go_in_parts(const Entry& send) const {
  return in_parts(send.peer) || (send.peer != rank_ && send.bytes >= least_copied_by_both);
}

/// False: there is no room for it now.
bool World::put(Entry& send) {
  return send.bytes <= most_eager_ ? put_whole(send) : put_offer(send);
}

bool World::put_whole(Entry& send) {
  Peer& to = peer(send.peer);
  Record* const record = to.out.reserve(send.bytes);
  if (record == nullptr) return false;
  record->context = send.context;
  record->tag = send.tag;
  record->bytes = static_cast<std::uint32_t>(send.bytes);
  if (send.bytes > 0) std::memcpy(record->content(), send.data, send.bytes);
  to.out.publish(*record, Kind::whole);
  to.memory->wake();
  send.state = Entry::State::done;
  return true;
}

bool World::put_offer(Entry& send) {
  Peer& to = peer(send.peer);
  if (free_slots_.empty()) look_at_offers();
  if (free_slots_.empty()) return false;
  if (may_go_in_parts(send)) {  // so that nothing allocates while a message is given up
    make_room(offers_in_parts_, offers_in_parts_.size() + 1);
    make_room(no_more_, no_more_.size() + offers_in_parts_.size() + 1);
  }
  Record* const record = to.out.reserve(sizeof(OfferRecord));
  if (record == nullptr) return false;
  send.slot = free_slots_.back();
  free_slots_.pop_back();
  Slot& slot = slots_[send.slot];
  slot = {std::max(slot.generation + 1, 1U), 0, &send};
  own_.head().offers[send.slot].state.store(Offer::state_of(slot.generation, Offer::open),
                                            std::memory_order_release);
  record->context = send.context;
  record->tag = send.tag;
  record->bytes = sizeof(OfferRecord);
  const OfferRecord offer{reinterpret_cast<std::uint64_t>(send.data), send.bytes, slot.generation,
                          send.slot};
  std::memcpy(record->content(), &offer, sizeof offer);
  to.out.publish(*record, Kind::offer);
  to.memory->wake();
  send.state = Entry::State::offered;
  if (may_go_in_parts(send)) offers_in_parts_.push_back(&send);
  return true;
}

/// Calls `put` until it finds no room, which its receiver then tells; or has nothing left: true.
template <class Put>
bool World::put_all(Peer& to, const Put& put) {
  if (put()) return true;
  to.out.await_room();
  return put();
}

/// True: something left the queue.
bool World::flush(Peer& to) {
  const int before = queued_;
  put_all(to, [&] {
    while (Entry* const send = to.first_queued) {
      Entry* const next = send->next;
      if (!put(*send)) return false;
      if (send->state == Entry::State::done) ++events_;
      to.first_queued = next;
      --queued_;
    }
    return true;
  });
  return queued_ != before;
}

/// Sends what its receiver wants; true: there was something.
bool World::send_parts(Entry& send) {
  Slot& slot = slots_[send.slot];
  const Offer& offer = own_.head().offers[send.slot];
  if (!offer.is(slot.generation, Offer::wanted)) return false;
  Peer& to = peer(send.peer);
  const std::size_t before = slot.sent;
  put_all(to, [&] {
    while (slot.sent < send.bytes) {
      const std::size_t bytes = std::min(most_eager_, send.bytes - slot.sent);
      Record* const record = to.out.reserve(bytes);
      if (record == nullptr) return false;
      record->context = offer.token();
      record->bytes = static_cast<std::uint32_t>(bytes);
      std::memcpy(record->content(), send.data + slot.sent, bytes);
      to.out.publish(*record, Kind::part);
      slot.sent += bytes;
    }
    return true;
  });
  if (slot.sent == before) return false;
  to.memory->wake();
  if (slot.sent == send.bytes) {
    release_slot(send);
    complete(send, Entry::State::done, send.bytes);
  }
  return true;
}

void World::look_at_offer(Entry& send) {
  const std::uint32_t generation = slots_[send.slot].generation;
  const Offer& offer = own_.head().offers[send.slot];
  const bool read = offer.is(generation, Offer::read);
  if (!read && !offer.is(generation, Offer::refused)) return;
  release_slot(send);
  if (read)
    complete(send, Entry::State::done, send.bytes);
  else
    complete(send, Entry::State::failed, peer_gave_up);
}

/// Of sends that nobody tests now, too: their places serve others.
void World::look_at_offers() {
  for (Slot& slot : slots_)
    if (slot.send != nullptr) look_at_offer(*slot.send);
}

void World::release_slot(Entry& send) {
  slots_[send.slot].send = nullptr;
  std::erase(offers_in_parts_, &send);
  free_slots_.push_back(send.slot);
}

// Receives ---------------------------------------------------------------------------------------

void World::receive(Entry& entry, const Destination* to) {
  prepare_reading();
  Reading* reading = nullptr;
  if (to != nullptr) {
    reading = &take_reading();
    reading->to = *to;
    entry.data = reinterpret_cast<std::byte*>(reading);
    prepare_reading();
  }
  match(entry, false);
}

/// Takes the message that came first, or waits for one; `first`: before the other receives.
void World::match(Entry& receive, bool first) {
  while (Arrival* const arrival = arrivals_.take(key_of(receive))) {
    const bool offered = arrival->offered;
    const OfferRecord offer = arrival->offer;
    const std::size_t held = offered ? 0 : arrival->bytes;
    if (!offered) take_whole(receive, arrival->content(), arrival->bytes);
    blocks_.give(reinterpret_cast<std::byte*>(arrival), sizeof *arrival + held);
    if (!offered) return;
    if (!offer_of(receive.peer, offer).is(offer.generation, Offer::open)) continue;
    return begin(receive, offer);
  }
  receive.state = Entry::State::posted;
  if (first)
    posted_.prepend(receive);
  else
    posted_.append(receive);
}

/// Ends a receive with a message that came whole.
void World::take_whole(Entry& receive, std::byte* content, std::size_t bytes) {
  const std::size_t taken = std::min(receive.bytes, bytes);
  if (!receive.fetch) {
    if (taken > 0) std::memcpy(receive.data, content, taken);
    return complete(receive, Entry::State::done, bytes);
  }
  Reading& reading = *reinterpret_cast<Reading*>(receive.data);
  if (bytes == receive.bytes && bytes > 0) {
    if (reading.to.take) {
      try {
        reading.to.take(reading.to.data, content, bytes);
      } catch (...) {
        return keep_exception(receive, reading);
      }
    } else {
      std::memcpy(reading.to.data, content, bytes);
    }
  }
  release(reading);
  complete(receive, Entry::State::done, bytes);
}

/// The receive fails by the exception that is being handled: its owner gets it, nobody else.
void World::keep_exception(Entry& receive, Reading& reading) {
  reading.thrown = std::current_exception();
  receive.reading = &reading;
  complete(receive, Entry::State::failed, thrown);
}

std::exception_ptr World::exception_of(Entry& receive) {
  std::exception_ptr exception = std::exchange(receive.reading->thrown, nullptr);
  release(*receive.reading);
  receive.state = Entry::State::done;
  return exception;
}

void World::complete(Entry& entry, Entry::State state, std::size_t bytes) {
  entry.bytes = bytes;
  entry.state = state;
  note_event();
}

/// Another thread may wait for it.
void World::note_event() {
  ++events_;
  if (concurrent()) own_.wake();
}

/// Needs prepare_reading() before.
void World::begin(Entry& receive, const OfferRecord& offer) {
  Reading& reading = receive.fetch ? *reinterpret_cast<Reading*>(receive.data) : take_reading();
  reading.entry = &receive;
  reading.peer = receive.peer;
  reading.offer = offer;
  reading.done = 0;
  reading.room = receive.bytes;
  if (!receive.fetch) reading.to = {.data = receive.data};
  // A fetch of another length is not read: the caller reports it.
  if (receive.fetch && offer.bytes != receive.bytes) reading.room = 0;
  receive.state = Entry::State::reading;
  receive.reading = &reading;
  reading.parts = false;
  reading.decide_at = {};
  if (in_parts(receive.peer)) return want_parts(reading);
  if (both_may_copy(reading)) {
    const SharedMemory& sender = *peer(receive.peer).memory;
    reading.decide_at = std::chrono::steady_clock::now() + time_to_show;
    reading.looks = sender.head().looks.load(std::memory_order_relaxed);
    sender.ring_bell();  // it may sleep
  }
  reads_.push_back(&reading);
  note_event();
}

bool World::both_may_copy(const Reading& reading) const {
  return !crowded_ && reading.peer != rank_ && !reading.entry->fetch &&
         std::min<std::size_t>(reading.room, reading.offer.bytes) >= least_copied_by_both;
}

void World::want_parts(Reading& reading) {
  if (!offer_of(reading.peer, reading.offer)
           .settle(reading.offer.generation, Offer::wanted, reading.token))
    return withdrawn(reading);
  reading.parts = true;
  std::erase(reads_, &reading);
  peer(reading.peer).memory->ring_bell();
}

/// Whether it is not read now: the sender waits, and sends parts, or may still show that it does.
bool World::undecided(Reading& reading) {
  if (reading.decide_at == std::chrono::steady_clock::time_point{}) return false;
  const std::uint32_t looks =
      peer(reading.peer).memory->head().looks.load(std::memory_order_relaxed);
  if (looks - reading.looks >= looks_of_waiting) {
    want_parts(reading);
    return true;
  }
  if (std::chrono::steady_clock::now() < reading.decide_at) return true;
  reading.decide_at = {};
  return false;
}

/// Reads on, and ends the receive when all is read.
void World::read_some(Reading& reading) {
  Entry& receive = *reading.entry;
  Offer& offer = offer_of(reading.peer, reading.offer);
  if (!offer.is(reading.offer.generation, Offer::open)) return withdrawn(reading);
  if (undecided(reading)) return;
  const std::size_t wanted = std::min<std::size_t>(reading.room, reading.offer.bytes);
  int error = 0;
  if (reading.peer == rank_) {
    if (wanted > 0)
      std::memcpy(reading.to.data, reinterpret_cast<const std::byte*>(reading.offer.address),
                  wanted);
    reading.done = wanted;
  } else if (reading.done < wanted) {
    try {
      error = reader_.read_some({memories_.readable(reading.peer), reading.offer.address, wanted},
                                reading.done, reading.to);
    } catch (...) {
      offer.settle(reading.offer.generation, Offer::refused);
      peer(reading.peer).memory->ring_bell();
      std::erase(reads_, &reading);
      return keep_exception(receive, reading);
    }
  }
  if (error == 0 && reading.done < wanted) return;
  if (!offer.settle(reading.offer.generation, error == 0 ? Offer::read : Offer::refused))
    return withdrawn(reading);
  peer(reading.peer).memory->ring_bell();
  const std::size_t sent = reading.offer.bytes;
  std::erase(reads_, &reading);
  release(reading);
  if (error == 0)
    complete(receive, Entry::State::done, sent);
  else
    complete(receive, Entry::State::failed, static_cast<std::size_t>(error));
}

/// The sender gave up: the receive waits for another message, unless a part was taken.
void World::withdrawn(Reading& reading) {
  Entry& receive = *reading.entry;
  std::erase(reads_, &reading);
  const bool taken = receive.fetch && reading.done > 0;
  if (!receive.fetch || taken) release(reading);
  if (taken) return complete(receive, Entry::State::failed, peer_gave_up);
  prepare_reading();
  match(receive, true);
}

void World::take_part(Reading& reading, const std::byte* bytes, std::size_t count) {
  if (reading.entry != nullptr && reading.done < reading.room)
    std::memcpy(static_cast<std::byte*>(reading.to.data) + reading.done, bytes,
                std::min(count, reading.room - reading.done));
  reading.done += count;
  if (reading.done < reading.offer.bytes) return;
  if (reading.entry != nullptr) complete(*reading.entry, Entry::State::done, reading.offer.bytes);
  release(reading);
}

/// Takes the memory that a reading needs, before anything is changed.
void World::prepare_reading() {
  if (!free_readings_.empty()) return;
  Reading& reading = readings_.emplace_back();
  reading.token = static_cast<std::uint32_t>(readings_.size() - 1);
  reads_.reserve(readings_.size());
  free_readings_.reserve(readings_.size());
  free_readings_.push_back(&reading);
}
Reading& World::take_reading() {
  Reading& reading = *free_readings_.back();
  free_readings_.pop_back();
  return reading;
}
void World::release(Reading& reading) {
  reading.entry = nullptr;
  free_readings_.push_back(&reading);
}

/// Takes records of this rank; true: there were some.
bool World::poll(int source) {
  RingReader& ring = peer(source).in;
  Record* record = ring.front();
  if (record == nullptr) return false;
  const auto give_back = [&] {
    if (ring.give_back()) peer(source).memory->ring_bell();
  };
  try {
    for (int i = 0; i < records_at_once && record != nullptr; ++i) {
      deliver(source, *record);
      ring.pop(*record);
      record = ring.front();
    }
  } catch (...) {
    give_back();
    throw;
  }
  give_back();
  return true;
}

void World::deliver(int source, Record& record) {
  const Kind kind = record.kind();
  if (kind == Kind::part)
    return take_part(readings_[record.context], record.content(), record.bytes);
  if (kind == Kind::no_more) {
    Reading& reading = readings_[record.context];
    Entry* const receive = reading.entry;
    release(reading);
    if (receive != nullptr) match(*receive, true);
    return;
  }
  const Key key{record.context, source, record.tag};
  OfferRecord offer{};
  if (kind == Kind::offer) {
    std::memcpy(&offer, record.content(), sizeof offer);
    if (!offer_of(source, offer).is(offer.generation, Offer::open)) return;
    prepare_reading();
  }
  if (Entry* const receive = posted_.take(key)) {
    if (kind == Kind::offer) return begin(*receive, offer);
    return take_whole(*receive, record.content(), record.bytes);
  }
  const std::size_t held = kind == Kind::offer ? 0 : record.bytes;
  std::byte* const block = blocks_.take(sizeof(Arrival) + held);
  auto* const arrival = new (block) Arrival{nullptr, key, kind == Kind::offer, held, offer};
  if (held > 0) std::memcpy(arrival->content(), record.content(), held);
  arrivals_.append(*arrival);
  note_event();
}

// All --------------------------------------------------------------------------------------------

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
  for (std::size_t i = offers_in_parts_.size(); i-- > 0;) any |= send_parts(*offers_in_parts_[i]);
  any |= send_no_more();
  return any;
}

/// Tells receivers of messages in parts that were given up; true: some were told.
bool World::send_no_more() {
  const std::size_t before = no_more_.size();
  std::erase_if(no_more_, [&](const NoMore& one) {
    Peer& to = peer(one.peer);
    Record* record = to.out.reserve(0);
    if (record == nullptr) {
      to.out.await_room();
      record = to.out.reserve(0);
    }
    if (record == nullptr) return false;
    record->context = one.token;
    record->bytes = 0;
    to.out.publish(*record, Kind::no_more);
    to.memory->wake();
    return true;
  });
  return no_more_.size() != before;
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
