#include <fmt/core.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "../../base/marker_pool.hpp"
#include "../../base/raise.hpp"
#include "../letters.hpp"
#include "baton/error.hpp"
#include "baton/thread.hpp"

namespace baton {
namespace {

using transport::Letter, transport::wait;

/// A sent message, from its sender's end() until the sender's stream waits for its copy.
struct Parcel {
  const std::byte* data;
  std::size_t bytes;
  std::shared_ptr<Marker> ready;     ///< where the sender's stream has come to the fused group
  bool taken = false;                ///< its copy is being given to the receiver's stream
  std::shared_ptr<Marker> received;  ///< behind that copy
};

/// A device's markers, which all ranks reuse: one is done with when nobody has it any more.
class Markers {
 public:
  explicit Markers(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  Device& device() const { return *device_; }

  static std::shared_ptr<Marker> take(const std::shared_ptr<Markers>& self) {
    const std::lock_guard lock(self->mutex_);
    return {self->pool_.take(*self->device_).release(), [self](Marker* done) {
              const std::lock_guard lock(self->mutex_);
              self->pool_.give(std::unique_ptr<Marker>(done));
            }};
  }

 private:
  const std::shared_ptr<Device> device_;
  std::mutex mutex_;
  base::MarkerPool pool_;
};

/// The shared state of a group's ranks.
class World {
 public:
  World(int size, std::shared_ptr<Device> device, std::chrono::milliseconds limit)
      : limit(limit),
        markers(std::make_shared<Markers>(std::move(device))),
        left(static_cast<std::size_t>(size)) {}

  /// From, to, and the message's place among those from the one to the other.
  using Key = std::tuple<int, int, std::uint64_t>;

  const std::chrono::milliseconds limit;  ///< of a call; 0: none
  const std::shared_ptr<Markers> markers;
  std::mutex mutex;
  // Under the mutex:
  std::map<Key, Parcel> parcels;
  std::vector<bool> left;
  bool aborted = false;

  void notify() { changed_.notify_all(); }

  /// A call of `rank`, which ends in time.
  struct Caller {
    int rank;
    std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  };
  /// Waits, under the lock, until come() is true, which `peer` makes it; `what` it is to do.
  template <class Come>
  void wait(std::unique_lock<std::mutex>& lock, const Caller& caller, int peer, const char* what,
            Come come) {
    const auto raise = [&](ErrorCode code, const std::string& found) {
      base::raise(code,
                  fmt::format("rank {}: expected rank {} {} a message of a fused group, found {}",
                              caller.rank, peer, what, found),
                  {.rank = caller.rank, .peer = peer});
    };
    for (int polls = 0;; ++polls) {
      if (aborted) raise(ErrorCode::transport, "that it was aborted");
      if (come()) return;
      if (left[static_cast<std::size_t>(peer)]) raise(ErrorCode::transport, "that it has left");
      if (limit.count() > 0 && std::chrono::steady_clock::now() - caller.start > limit)
        raise(ErrorCode::timeout,
              fmt::format("none for {} s", static_cast<double>(limit.count()) / 1000));
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
  /// `host` has the same ranks, for splits.
  ThreadFused(std::shared_ptr<World> world, std::shared_ptr<Device> device,
              std::unique_ptr<Transport> host)
      : world_(std::move(world)),
        device_(std::move(device)),
        host_(std::move(host)),
        rank_(host_->rank()) {}
  ~ThreadFused() override {
    withdraw();
    const std::lock_guard lock(world_->mutex);
    world_->left[static_cast<std::size_t>(rank_)] = true;
    world_->notify();
  }

  int rank() const override { return rank_; }
  int size() const override { return host_->size(); }

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
  void interrupt() noexcept override {
    const std::lock_guard lock(world_->mutex);
    world_->aborted = true;
    world_->notify();
  }
  void abort() noexcept override {
    withdraw();
    interrupt();
  }

  std::unique_ptr<FusedTransport> split(int color, int key) override {
    const auto part = host_->split(color, key);
    return part ? thread_fused_transport(*part, device_, world_->limit) : nullptr;
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
        world_->wait(lock, caller, peer, "to send",
                     [&] { return world_->parcels.contains(message.key); });
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
    world_->wait(lock, caller, std::get<1>(message.key), "to receive",
                 [&] { return parcel->second.received != nullptr; });
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
  const std::shared_ptr<Device> device_;
  const std::unique_ptr<Transport> host_;
  const int rank_;
  std::vector<Message> sends_, recvs_;  // of the fused group
  std::vector<Stream> streams_;
  std::map<int, std::uint64_t> sent_, received_;  // messages so far, by peer
  std::vector<std::shared_ptr<Marker>> held_;
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
  const Device* const own = device.get();
  std::deque<Letter> letters;
  const auto all_arrive = [&] {
    if (wait(host, letters, timeout)) return;
    const auto late = std::ranges::find_if(letters, [](Letter& one) { return !one.arrived(); });
    const int peer = late == letters.end() ? -1 : late->peer();
    base::raise(
        ErrorCode::timeout,
        fmt::format("rank {}: expected rank {} to call thread_fused_transport(), too, found "
                    "nothing for {} s",
                    rank, peer, static_cast<double>(timeout.count()) / 1000),
        {.rank = rank, .peer = peer});
  };
  // Rank 0 hears the others' devices, and gives each the shared state, which the other then owns;
  // none if devices differ.
  std::shared_ptr<World> world;
  if (rank == 0) {
    std::vector<const Device*> devices(static_cast<std::size_t>(size), own);
    for (int peer = 1; peer < size; ++peer)
      letters.emplace_back(host).receive(peer, devices[static_cast<std::size_t>(peer)]);
    all_arrive();
    const bool same = own && std::ranges::count(devices, own) == size;
    if (same) world = std::make_shared<World>(size, device, timeout);
    letters.clear();
    std::vector<std::shared_ptr<World>*> given(devices.size(), nullptr);
    for (int peer = 1; peer < size; ++peer) {
      auto& theirs = given[static_cast<std::size_t>(peer)];
      if (same) theirs = new std::shared_ptr<World>(world);
      letters.emplace_back(host).send(peer, theirs);
    }
    all_arrive();
  } else {
    std::shared_ptr<World>* given = nullptr;
    letters.emplace_back(host).send(0, own);
    letters.emplace_back(host).receive(0, given);
    all_arrive();
    const std::unique_ptr<std::shared_ptr<World>> owned(given);
    if (owned) world = *owned;
  }
  if (!world)
    base::refuse("thread_fused_transport: expected the same device on all {} ranks, found {}", size,
                 own ? "another or none elsewhere" : fmt::format("none on rank {}", rank));
  return std::make_unique<ThreadFused>(std::move(world), std::move(device), host.split(0, rank));
}

}  // namespace baton
