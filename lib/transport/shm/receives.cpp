// A world's receives: from a ring, read in the sender's memory, or in parts.

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>
#include <utility>

#include "world.hpp"

namespace baton::shm {
namespace {

constexpr std::chrono::microseconds time_to_show{20};  // that the sender waits
constexpr std::uint32_t looks_of_waiting = 2;
constexpr int records_at_once = 64;  // of one rank

}  // namespace

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
    try {
      reading.to.take(reading.to.data, content, bytes);
    } catch (...) {
      return keep_exception(receive, reading);
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
  if (!receive.reading->parts) release(*receive.reading);
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
  if (in_parts(receive.peer) || offer.address == 0) return want_parts(reading);
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
  const SharedMemory& sender = *peer(reading.peer).memory;
  const std::uint32_t slot = reading.offer.slot;
  sender.head().wanted[slot / 64].fetch_or(std::uint64_t{1} << slot % 64,
                                           std::memory_order_release);
  sender.ring_bell();
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
  reading.parts = false;
  const bool taken = receive.fetch && std::min(reading.room, reading.done) > 0;
  if (!receive.fetch || taken) release(reading);
  if (taken) return complete(receive, Entry::State::failed, peer_gave_up);
  prepare_reading();
  match(receive, true);
}

void World::take_part(Reading& reading, std::byte* bytes, std::size_t count) {
  std::size_t wanted = std::min(count, reading.room - std::min(reading.room, reading.done));
  if (reading.entry == nullptr) wanted = 0;
  reading.done += count;
  const bool last = reading.done == reading.offer.bytes;
  if (wanted > 0 && !reading.to.take) {
    std::memcpy(static_cast<std::byte*>(reading.to.data) + reading.done - count, bytes, wanted);
  } else if (wanted > 0) {
    try {
      reading.to.take(reading.to.data, bytes, wanted);
    } catch (...) {
      Entry& receive = *std::exchange(reading.entry, nullptr);  // the other parts still come
      keep_exception(receive, reading);
    }
  }
  if (!last) return;
  if (reading.entry != nullptr) complete(*reading.entry, Entry::State::done, reading.offer.bytes);
  end_parts(reading);
}

/// No part comes any more.
void World::end_parts(Reading& reading) {
  reading.parts = false;
  if (!reading.thrown) release(reading);  // else exception_of() does
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
  reading.parts = false;
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
    if (reading.entry == nullptr) return end_parts(reading);
    return withdrawn(reading);
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

}  // namespace baton::shm
