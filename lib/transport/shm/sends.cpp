// A world's sends: whole in a ring, offered, or in parts.

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <utility>

#include "world.hpp"

namespace baton::shm {
namespace {

template <class T>
void make_room(std::vector<T>& vector, std::size_t size) {
  if (vector.capacity() < size) vector.reserve(std::max(size, 2 * vector.capacity()));
}

const Source& source_of(const Entry& send) { return *reinterpret_cast<const Source*>(send.data); }

/// Bytes [from, from + bytes) of a message; of one that is given, those that follow the last ones.
void take_from(const Entry& send, std::size_t from, std::byte* into, std::size_t bytes) {
  if (bytes == 0) return;
  if (send.given) return source_of(send).give(source_of(send).data, into, bytes);
  std::memcpy(into, send.data + from, bytes);
}

}  // namespace

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
  return send.given || in_parts(send.peer) ||
         (send.peer != rank_ && send.bytes >= least_copied_by_both);
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
  take_from(send, 0, record->content(), send.bytes);
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
    make_room(wanted_, in_parts_ + 1);
    make_room(no_more_, no_more_.size() + in_parts_ + 1);
  }
  Record* const record = to.out.reserve(sizeof(OfferRecord));
  if (record == nullptr) return false;
  send.slot = free_slots_.back();
  free_slots_.pop_back();
  Slot& slot = slots_[send.slot];
  slot = {.generation = std::max(slot.generation + 1, 1U), .send = &send};
  own_.head().offers[send.slot].state.store(Offer::state_of(slot.generation, Offer::open),
                                            std::memory_order_release);
  record->context = send.context;
  record->tag = send.tag;
  record->bytes = sizeof(OfferRecord);
  const OfferRecord offer{send.given ? 0 : reinterpret_cast<std::uint64_t>(send.data), send.bytes,
                          slot.generation, send.slot};
  std::memcpy(record->content(), &offer, sizeof offer);
  to.out.publish(*record, Kind::offer);
  to.memory->wake();
  send.state = Entry::State::offered;
  if (may_go_in_parts(send)) ++in_parts_;
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
  std::size_t most = most_eager_;
  if (send.given) most -= most % source_of(send).unit;
  put_all(to, [&] {
    while (slot.sent < send.bytes) {
      const std::size_t bytes = std::min(most, send.bytes - slot.sent);
      Record* const record = to.out.reserve(bytes);
      if (record == nullptr) return false;
      record->context = offer.token();
      record->bytes = static_cast<std::uint32_t>(bytes);
      take_from(send, slot.sent, record->content(), bytes);
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

void World::look_at_wanted() {
  SharedHead& head = own_.head();
  for (std::size_t word = 0; word < head.wanted.size(); ++word) {
    if (head.wanted[word].load(std::memory_order_relaxed) == 0) continue;
    std::uint64_t bits = head.wanted[word].exchange(0, std::memory_order_acquire);
    for (; bits != 0; bits &= bits - 1) {
      const std::size_t i = word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
      Slot& slot = slots_[i];
      if (slot.send == nullptr || slot.place != nowhere ||
          !head.offers[i].is(slot.generation, Offer::wanted))
        continue;  // it has gone
      slot.place = static_cast<std::uint32_t>(wanted_.size());
      wanted_.push_back(slot.send);
    }
  }
}

/// The bell has rung for what has become wanted, and for room; true: something was sent.
bool World::send_wanted() {
  const std::uint32_t rings = this->rings();
  if (rings == rings_at_sending_) return false;
  look_at_wanted();
  bool any = false;
  for (std::size_t i = wanted_.size(); i-- > 0;) any |= send_parts(*wanted_[i]);
  rings_at_sending_ = rings;
  return any;
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

/// Of sends that nobody tests now, too: their places serve others. The bell has rung for each.
void World::look_at_offers() {
  const std::uint32_t rings = this->rings();
  if (rings == rings_at_looking_) return;
  for (Slot& slot : slots_)
    if (slot.send != nullptr) look_at_offer(*slot.send);
  rings_at_looking_ = rings;
}

void World::release_slot(Entry& send) {
  Slot& slot = slots_[send.slot];
  slot.send = nullptr;
  if (slot.place != nowhere) {
    Entry* const last = wanted_.back();
    wanted_[slot.place] = last;
    slots_[last->slot].place = slot.place;
    wanted_.pop_back();
  }
  if (may_go_in_parts(send)) --in_parts_;
  free_slots_.push_back(send.slot);
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

}  // namespace baton::shm
