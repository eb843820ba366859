#include "message.hpp"

#include <algorithm>
#include <thread>
#include <utility>

#include "baton/error.hpp"

namespace baton::staged {

Transfer::Transfer(const Route& route) : route_(route) {
  for (Slot& slot : slots_) slot.copied = route.device.make_marker();
}

void Transfer::begin(bool sends, int peer, int tag, std::byte* data, std::size_t bytes) {
  sends_ = sends;
  peer_ = peer;
  tag_ = tag;
  data_ = data;
  room_ = bytes;
  on_device_ = bytes > 0 && route_.device.residence(data) != Residence::host;
  moved_ = begun_ = posted_ = ended_ = 0;
  posted_all_ = false;
  failed_ = nullptr;
}

void Transfer::advance(bool first) {
  if (failed_) std::rethrow_exception(failed_);
  if (sends_) {
    advance_send(first);
  } else {
    advance_recv(first);
  }
}

void Transfer::copy(Slot& slot, std::byte* to, std::byte* from, std::size_t bytes, Stream stream) {
  Rows rows;
  rows.at[0] = to;
  rows.at[1] = from;
  rows.block = static_cast<std::int64_t>(bytes);
  if (bytes > 0) route_.device.copy({&rows, 1}, 1, stream);
  slot.copied->set(stream);
}

bool Transfer::test(Slot& slot, std::size_t& bytes) {
  try {
    return route_.host.test(slot.message, bytes);
  } catch (...) {
    slot.phase = Phase::lost;  // the host's transport has released the message
    throw;
  }
}

void Transfer::release(Slot& slot) {
  if (slot.buffer) route_.pool.give(slot.buffer, route_.segment);
  slot.buffer = nullptr;
  slot.phase = Phase::free;
}

void Transfer::advance_send(bool first) {
  const std::size_t segments = room_ / route_.segment + 1;
  while (begun_ < segments && slot(begun_).phase == Phase::free) {
    Slot& next = slot(begun_++);
    next.offset = moved_;
    next.length = std::min(route_.segment, room_ - moved_);
    moved_ += next.length;
    next.phase = Phase::ready;
    if (!on_device_ || next.length == 0) continue;
    next.buffer = route_.pool.take(route_.segment);
    next.phase = Phase::leaving;
    copy(next, next.buffer, data_ + next.offset, next.length, route_.to_host);
  }
  while (first && posted_ < begun_) {
    Slot& next = slot(posted_);
    if (next.phase == Phase::leaving && next.copied->passed()) next.phase = Phase::ready;
    if (next.phase != Phase::ready) break;
    const std::byte* const from = next.buffer ? next.buffer : data_ + next.offset;
    route_.host.isend(peer_, tag_, from, next.length, next.message);
    next.phase = Phase::under_way;
    posted_all_ = ++posted_ == segments;
  }
  for (std::size_t sent = 0; ended_ < posted_; ++ended_) {
    if (!test(slot(ended_), sent)) break;
    release(slot(ended_));
  }
}

void Transfer::advance_recv(bool first) {
  const auto post = [&] {
    // Receives go one at a time: only the length of one tells whether another follows.
    if (!first || posted_all_ || posted_ < begun_ || slot(begun_).phase != Phase::free) return;
    Slot& next = slot(begun_++);
    next.offset = std::min(moved_, room_);
    const std::size_t left = room_ - next.offset;
    std::byte* into = data_ + next.offset;
    std::size_t room = std::min(route_.segment, left);
    if (on_device_) {
      into = next.buffer = route_.pool.take(route_.segment);
      room = route_.segment;
    }
    route_.host.irecv(peer_, tag_, into, room, next.message);
    next.phase = Phase::under_way;
  };
  post();
  if (posted_ < begun_) {
    Slot& next = slot(posted_);
    if (next.phase == Phase::under_way && test(next, next.length)) {
      ++posted_;
      posted_all_ = next.length < route_.segment;
      moved_ += next.length;
      next.phase = Phase::arriving;
      if (next.buffer)
        copy(next, data_ + next.offset, next.buffer, std::min(next.length, room_ - next.offset),
             route_.to_device);
      post();
    }
  }
  for (; ended_ < posted_; ++ended_) {
    Slot& oldest = slot(ended_);
    if (oldest.buffer && !oldest.copied->passed()) break;
    release(oldest);
  }
  post();
}

bool Transfer::copying() const {
  return std::any_of(slots_.begin(), slots_.end(), [](const Slot& slot) {
    return slot.phase == Phase::leaving || slot.phase == Phase::arriving;
  });
}

void Transfer::cancel() {
  for (Slot& slot : slots_) {
    // A host's transport that does not cancel may go on with the segment.
    bool in_use = !route_.cancels && (slot.phase == Phase::under_way || slot.phase == Phase::lost);
    try {
      if (slot.phase == Phase::under_way) route_.host.cancel(slot.message);
      const bool copies = slot.phase == Phase::leaving || slot.phase == Phase::arriving;
      while (copies && slot.buffer && !slot.copied->passed()) std::this_thread::yield();
    } catch (const Error&) {
      in_use = true;  // device or transport has stopped
    }
    if (in_use && slot.buffer)
      route_.abandoned.keep(std::exchange(slot.buffer, nullptr), route_.segment);
    release(slot);
  }
  posted_all_ = true;
  ended_ = begun_;
  failed_ = nullptr;
}

void Transfer::fail(const std::exception_ptr& error) {
  cancel();
  failed_ = error;
}

}  // namespace baton::staged
