#include "stand_in_fused.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>

#include "baton/error.hpp"

namespace support {
namespace {

using namespace baton;

/// One end of a message; `number` is its place among those from the one rank to the other.
struct End {
  bool sends;
  int peer;
  std::uint64_t number;
  std::byte* at;
  std::size_t bytes;
  bool complete = false;
};

struct FusedGroup {
  std::vector<End> ends;
  std::set<Stream> streams;
  std::size_t arrived = 0;  // streams that came to it
  bool begun = false, finished = false;
  std::size_t left = 0;  // ends that are not complete
};

/// What is sent, as it was when its fused group began.
struct Parcel {
  std::vector<std::byte> bytes;
  std::shared_ptr<FusedGroup> group;
  std::size_t end;  // of the fused group
};

/// What the ranks of one communicator share.
struct World {
  World(int size, const StandInFusedOptions& options)
      : size(size), options(options), random(options.seed) {}

  const int size;
  const StandInFusedOptions options;
  std::mutex mutex;
  std::condition_variable changed;
  std::minstd_rand random;
  std::map<std::tuple<int, int, std::uint64_t>, Parcel> parcels;  // from, to, number
  // Of the split under way:
  std::map<int, std::pair<int, int>> wishes;  // of each rank: color, key
  int leaving = 0;                            // ranks that are to take their part yet
  std::map<int, std::shared_ptr<World>> parts;
};

/// One rank; lives on while streams have fused groups to pass.
class Rank {
 public:
  Rank(std::shared_ptr<World> of, int rank) : world(std::move(of)), rank(rank) {}

  const std::shared_ptr<World> world;
  const int rank;
  // Under the world's mutex:
  bool aborted = false;
  std::string failure;
  std::deque<std::shared_ptr<FusedGroup>> groups;  // not complete, the oldest first

  /// Work of a stream: returns when the fused group is complete.
  void pass(const std::shared_ptr<FusedGroup>& group) {
    std::unique_lock lock(world->mutex);
    ++group->arrived;
    world->changed.notify_all();
    const auto until = std::chrono::steady_clock::now() + world->options.limit;
    const auto wait = [&](const auto& condition) {
      const auto over = [&] { return aborted || group->finished || condition(); };
      return world->changed.wait_until(lock, until, over) && !aborted && !group->finished;
    };
    bool goes_on =
        wait([&] { return group->arrived == group->streams.size() && groups.front() == group; });
    if (goes_on && !std::exchange(group->begun, true)) begin(group);
    while (goes_on && group->left > 0) {
      std::vector<End*> ready = ready_ends(*group);
      if (ready.empty()) {
        goes_on = wait([&] { return group->left == 0 || !ready_ends(*group).empty(); });
        continue;
      }
      if (world->options.seed != 0 && world->random() % 2 == 0) {
        const std::chrono::microseconds delay(world->random() % 100);
        lock.unlock();
        std::this_thread::sleep_for(delay);
        lock.lock();
        ready = ready_ends(*group);
      }
      if (!ready.empty()) receive(*ready[world->random() % ready.size()]);
    }
    if (!aborted && !group->finished) finish(*group);
    group->finished = true;
    std::erase(groups, group);
    world->changed.notify_all();
  }

 private:
  void begin(const std::shared_ptr<FusedGroup>& group) {
    for (std::size_t i = 0; i < group->ends.size(); ++i) {
      const End& end = group->ends[i];
      if (end.sends)
        world->parcels[{rank, end.peer, end.number}] = {{end.at, end.at + end.bytes}, group, i};
    }
    for (const End& end : group->ends)
      if (!end.sends && end.bytes > 0) std::memset(end.at, 0xdb, end.bytes);
    world->changed.notify_all();
  }

  std::vector<End*> ready_ends(FusedGroup& group) const {
    std::vector<End*> ready;
    for (End& end : group.ends)
      if (!end.sends && !end.complete && world->parcels.contains({end.peer, rank, end.number}))
        ready.push_back(&end);
    return ready;
  }

  void receive(End& end) {
    auto parcel = world->parcels.extract({end.peer, rank, end.number}).mapped();
    if (parcel.bytes.size() != end.bytes)
      failure = "expected " + std::to_string(end.bytes) + " bytes from rank " +
                std::to_string(end.peer) + ", found " + std::to_string(parcel.bytes.size());
    const std::size_t bytes = std::min(end.bytes, parcel.bytes.size());
    if (bytes > 0) std::memcpy(end.at, parcel.bytes.data(), bytes);
    end.complete = true;
    --groups.front()->left;
    End& sent = parcel.group->ends[parcel.end];
    sent.complete = true;
    --parcel.group->left;
    // While it was under way, nothing may have changed it. Behind a group that was given up, its
    // stream goes on.
    if (!parcel.group->finished && std::memcmp(parcel.bytes.data(), sent.at, sent.bytes) != 0)
      failure = "expected what rank " + std::to_string(end.peer) +
                " sends to stay as it is, found it overwritten";
    world->changed.notify_all();
  }

  /// Says what is missing, if anything is.
  void finish(const FusedGroup& group) {
    for (const End& end : group.ends)
      if (!end.complete && failure.empty())
        failure = std::string("expected the message ") + (end.sends ? "to" : "from") + " rank " +
                  std::to_string(end.peer) + " to end, found rank " + std::to_string(rank) +
                  " in a deadlock";
  }
};

class StandInFused final : public FusedTransport {
 public:
  StandInFused(std::shared_ptr<World> world, int rank, std::shared_ptr<StandInDevice> device)
      : rank_(std::make_shared<Rank>(std::move(world), rank)), device_(std::move(device)) {}

  int rank() const override { return rank_->rank; }
  int size() const override { return rank_->world->size; }

  void begin() override { group_ = std::make_shared<FusedGroup>(); }
  void send(int peer, const void* data, std::size_t bytes, Stream stream) override {
    add(true, peer, data, bytes, stream);
  }
  void recv(int peer, void* data, std::size_t bytes, Stream stream) override {
    add(false, peer, data, bytes, stream);
  }
  void end() override {
    const std::shared_ptr<FusedGroup> group = std::exchange(group_, nullptr);
    group->left = group->ends.size();
    if (group->ends.empty()) return;
    {
      const std::lock_guard lock(rank_->world->mutex);
      rank_->groups.push_back(group);
    }
    for (const Stream stream : group->streams)
      device_->run(stream, [rank = rank_, group] { rank->pass(group); });
  }

  void check() override {
    const std::lock_guard lock(rank_->world->mutex);
    if (rank_->failure.empty()) return;
    Error error(ErrorCode::transport, rank_->failure);
    error.backend_code = 6;
    error.backend_text = "stand-in";
    throw error;
  }
  void abort() noexcept override {
    const std::lock_guard lock(rank_->world->mutex);
    rank_->aborted = true;
    rank_->world->changed.notify_all();
  }

  std::unique_ptr<FusedTransport> split(int color, int key) override {
    World& all = *rank_->world;
    using Split = StandInFusedOptions::Split;
    if (all.options.split == Split::error) throw Error(ErrorCode::transport, "a split that fails");
    if (all.options.split == Split::null) return nullptr;
    std::unique_lock lock(all.mutex);
    all.changed.wait(lock, [&] { return all.leaving == 0; });  // as before the last split
    all.wishes[rank()] = {color, key};
    if (all.wishes.size() == static_cast<std::size_t>(size())) {
      std::map<int, int> sizes;
      for (const auto& [rank, wish] : all.wishes) ++sizes[wish.first];
      for (const auto& [its, size] : sizes)
        all.parts[its] = std::make_shared<World>(size, all.options);
      all.leaving = size();
      all.changed.notify_all();
    }
    all.changed.wait(lock, [&] { return all.leaving > 0; });
    int place = 0;
    for (const auto& [other, wish] : all.wishes)
      place += wish.first == color && std::pair(wish.second, other) < std::pair(key, rank());
    const std::shared_ptr<World> part = all.parts[color];
    if (--all.leaving == 0) {
      all.wishes.clear();
      all.parts.clear();
      all.changed.notify_all();
    }
    if (color < 0) return nullptr;
    return std::make_unique<StandInFused>(part, place, device_);
  }

 private:
  void add(bool sends, int peer, const void* data, std::size_t bytes, Stream stream) {
    if (!group_ || peer < 0 || peer >= size())
      throw Error(ErrorCode::transport,
                  "expected a message of a fused group with a rank, found another");
    if (device_->residence(data) != Residence::device)
      throw Error(ErrorCode::transport, "expected memory of the device, found another's");
    group_->ends.push_back(
        {sends, peer, numbers_[{peer, sends}]++, device_->host_view(data), bytes});
    group_->streams.insert(stream);
  }

  const std::shared_ptr<Rank> rank_;
  const std::shared_ptr<StandInDevice> device_;
  std::shared_ptr<FusedGroup> group_;  // being given
  std::map<std::pair<int, bool>, std::uint64_t> numbers_;
};

}  // namespace

std::vector<std::unique_ptr<FusedTransport>> stand_in_fused(
    int size, const std::shared_ptr<StandInDevice>& device, const StandInFusedOptions& options) {
  const auto world = std::make_shared<World>(size, options);
  std::vector<std::unique_ptr<FusedTransport>> transports;
  for (int rank = 0; rank < size; ++rank)
    transports.push_back(std::make_unique<StandInFused>(world, rank, device));
  return transports;
}

}  // namespace support
