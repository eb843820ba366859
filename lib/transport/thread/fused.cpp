#include <fmt/core.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "../../base/backoff.hpp"
#include "../../base/raise.hpp"
#include "baton/error.hpp"
#include "baton/thread.hpp"

namespace baton {
namespace {

/// A sent message, from its sender's end() until the sender's stream waits for its copy.
struct Parcel {
  const std::byte* data;
  std::size_t bytes;
  std::shared_ptr<Marker> ready;     ///< where the sender's stream has come to the fused group
  bool taken = false;                ///< its copy is being given to the receiver's stream
  std::shared_ptr<Marker> received;  ///< behind that copy
};

/// Markers that all ranks reuse: one is done with when nobody has it any more.
class Markers {
 public:
  explicit Markers(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  Device& device() const { return *device_; }

  static std::shared_ptr<Marker> take(const std::shared_ptr<Markers>& self) {
    std::unique_ptr<Marker> marker;
    {
      const std::lock_guard lock(self->mutex_);
      if (!self->idle_.empty()) {
        marker = std::move(self->idle_.back());
        self->idle_.pop_back();
      }
    }
    if (!marker) marker = self->device_->make_marker();
    return {marker.release(), [self](Marker* done) {
              const std::lock_guard lock(self->mutex_);
              self->idle_.emplace_back(done);
            }};
  }

 private:
  const std::shared_ptr<Device> device_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Marker>> idle_;
};

/// The shared state of a group's ranks.
class World {
 public:
  World(int size, std::shared_ptr<Markers> markers, std::chrono::milliseconds limit)
      : size(size),
        limit(limit),
        markers(std::move(markers)),
        left(static_cast<std::size_t>(size)) {}

  /// From, to, and the message's place among those from the one to the other.
  using Key = std::tuple<int, int, std::uint64_t>;

  const int size;
  const std::chrono::milliseconds limit;  ///< of a call; 0: none
  const std::shared_ptr<Markers> markers;
  std::mutex mutex;
  // Under the mutex:
  std::map<Key, Parcel> parcels;
  std::vector<bool> left;
  bool aborted = false;
  // Of the split under way:
  std::map<int, std::pair<int, int>> wishes;  ///< of each rank: color, key
  std::map<int, std::shared_ptr<World>> parts;
  int leaving = 0;  ///< ranks that are to take their part yet

  void notify() { changed_.notify_all(); }
  bool has_left(int rank) const { return left[static_cast<std::size_t>(rank)]; }

  /// A call of `rank`, which ends in time.
  struct Caller {
    int rank;
    std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  };
  /// Waits, under the lock, until come() is true; for `peer`, unless it is -1. `gone()` is a rank
  /// that will not come any more, or -1; `expected` says what for.
  template <class Come, class Gone, class Expected>
  void wait(std::unique_lock<std::mutex>& lock, const Caller& caller, int peer, Come come,
            Gone gone, Expected expected) {
    for (int polls = 0;; ++polls) {
      if (aborted)
        base::raise(ErrorCode::transport, "expected fused groups that go on, found them aborted",
                    {.rank = caller.rank});
      if (come()) return;
      if (const int lost = gone(); lost >= 0)
        base::raise(ErrorCode::transport,
                    fmt::format("rank {}: expected {}, found that rank {} has left", caller.rank,
                                expected(), lost),
                    {.rank = caller.rank, .peer = lost});
      if (limit.count() > 0 && std::chrono::steady_clock::now() - caller.start > limit)
        base::raise(ErrorCode::timeout,
                    fmt::format("rank {}: expected {}, found none for {} s", caller.rank,
                                expected(), static_cast<double>(limit.count()) / 1000),
                    {.rank = caller.rank, .peer = peer});
      if (polls < 200) {  // the peer is often about to come
        lock.unlock();
        std::this_thread::yield();
        lock.lock();
      } else {
        changed_.wait_for(lock, std::chrono::milliseconds(20));
      }
    }
  }

 private:
  std::condition_variable changed_;
};

class ThreadFused final : public FusedTransport {
 public:
  ThreadFused(std::shared_ptr<World> world, int rank) : world_(std::move(world)), rank_(rank) {}
  ~ThreadFused() override {
    withdraw();
    const std::lock_guard lock(world_->mutex);
    world_->left[static_cast<std::size_t>(rank_)] = true;
    world_->notify();
  }

  int rank() const override { return rank_; }
  int size() const override { return world_->size; }

  void begin() override { sends_.clear(), recvs_.clear(), streams_.clear(); }
  void send(int peer, const void* data, std::size_t bytes, Stream stream) override {
    expect_rank(peer);
    add(sends_, {rank_, peer, sent_[peer]++}, const_cast<void*>(data), bytes, stream);
  }
  void recv(int peer, void* data, std::size_t bytes, Stream stream) override {
    expect_rank(peer);
    add(recvs_, {peer, rank_, received_[peer]++}, data, bytes, stream);
  }

  /// A rank tells where its data are and from when on, gives the copies of what it receives to its
  /// stream, and then has the stream wait until others have copied what it sent. It waits for its
  /// peers' calls only; what a stream waits for was given to its device before.
  void end() override {
    if (streams_.empty()) return;
    const World::Caller caller{rank_};
    try {
      for (std::size_t i = 1; i < streams_.size(); ++i) follow(streams_[i], lead());
      post();
      receive(caller);
      for (const Message& message : sends_) finish(message, caller);
      held_.clear();
      for (std::size_t i = 1; i < streams_.size(); ++i) follow(lead(), streams_[i]);
    } catch (...) {
      withdraw();
      throw;
    }
  }

  void check() override {}  // what fails does so in the call
  void abort() noexcept override {
    withdraw();
    const std::lock_guard lock(world_->mutex);
    world_->aborted = true;
    world_->notify();
  }

  std::unique_ptr<FusedTransport> split(int color, int key) override {
    World& all = *world_;
    const World::Caller caller{rank_};
    const auto expected = [&] {
      return fmt::format("all {} ranks to split their group", all.size);
    };
    std::unique_lock lock(all.mutex);
    all.wait(
        lock, caller, -1, [&] { return all.leaving == 0; }, [] { return -1; }, expected);
    all.wishes[rank_] = {color, key};
    if (all.wishes.size() == static_cast<std::size_t>(all.size)) {
      std::map<int, int> sizes;
      for (const auto& [rank, wish] : all.wishes) ++sizes[wish.first];
      for (const auto& [its, size] : sizes)
        all.parts[its] = std::make_shared<World>(size, all.markers, all.limit);
      all.leaving = all.size;
      all.notify();
    }
    const auto missing = [&] {
      for (int rank = 0; rank < all.size; ++rank)
        if (!all.wishes.contains(rank) && all.has_left(rank)) return rank;
      return -1;
    };
    try {
      all.wait(
          lock, caller, -1, [&] { return all.leaving > 0; }, missing, expected);
    } catch (...) {
      all.aborted = true;  // the others must not count on this rank's wish
      all.notify();
      throw;
    }
    int place = 0;
    for (const auto& [other, wish] : all.wishes)
      place += wish.first == color && std::pair(wish.second, other) < std::pair(key, rank_);
    const std::shared_ptr<World> part = all.parts[color];
    if (--all.leaving == 0) {
      all.wishes.clear(), all.parts.clear();
      all.notify();
    }
    return color < 0 ? nullptr : std::make_unique<ThreadFused>(part, place);
  }

 private:
  struct Message {
    World::Key key;
    std::byte* data;
    std::size_t bytes;
  };

  void expect_rank(int peer) const {
    if (peer >= 0 && peer < size()) return;
    base::raise(
        ErrorCode::transport,
        fmt::format("rank {}: expected a rank from 0 to {}, found {}", rank_, size() - 1, peer),
        {.rank = rank_});
  }
  void add(std::vector<Message>& messages, const World::Key& key, void* data, std::size_t bytes,
           Stream stream) {
    messages.push_back({key, static_cast<std::byte*>(data), bytes});
    if (std::ranges::find(streams_, stream) == streams_.end()) streams_.push_back(stream);
  }
  /// The stream that has the fused group's work; others wait for it, and it for them.
  Stream lead() const { return streams_.front(); }
  std::shared_ptr<Marker> take_marker() const { return Markers::take(world_->markers); }

  /// What `then` is given later comes after all that `first` was given.
  void follow(Stream first, Stream then) const {
    const auto marker = take_marker();
    marker->set(first);
    marker->hold(then);
  }
  /// Waits until come() is true, or `peer` has left.
  template <class Come>
  void wait_for(std::unique_lock<std::mutex>& lock, const World::Caller& caller, int peer,
                Come come, const char* what) const {
    world_->wait(
        lock, caller, peer, come, [&] { return world_->has_left(peer) ? peer : -1; },
        [&] { return fmt::format("rank {} {} a message of a fused group", peer, what); });
  }

  void post() {
    if (sends_.empty()) return;
    const auto ready = take_marker();
    ready->set(lead());
    const std::lock_guard lock(world_->mutex);
    for (const Message& message : sends_)
      world_->parcels[message.key] = {message.data, message.bytes, ready, false, nullptr};
    world_->notify();
  }

  void receive(const World::Caller& caller) {
    if (recvs_.empty()) return;
    const auto received = take_marker();
    std::vector<World::Key> taken;
    try {
      std::set<const Marker*> held;  // none is used anew: parcels that are taken have theirs
      for (const Message& message : recvs_) {
        const int peer = std::get<0>(message.key);
        std::unique_lock lock(world_->mutex);
        wait_for(
            lock, caller, peer, [&] { return world_->parcels.contains(message.key); }, "to send");
        Parcel& there = world_->parcels[message.key];
        if (there.bytes != message.bytes)
          base::raise(ErrorCode::transport,
                      fmt::format("rank {}: expected {} bytes from rank {}, found {}", rank_,
                                  message.bytes, peer, there.bytes),
                      {.rank = rank_, .peer = peer});
        there.taken = true;
        taken.push_back(message.key);
        const std::byte* const from = there.data;
        const std::shared_ptr<Marker> ready = there.ready;
        lock.unlock();
        if (held.insert(ready.get()).second) ready->hold(lead());
        if (message.bytes == 0) continue;
        Rows rows;
        rows.at[0] = message.data, rows.at[1] = const_cast<std::byte*>(from);
        rows.block = static_cast<std::int64_t>(message.bytes);
        world_->markers->device().copy({&rows, 1}, 1, lead());
      }
    } catch (...) {
      tell_received(received, taken);
      throw;
    }
    tell_received(received, taken);
  }
  /// Senders' streams may go on behind what this rank's stream has been given.
  void tell_received(const std::shared_ptr<Marker>& received,
                     const std::vector<World::Key>& taken) {
    std::exception_ptr failed;  // a marker that was never set holds nobody
    try {
      received->set(lead());
    } catch (...) {
      failed = std::current_exception();
    }
    {
      const std::lock_guard lock(world_->mutex);
      for (const World::Key& key : taken) world_->parcels[key].received = received;
      world_->notify();
    }
    if (failed) std::rethrow_exception(failed);
  }

  void finish(const Message& message, const World::Caller& caller) {
    std::unique_lock lock(world_->mutex);
    const auto parcel = world_->parcels.find(message.key);
    wait_for(
        lock, caller, std::get<1>(message.key), [&] { return parcel->second.received != nullptr; },
        "to receive");
    std::shared_ptr<Marker> received = std::move(parcel->second.received);
    world_->parcels.erase(parcel);
    lock.unlock();
    hold_once(std::move(received));
  }
  void hold_once(std::shared_ptr<Marker> received) {
    if (std::ranges::find(held_, received) != held_.end()) return;
    received->hold(lead());
    held_.push_back(std::move(received));  // so that it is not used anew meanwhile
  }

  /// Takes back what nobody has taken; the stream waits for what others are copying.
  void withdraw() noexcept {
    std::unique_lock lock(world_->mutex);
    for (auto at = world_->parcels.begin(); at != world_->parcels.end();) {
      if (std::get<0>(at->first) != rank_) {
        ++at;
        continue;
      }
      while (at->second.taken && !at->second.received) {  // its receiver is giving the copy now
        lock.unlock();
        std::this_thread::yield();
        lock.lock();
      }
      try {
        if (at->second.received && !streams_.empty()) hold_once(at->second.received);
      } catch (const Error&) {  // the device failed, and copies nothing any more
      }
      at = world_->parcels.erase(at);
    }
    held_.clear();
  }

  const std::shared_ptr<World> world_;
  const int rank_;
  std::vector<Message> sends_, recvs_;  // of the fused group
  std::vector<Stream> streams_;
  std::map<int, std::uint64_t> sent_, received_;  // messages so far, by peer
  std::vector<std::shared_ptr<Marker>> held_;
};

/// What rank 0 answers: a world that the receiver owns, or null where devices differ.
struct Answer {
  std::shared_ptr<World>* world;
};

/// A message between ranks, in the time that there is.
class Meeting {
 public:
  Meeting(Transport& host, std::chrono::milliseconds limit) : host_(host), limit_(limit) {}

  template <class T>
  void send(int peer, const T& value) {
    ::baton::Message message;
    host_.isend(peer, tag, &value, sizeof value, message);
    finish(message, peer);
  }
  template <class T>
  T receive(int peer) {
    T value{};
    ::baton::Message message;
    host_.irecv(peer, tag, &value, sizeof value, message);
    finish(message, peer);
    return value;
  }

 private:
  static constexpr int tag = 0;
  void finish(::baton::Message& message, int peer) {
    std::size_t bytes = 0;
    for (base::Backoff backoff; !host_.test(message, bytes); backoff.wait()) {
      host_.progress();
      if (limit_.count() == 0 || std::chrono::steady_clock::now() - start_ < limit_) continue;
      host_.cancel(message);
      base::raise(
          ErrorCode::timeout,
          fmt::format("rank {}: expected rank {} to call thread_fused_transport(), too, found "
                      "nothing for {} s",
                      host_.rank(), peer, static_cast<double>(limit_.count()) / 1000),
          {.rank = host_.rank(), .peer = peer});
    }
  }

  Transport& host_;
  const std::chrono::milliseconds limit_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

std::unique_ptr<FusedTransport> thread_fused_transport(Transport& host,
                                                       std::shared_ptr<Device> device,
                                                       std::chrono::milliseconds timeout) {
  if (!host.capabilities().one_process)
    throw Error(ErrorCode::unsupported,
                fmt::format("expected a transport of threads of one process, found {}",
                            host.capabilities().name));
  const int rank = host.rank(), size = host.size();
  Meeting meeting(host, timeout);
  std::shared_ptr<World> world;
  if (rank == 0) {
    bool same = device != nullptr;
    for (int peer = 1; peer < size; ++peer)
      same = meeting.receive<const Device*>(peer) == device.get() && same;
    if (same)
      world = std::make_shared<World>(size, std::make_shared<Markers>(std::move(device)), timeout);
    for (int peer = 1; peer < size; ++peer) {
      auto theirs = same ? std::make_unique<std::shared_ptr<World>>(world) : nullptr;
      meeting.send(peer, Answer{theirs.get()});
      static_cast<void>(theirs.release());  // the peer's now
    }
  } else {
    meeting.send<const Device*>(0, device.get());
    const std::unique_ptr<std::shared_ptr<World>> given(meeting.receive<Answer>(0).world);
    if (given) world = *given;
  }
  if (!world)
    base::refuse("thread_fused_transport: expected the same device on all {} ranks, found {}", size,
                 device ? "another or none elsewhere" : "none on rank " + std::to_string(rank));
  return std::make_unique<ThreadFused>(std::move(world), rank);
}

}  // namespace baton
