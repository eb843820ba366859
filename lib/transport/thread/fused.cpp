#include <fmt/core.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
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

/// A sent message, from its sender's end() until the sender has taken notice of its receiver.
struct Parcel {
  const std::byte* data;
  std::size_t bytes;
  std::shared_ptr<Marker> ready;     ///< where the sender's stream has come to the fused group
  std::shared_ptr<Marker> received;  ///< null until the receiver has given the copy to its stream
};

/// The shared state of a group's ranks.
class World {
 public:
  World(int size, std::shared_ptr<Device> device, std::chrono::milliseconds limit)
      : size(size),
        limit(limit),
        left(static_cast<std::size_t>(size)),
        device_(std::move(device)) {}

  /// From, to, and the message's place among those from the one to the other.
  using Key = std::tuple<int, int, std::uint64_t>;

  const int size;
  const std::chrono::milliseconds limit;  ///< 0: none
  std::mutex mutex;
  // Under the mutex:
  std::map<Key, Parcel> parcels;
  std::vector<bool> left;
  bool aborted = false;
  // Of the split under way:
  std::map<int, std::pair<int, int>> wishes;  ///< of each rank: color, key
  std::map<int, std::shared_ptr<World>> parts;
  int leaving = 0;  ///< ranks that are to take their part yet

  Device& device() const { return *device_; }
  std::shared_ptr<World> part(int its_size) const {
    return std::make_shared<World>(its_size, device_, limit);
  }

  void notify() { changed_.notify_all(); }
  /// Waits, under the lock, until come() is true. `waiting` says what for.
  template <class Come, class Waiting>
  void wait(std::unique_lock<std::mutex>& lock, int rank, int peer, Come come, Waiting waiting) {
    const auto start = std::chrono::steady_clock::now();
    for (int polls = 0; !come(); ++polls) {
      if (aborted)
        base::raise(ErrorCode::transport, "expected fused groups that go on, found them aborted",
                    {.rank = rank});
      if (peer >= 0 && left[static_cast<std::size_t>(peer)])
        base::raise(ErrorCode::transport, fmt::format("{}, found that it has left", waiting()),
                    {.rank = rank, .peer = peer});
      if (limit.count() > 0 && std::chrono::steady_clock::now() - start > limit)
        base::raise(ErrorCode::timeout,
                    fmt::format("{}, found none for {} s", waiting(),
                                static_cast<double>(limit.count()) / 1000),
                    {.rank = rank, .peer = peer});
      if (polls < 200) {  // the peer is often about to come
        lock.unlock();
        std::this_thread::yield();
        lock.lock();
      } else {
        changed_.wait_for(lock, std::chrono::milliseconds(20));
      }
    }
  }

  /// Markers that all ranks reuse: one is done with when nobody holds it any more.
  std::shared_ptr<Marker> take_marker(const std::shared_ptr<World>& self) {
    std::unique_ptr<Marker> marker;
    {
      const std::lock_guard lock(markers_mutex_);
      if (!markers_.empty()) {
        marker = std::move(markers_.back());
        markers_.pop_back();
      }
    }
    if (!marker) marker = device_->make_marker();
    return {marker.release(), [self](Marker* done) {
              const std::lock_guard lock(self->markers_mutex_);
              self->markers_.emplace_back(done);
            }};
  }

 private:
  const std::shared_ptr<Device> device_;
  std::condition_variable changed_;
  std::mutex markers_mutex_;
  std::vector<std::unique_ptr<Marker>> markers_;
};

class ThreadFused final : public FusedTransport {
 public:
  ThreadFused(std::shared_ptr<World> world, int rank) : world_(std::move(world)), rank_(rank) {}
  ~ThreadFused() override {
    const std::lock_guard lock(world_->mutex);
    world_->left[static_cast<std::size_t>(rank_)] = true;
    world_->notify();
  }

  int rank() const override { return rank_; }
  int size() const override { return world_->size; }

  void begin() override { sends_.clear(), recvs_.clear(), streams_.clear(); }
  void send(int peer, const void* data, std::size_t bytes, Stream stream) override {
    add(sends_, {rank_, peer, sent_[peer]++}, const_cast<void*>(data), bytes, stream);
  }
  void recv(int peer, void* data, std::size_t bytes, Stream stream) override {
    add(recvs_, {peer, rank_, received_[peer]++}, data, bytes, stream);
  }

  /// A rank tells where its data are and from when on, gives the copies of what it receives to its
  /// stream, and then has the stream wait until others have copied what it sent. It waits for its
  /// peers' calls only; what a stream waits for was given to its device before.
  void end() override {
    if (streams_.empty()) return;
    const Stream lead = streams_.front();
    for (std::size_t i = 1; i < streams_.size(); ++i) follow(streams_[i], lead);
    post(lead);
    receive(lead);
    std::vector<std::shared_ptr<Marker>> held;  // kept, so that none is used anew meanwhile
    for (const Message& message : sends_) {
      std::unique_lock lock(world_->mutex);
      const auto parcel = world_->parcels.find(message.key);
      const int peer = std::get<1>(message.key);
      world_->wait(
          lock, rank_, peer, [&] { return parcel->second.received != nullptr; },
          [&] { return expected(peer, "to receive"); });
      std::shared_ptr<Marker> received = std::move(parcel->second.received);
      world_->parcels.erase(parcel);
      lock.unlock();
      if (std::ranges::find(held, received) != held.end()) continue;
      received->hold(lead);
      held.push_back(std::move(received));
    }
    for (std::size_t i = 1; i < streams_.size(); ++i) follow(lead, streams_[i]);
  }

  void check() override {}  // what fails does so in the call
  void abort() noexcept override {
    const std::lock_guard lock(world_->mutex);
    world_->aborted = true;
    world_->notify();
  }

  std::unique_ptr<FusedTransport> split(int color, int key) override {
    World& all = *world_;
    std::unique_lock lock(all.mutex);
    const auto waiting = [&] {
      return fmt::format("rank {}: expected all {} ranks to split a group of threads", rank_,
                         all.size);
    };
    all.wait(
        lock, rank_, -1, [&] { return all.leaving == 0; }, waiting);  // of the last split
    all.wishes[rank_] = {color, key};
    if (all.wishes.size() == static_cast<std::size_t>(all.size)) {
      std::map<int, int> sizes;
      for (const auto& [rank, wish] : all.wishes) ++sizes[wish.first];
      for (const auto& [its, size] : sizes) all.parts[its] = all.part(size);
      all.leaving = all.size;
      all.notify();
    }
    all.wait(
        lock, rank_, -1, [&] { return all.leaving > 0; }, waiting);
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

  void add(std::vector<Message>& messages, const World::Key& key, void* data, std::size_t bytes,
           Stream stream) {
    const int peer = std::get<0>(key) == rank_ ? std::get<1>(key) : std::get<0>(key);
    if (peer < 0 || peer >= size())
      base::raise(ErrorCode::transport,
                  fmt::format("expected a rank from 0 to {}, found {}", size() - 1, peer),
                  {.rank = rank_});
    messages.push_back({key, static_cast<std::byte*>(data), bytes});
    if (std::ranges::find(streams_, stream) == streams_.end()) streams_.push_back(stream);
  }

  /// What `then` is given later comes after all that `first` was given.
  void follow(Stream first, Stream then) {
    const auto marker = world_->take_marker(world_);
    marker->set(first);
    marker->hold(then);
  }

  std::string expected(int peer, const char* what) const {
    return fmt::format("rank {}: expected rank {} {} a message of a fused group", rank_, peer,
                       what);
  }

  void post(Stream stream) {
    if (sends_.empty()) return;
    const auto ready = world_->take_marker(world_);
    ready->set(stream);
    const std::lock_guard lock(world_->mutex);
    for (const Message& message : sends_)
      world_->parcels[message.key] = {message.data, message.bytes, ready, nullptr};
    world_->notify();
  }

  void receive(Stream stream) {
    if (recvs_.empty()) return;
    std::set<const Marker*> held;
    for (const Message& message : recvs_) {
      const int peer = std::get<0>(message.key);
      std::unique_lock lock(world_->mutex);
      world_->wait(
          lock, rank_, peer, [&] { return world_->parcels.contains(message.key); },
          [&] { return expected(peer, "to send"); });
      const Parcel parcel = world_->parcels[message.key];
      lock.unlock();
      if (parcel.bytes != message.bytes)
        base::raise(ErrorCode::transport,
                    fmt::format("rank {}: expected {} bytes from rank {}, found {}", rank_,
                                message.bytes, peer, parcel.bytes),
                    {.rank = rank_, .peer = peer});
      if (held.insert(parcel.ready.get()).second) parcel.ready->hold(stream);
      if (message.bytes == 0) continue;
      Rows rows;
      rows.at[0] = message.data, rows.at[1] = const_cast<std::byte*>(parcel.data);
      rows.block = static_cast<std::int64_t>(message.bytes);
      world_->device().copy({&rows, 1}, 1, stream);
    }
    const auto received = world_->take_marker(world_);
    received->set(stream);
    const std::lock_guard lock(world_->mutex);
    for (const Message& message : recvs_) world_->parcels[message.key].received = received;
    world_->notify();
  }

  const std::shared_ptr<World> world_;
  const int rank_;
  std::vector<Message> sends_, recvs_;  // of the fused group
  std::vector<Stream> streams_;
  std::map<int, std::uint64_t> sent_, received_;  // messages so far, by peer
};

}  // namespace

std::unique_ptr<FusedTransport> thread_fused_transport(Transport& host,
                                                       std::shared_ptr<Device> device,
                                                       std::chrono::milliseconds timeout) {
  if (!device) base::refuse("expected a device, found null");
  if (!host.capabilities().one_process)
    throw Error(ErrorCode::unsupported,
                fmt::format("expected a transport of threads of one process, found {}",
                            host.capabilities().name));
  // Rank 0 tells the others where their shared state is.
  constexpr int tag = 0;
  const int rank = host.rank(), size = host.size();
  std::shared_ptr<World> world;
  const auto finish = [&](Message& message) {
    std::size_t bytes = 0;
    for (base::Backoff backoff; !host.test(message, bytes); backoff.wait()) host.progress();
  };
  std::vector<Message> messages(static_cast<std::size_t>(rank == 0 ? 2 * size : 2));
  if (rank == 0) {
    world = std::make_shared<World>(size, std::move(device), timeout);
    const std::shared_ptr<World>* const there = &world;
    std::byte taken{};
    for (int peer = 1; peer < size; ++peer)
      host.isend(peer, tag, &there, sizeof there, messages[static_cast<std::size_t>(2 * peer)]);
    for (int peer = 1; peer < size; ++peer) {
      finish(messages[static_cast<std::size_t>(2 * peer)]);
      Message& answer = messages[static_cast<std::size_t>(2 * peer + 1)];
      host.irecv(peer, tag, &taken, sizeof taken, answer);
      finish(answer);
    }
  } else {
    const std::shared_ptr<World>* there = nullptr;
    host.irecv(0, tag, &there, sizeof there, messages[0]);
    finish(messages[0]);
    world = *there;
    const std::byte taken{};
    host.isend(0, tag, &taken, sizeof taken, messages[1]);
    finish(messages[1]);
  }
  return std::make_unique<ThreadFused>(std::move(world), rank);
}

}  // namespace baton
