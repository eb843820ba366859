#include <algorithm>
#include <cassert>
#include <cstring>
#include <limits>
#include <optional>
#include <thread>
#include <utility>

#include "../../base/raise.hpp"
#include "../../memory/copy.hpp"
#include "baton/thread.hpp"
#include "device_copies.hpp"
#include "group.hpp"

namespace baton {
namespace {

using namespace threads;

/// Steele, Lea & Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
class SplitMix {
 public:
  explicit SplitMix(std::uint64_t seed) : state_(seed) {}
  std::uint64_t operator()() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }

 private:
  std::uint64_t state_;
};

/// The second side to reach a mailbox finds the first there and copies. With delays, entries always
/// wait, and each test matches those whose time has come.
class ThreadTransport final : public Transport {
 public:
  ThreadTransport(std::shared_ptr<Group> group, int rank)
      : group_(std::move(group)),
        rank_(rank),
        delays_(group_->options().seed != 0),
        rings_seen_(group_->bell(rank).rings()),
        random_(group_->options().seed * 0x100000001b3u + static_cast<std::uint64_t>(rank)) {
    if (group_->has_devices()) copies_.emplace(*group_, group_->device(rank));
  }

  ~ThreadTransport() override {
    if (copies_) copies_->finish();
    if (in_flight_ > 0)
      for (int r = 0; r < size(); ++r) {
        const auto lock = group_->mailbox(r).lock();
        group_->mailbox(r).remove_all(rank_, r == rank_);
      }
    group_->leave(rank_);
  }

  int rank() const override { return rank_; }
  int size() const override { return group_->size(); }

  Capabilities capabilities() const override {
    return {.name = "thread",
            .library = {},
            .tags = std::numeric_limits<int>::max(),
            .concurrent = true,
            .cancels = true,
            .one_process = true,
            .device_memory = group_->has_devices(),
            .subgroups = true,
            .hosts = group_->options().hosts};
  }

  void isend(int peer, int tag, const void* data, std::size_t bytes, Message& message) override {
    Entry& send = start(message, Side::send, rank_, peer, tag, const_cast<void*>(data), bytes);
    Mailbox& box = group_->mailbox(peer);
    Entry* recv = nullptr;
    const bool may_buffer = !copies_ || !copies_->needed(send);
    {
      const auto lock = box.lock();
      if (!delays_) recv = box.take_recv(rank_, tag);
      if (recv == nullptr) {
        Buffer* buffer = may_buffer && buffered(bytes) ? group_->buffers(rank_).take() : nullptr;
        box.append(buffer != nullptr ? fill(*buffer, send) : send);
      }
    }
    if (recv != nullptr) transfer(send, *recv, &send);
    if (send.state.load(std::memory_order_relaxed) == State::done) news_ = true;
  }

  void irecv(int peer, int tag, void* data, std::size_t bytes, Message& message) override {
    Entry& recv = start(message, Side::recv, peer, rank_, tag, data, bytes);
    Mailbox& box = group_->mailbox(rank_);
    Entry* send = nullptr;
    {
      const auto lock = box.lock();
      if (!delays_) send = box.take_send(peer, tag);
      if (send == nullptr) box.append(recv);
    }
    if (send == nullptr) return;
    transfer(*send, recv, &recv);
    news_ = true;
  }

  bool test(Message& message, std::size_t& bytes) override {
    Entry& entry = entry_in(message);
    // The rank that starts a device's copy also completes it. So the receiver starts it, since it
    // tests until its message has come.
    if (delays_) deliver(copies_ ? rank_ : entry.destination);
    if (copies_) copies_->complete();
    if (entry.state.load(std::memory_order_acquire) != State::done) return false;
    if (entry.report > 0) {
      --entry.report;
      return false;
    }
    bytes = entry.bytes;
    --in_flight_;
    quiet_ = 0;
    return true;
  }

  void cancel(Message& message) override {
    Entry& entry = entry_in(message);
    --in_flight_;
    {
      Mailbox& box = group_->mailbox(entry.destination);
      const auto lock = box.lock();
      if (box.remove(entry)) return;
    }
    while (entry.state.load(std::memory_order_acquire) != State::done) {
      if (copies_) copies_->complete();
      std::this_thread::yield();
    }
  }

  void progress() override {
    if (delays_) deliver(rank_);
    if (copies_) copies_->complete();
  }

  void idle(std::chrono::microseconds at_most) override {
    Bell& bell = group_->bell(rank_);
    if (copies_ && copies_->any()) {  // the end of a copy rings no bell
      copies_->complete();
      std::this_thread::yield();
    } else if (delays_ && quiet_ < longest_delay) {  // nor does the end of a delay
      ++quiet_;
      std::this_thread::sleep_for(std::min(at_most, std::chrono::microseconds(random_() % 8)));
    } else if (!news_) {
      bell.wait(rings_seen_, at_most, group_->spin());
    }
    // The caller's next tests find all earlier events; a later event ends the next idle().
    news_ = false;
    rings_seen_ = bell.rings();
  }

  std::unique_ptr<Transport> split(int color, int key) override {
    Group::Seat seat = group_->split(rank_, color, key);
    if (seat.group == nullptr) return nullptr;
    return std::make_unique<ThreadTransport>(std::move(seat.group), seat.rank);
  }
  std::unique_ptr<Transport> subgroup(const std::vector<int>& ranks, int number) override {
    Group::Seat seat = group_->subgroup(rank_, ranks, number);
    return std::make_unique<ThreadTransport>(std::move(seat.group), seat.rank);
  }

 private:
  Entry& start(Message& message, Side side, int source, int destination, int tag, void* data,
               std::size_t bytes) {
    assert(source >= 0 && source < size() && destination >= 0 && destination < size());
    assert(tag >= 0 && (data != nullptr || bytes == 0));
    ++in_flight_;
    auto* entry = new (message.state) Entry;
    entry->data = static_cast<std::byte*>(data);
    entry->bytes = bytes;
    entry->source = source;
    entry->destination = destination;
    entry->tag = tag;
    entry->side = side;
    if (delays_) {
      quiet_ = 0;
      entry->arrival = delay();
      entry->report = delay();
    }
    return *entry;
  }

  std::uint8_t delay() {
    const std::uint64_t bits = random_();
    return bits % 2 == 0 ? 0 : static_cast<std::uint8_t>(bits >> 32 & 15);
  }

  /// Whether a send of this length completes without its receiver. With delays, some wait at
  /// random.
  bool buffered(std::size_t bytes) {
    return bytes <= group_->options().eager_bytes && !(delays_ && random_() % 2 == 0);
  }

  /// Completes `send` by copying it into `buffer`. Returns the entry that waits in its place.
  static Entry& fill(Buffer& buffer, Entry& send) {
    auto* entry = new (&buffer.entry) Entry;
    entry->data = buffer.bytes();
    entry->bytes = send.bytes;
    entry->source = send.source;
    entry->destination = send.destination;
    entry->tag = send.tag;
    entry->side = Side::buffered_send;
    entry->arrival = send.arrival;
    if (send.bytes > 0) std::memcpy(entry->data, send.data, send.bytes);
    send.state.store(State::done, std::memory_order_relaxed);
    return *entry;
  }

  void transfer(Entry& send, Entry& recv, const Entry* self) {
    if (copies_ && (copies_->needed(send) || copies_->needed(recv))) {
      // Either may be cancelled meanwhile; the second side never waited in a mailbox.
      send.state.store(State::copying, std::memory_order_relaxed);
      recv.state.store(State::copying, std::memory_order_relaxed);
      return copies_->start(send, recv);
    }
    if (const auto bytes = std::min(send.bytes, recv.bytes); bytes > 0)
      host::copy(recv.data, send.data, bytes);
    group_->complete(send, recv, self);
  }

  void deliver(int destination) {
    Mailbox& box = group_->mailbox(destination);
    auto lock = box.lock();
    box.age();
    for (auto pair = box.take_pair(); pair.send != nullptr; pair = box.take_pair()) {
      lock.unlock();
      transfer(*pair.send, *pair.recv, nullptr);
      lock.lock();
    }
  }

  static constexpr int longest_delay = 64;  // in calls of idle(); delays are shorter

  std::shared_ptr<Group> group_;
  int rank_;
  bool delays_;
  int quiet_ = 0;             // with delays: calls of idle() since this rank's last message
  bool news_ = false;         // a message was complete when posted
  std::uint32_t rings_seen_;  // of the bell
  int in_flight_ = 0;
  SplitMix random_;
  std::optional<DeviceCopies> copies_;
};

}  // namespace

std::vector<std::unique_ptr<Transport>> thread_transports(int size, const ThreadOptions& options) {
  if (size < 1) base::refuse("a group of threads needs at least 1 rank, but size is {}", size);
  if (!options.hosts.empty() && options.hosts.size() != static_cast<std::size_t>(size))
    base::refuse("a group of {} threads needs as many hosts, but got {}", size,
                 options.hosts.size());
  if (options.devices.size() > 1 && options.devices.size() != static_cast<std::size_t>(size))
    base::refuse("a group of {} threads needs one device or as many, but got {}", size,
                 options.devices.size());
  std::vector<std::shared_ptr<Bell>> bells;
  for (int rank = 0; rank < size; ++rank) bells.push_back(std::make_shared<Bell>());
  // A long spin before blocking pays only if every rank has a core.
  const bool cores = static_cast<unsigned>(size) <= std::thread::hardware_concurrency();
  const auto group =
      std::make_shared<Group>(std::move(bells), options, std::chrono::microseconds(cores ? 20 : 5));
  std::vector<std::unique_ptr<Transport>> transports;
  for (int rank = 0; rank < size; ++rank)
    transports.push_back(std::make_unique<ThreadTransport>(group, rank));
  return transports;
}

}  // namespace baton
