#include "stand_in.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iterator>
#include <new>
#include <stdexcept>
#include <utility>

#include "baton/error.hpp"
#include "baton/memory.hpp"

namespace support {
namespace {

using namespace baton;

/// All devices, to tell whose memory an address is. They may live for as long as the process.
std::mutex devices_mutex;
std::vector<const StandInDevice*>& devices() {
  static std::vector<const StandInDevice*>& all = *new std::vector<const StandInDevice*>;
  return all;
}

[[noreturn]] void fail() {
  Error error(ErrorCode::device, "expected the stand-in device to work, found it broken");
  error.backend_code = 700;
  error.backend_text = "broken";
  throw error;
}

}  // namespace

/// A thread that does work in the order in which it was given.
class StandInDevice::Channel {
 public:
  explicit Channel(std::uint64_t seed)
      : random_(seed), delays_(seed != 0), thread_([this] { run(); }) {}
  ~Channel() {
    give({});
    thread_.join();
  }
  void give(std::function<void()> work) {
    {
      const std::lock_guard lock(mutex_);
      work_.push_back(std::move(work));
    }
    changed_.notify_one();
  }

 private:
  void run() {
    for (;;) {
      std::function<void()> work;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return !work_.empty(); });
        work = std::move(work_.front());
        work_.pop_front();
      }
      if (!work) return;
      if (delays_ && random_() % 4 == 0)
        std::this_thread::sleep_for(std::chrono::microseconds(random_() % 100));
      work();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  std::minstd_rand random_;
  bool delays_;
  std::thread thread_;
};

struct StandInDevice::StreamState {
  std::shared_ptr<Channel> channel;
};

class StandInMarker final : public Marker {
 public:
  explicit StandInMarker(const StandInDevice& device) : device_(device) {}
  void set(Stream stream) override {
    reached_ = std::make_shared<std::atomic<bool>>(false);
    StandInDevice::state_of(stream).channel->give([reached = reached_] {
      *reached = true;
      reached->notify_all();
    });
  }
  bool passed() override {
    if (device_.broken()) fail();
    return !reached_ || *reached_;
  }
  void hold(Stream stream) override {
    if (!reached_) return;
    StandInDevice::state_of(stream).channel->give([reached = reached_] { reached->wait(false); });
  }

 private:
  const StandInDevice& device_;
  std::shared_ptr<std::atomic<bool>> reached_;  // when it was last set; null: never
};

class StandInGate final : public Gate {
 public:
  ~StandInGate() override { open(); }
  void hold(Stream stream) override {
    StandInDevice::state_of(stream).channel->give([state = state_, turn = ++held_] {
      std::unique_lock lock(state->mutex);
      state->changed.wait(lock, [&] { return state->open >= turn; });
    });
  }
  void open() noexcept override {
    {
      const std::lock_guard lock(state_->mutex);
      state_->open = held_;
    }
    state_->changed.notify_all();
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::uint64_t open = 0;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
  std::uint64_t held_ = 0;
};

StandInDevice::StandInDevice(const StandInOptions& options) : options_(options) {
  const int file = memfd_create("stand-in device", 0);
  if (file < 0 || ftruncate(file, static_cast<off_t>(options.memory)) != 0)
    throw std::runtime_error("no memory for a stand-in device");
  const auto map = [&](int access) {
    void* const at = mmap(nullptr, options.memory, access, MAP_SHARED, file, 0);
    if (at == MAP_FAILED) throw std::runtime_error("no room for a stand-in device");
    return static_cast<std::byte*>(at);
  };
  view_ = map(PROT_NONE);
  real_ = map(PROT_READ | PROT_WRITE);
  close(file);
  for (int i = 0; i < options.channels; ++i)
    channels_.push_back(std::make_shared<Channel>(options.seed));
  const std::lock_guard lock(devices_mutex);
  devices().push_back(this);
}

StandInDevice::~StandInDevice() {
  {
    const std::lock_guard lock(devices_mutex);
    std::erase(devices(), this);
  }
  streams_.clear();
  channels_.clear();
  munmap(view_, options_.memory);
  munmap(real_, options_.memory);
}

Residence StandInDevice::residence(const void* address) const {
  const auto* at = static_cast<const std::byte*>(address);
  const auto has = [&](const StandInDevice& device) {
    return device.view_ <= at && at < device.view_ + device.options_.memory;
  };
  if (has(*this)) return Residence::device;
  const std::lock_guard lock(devices_mutex);
  const bool others = std::ranges::any_of(devices(), [&](auto* d) { return has(*d); });
  return others ? Residence::other : Residence::host;
}

std::byte* StandInDevice::reachable(std::byte* address) const {
  if (residence(address) == Residence::host) return address;
  const std::lock_guard lock(devices_mutex);
  for (const StandInDevice* device : devices())
    if (device->view_ <= address && address < device->view_ + device->options_.memory)
      return device->real_ + (address - device->view_);
  return address;
}

std::byte* StandInDevice::host_view(const void* address) const {
  return reachable(static_cast<std::byte*>(const_cast<void*>(address)));
}

void StandInDevice::check_stream(Stream stream) const {
  if (!stream)
    throw Error(ErrorCode::invalid_argument,
                "expected a stream of its own for collectives, found the device's default stream");
}

std::byte* StandInDevice::allocate(std::size_t bytes) {
  constexpr std::size_t alignment = 256;
  bytes = std::max((bytes + alignment - 1) / alignment * alignment, alignment);
  const std::lock_guard lock(mutex_);
  std::size_t at = 0;
  for (const auto& [offset, length] : blocks_) {
    if (offset - at >= bytes) break;
    at = offset + length;
  }
  if (options_.memory - at < bytes)
    throw Error(ErrorCode::memory, "expected " + std::to_string(bytes) +
                                       " bytes of the stand-in device's memory, found too little");
  blocks_[at] = bytes;
  allocated_ += bytes;
  return view_ + at;
}

void StandInDevice::free(std::byte* memory) noexcept {
  if (!memory) return;
  const std::lock_guard lock(mutex_);
  const auto block = blocks_.find(static_cast<std::size_t>(memory - view_));
  allocated_ -= block->second;
  std::memset(real_ + block->first, 0xdd, block->second);
  blocks_.erase(block);
}

std::byte* StandInDevice::allocate_host(std::size_t bytes) {
  auto* const memory = static_cast<std::byte*>(::operator new (bytes, std::align_val_t{256}));
  const std::lock_guard lock(mutex_);
  host_blocks_[memory] = bytes;
  return memory;
}
void StandInDevice::free_host(std::byte* memory) noexcept {
  {
    const std::lock_guard lock(mutex_);
    host_blocks_.erase(memory);
  }
  ::operator delete (memory, std::align_val_t{256});
}
std::size_t StandInDevice::host_blocks() {
  const std::lock_guard lock(mutex_);
  return host_blocks_.size();
}
bool StandInDevice::locked(const void* address, std::size_t bytes) {
  const auto* const begin = static_cast<const std::byte*>(address);
  const std::lock_guard lock(mutex_);
  const auto after = host_blocks_.upper_bound(begin);
  if (after == host_blocks_.begin()) return false;
  const auto& [block, size] = *std::prev(after);
  return begin + bytes <= block + size;
}

StandInDevice::StreamState& StandInDevice::state_of(Stream stream) {
  return *static_cast<StreamState*>(stream);
}

Stream StandInDevice::new_stream(std::shared_ptr<Channel> channel) {
  const std::lock_guard lock(mutex_);
  streams_.push_back(std::make_unique<StreamState>(StreamState{std::move(channel)}));
  return streams_.back().get();
}
Stream StandInDevice::make_stream() {
  if (options_.all_share) return make_user_stream();
  return new_stream(std::make_shared<Channel>(options_.seed));
}
Stream StandInDevice::make_user_stream() {
  if (channels_.empty()) return new_stream(std::make_shared<Channel>(options_.seed));
  std::size_t channel = 0;
  {
    const std::lock_guard lock(mutex_);
    channel = next_channel_++ % channels_.size();
  }
  return new_stream(channels_[channel]);
}

void StandInDevice::end_stream(Stream stream) noexcept {
  synchronize(stream);
  std::unique_ptr<StreamState> ended;
  const std::lock_guard lock(mutex_);
  const auto at = std::find_if(streams_.begin(), streams_.end(),
                               [&](const auto& s) { return s.get() == stream; });
  ended = std::move(*at);
  streams_.erase(at);
}

std::unique_ptr<Marker> StandInDevice::make_marker() {
  return std::make_unique<StandInMarker>(*this);
}
std::unique_ptr<Gate> StandInDevice::make_gate() { return std::make_unique<StandInGate>(); }

void StandInDevice::run(Stream stream, std::function<void()> work) {
  state_of(stream).channel->give(std::move(work));
}

void StandInDevice::synchronize(Stream stream) {
  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  run(stream, [&] {
    const std::lock_guard lock(mutex);
    done = true;
    changed.notify_one();
  });
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return done; });
}

void StandInDevice::give(std::span<const Rows> rows, int operands, std::size_t element_bytes,
                         Stream stream, std::function<void(const Rows&)> work) {
  if (broken_) fail();
  std::vector<Rows> all(rows.begin(), rows.end());
  for (Rows& one : all)
    for (int k = 0; k < operands; ++k) one.at[k] = reachable(one.at[k]);
  run(stream, [all = std::move(all), operands, element_bytes, work = std::move(work)] {
    const auto each_row = [&](const auto& visit) {
      for (const Rows& one : all)
        for (std::int64_t row = 0; row < one.rows; ++row) {
          Rows single = one;
          single.rows = 1;
          for (int k = 0; k < operands; ++k) single.at[k] += row * one.stride[k];
          visit(single);
        }
    };
    // Unless it is read as well.
    each_row([&](const Rows& row) {
      if (operands == 1 || row.at[0] == row.at[1] || row.at[0] == row.at[2]) return;
      std::memset(row.at[0], 0xdb, static_cast<std::size_t>(row.block) * element_bytes);
    });
    std::this_thread::yield();
    each_row(work);
  });
}

void StandInDevice::copy(std::span<const Rows> rows, std::size_t element_bytes, Stream stream) {
  give(rows, 2, element_bytes, stream, [element_bytes](const Rows& row) {
    std::memmove(row.at[0], row.at[1], static_cast<std::size_t>(row.block) * element_bytes);
  });
}

void StandInDevice::fold(OpKind op, Datatype type, std::span<const Rows> rows, Stream stream) {
  give(rows, 3, size_of(type), stream, [fold = host::reference_fold(op, type)](const Rows& row) {
    fold(row.at[0], row.at[1], row.at[2], static_cast<std::size_t>(row.block));
  });
}

void StandInDevice::divide(Datatype type, int ranks, std::span<const Rows> rows, Stream stream) {
  give(rows, 1, size_of(type), stream,
       [divide = host::reference_divide(type), ranks](const Rows& row) {
         divide(row.at[0], static_cast<std::size_t>(row.block), ranks);
       });
}

}  // namespace support
