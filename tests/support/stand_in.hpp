#pragma once
/// A device for tests, of threads and of memory that the host cannot touch.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "baton/device.hpp"

namespace support {

struct StandInOptions {
  std::uint64_t seed = 0;  ///< not 0: work is delayed at random
  std::size_t memory = std::size_t{64} << 20;
  /// What users' streams run on, as a GPU's hardware queues: each is a thread, which does the work
  /// of all its streams in the order in which it was given. 0: each stream has its own.
  int channels = 0;
  /// The library's own streams share them, too, as on a GPU (an H200 does so).
  bool all_share = false;
};

/// Stands in for a GPU. Its memory is at addresses that fault when the host reads or writes them.
/// Work is done by threads, later than it is given; what it writes is filled with rubbish first.
class StandInDevice final : public baton::Device {
 public:
  explicit StandInDevice(const StandInOptions& options = {});
  ~StandInDevice() override;

  std::string name() const override { return "stand-in device"; }
  baton::Residence residence(const void* address) const override;
  void check_stream(baton::Stream stream) const override;
  std::byte* allocate(std::size_t bytes) override;
  void free(std::byte* memory) noexcept override;
  std::byte* allocate_host(std::size_t bytes) override;
  void free_host(std::byte* memory) noexcept override;
  baton::Stream make_stream() override;
  void end_stream(baton::Stream stream) noexcept override;
  std::unique_ptr<baton::Marker> make_marker() override;
  std::unique_ptr<baton::Gate> make_gate() override;
  void copy(std::span<const baton::Rows> rows, std::size_t element_bytes,
            baton::Stream stream) override;
  void fold(baton::OpKind op, baton::Datatype type, std::span<const baton::Rows> rows,
            baton::Stream stream) override;
  void divide(baton::Datatype type, int ranks, std::span<const baton::Rows> rows,
              baton::Stream stream) override;

  /// A stream as users have, on one of the channels.
  baton::Stream make_user_stream();
  /// Gives the stream work of the user's own.
  void run(baton::Stream stream, std::function<void()> work);
  /// Returns when the stream has done all it was given.
  void synchronize(baton::Stream stream);
  /// Where the host may read what is at an address of this device's memory.
  std::byte* host_view(const void* address) const;
  /// Whether these bytes are part of one block of allocate_host().
  bool locked(const void* address, std::size_t bytes);
  std::size_t allocated() const { return allocated_; }  ///< bytes
  std::size_t host_blocks();                            ///< of allocate_host(), not freed yet
  /// From now on all work fails, as after an illegal access.
  void break_down() { broken_ = true; }
  bool broken() const { return broken_; }

 private:
  class Channel;
  struct StreamState;
  friend class StandInMarker;
  friend class StandInGate;

  static StreamState& state_of(baton::Stream stream);
  baton::Stream new_stream(std::shared_ptr<Channel> channel);
  /// Gives the stream work on these rows, whose first operand is filled with rubbish before.
  void give(std::span<const baton::Rows> rows, int operands, std::size_t element_bytes,
            baton::Stream stream, std::function<void(const baton::Rows&)> work);
  std::byte* reachable(std::byte* address) const;

  StandInOptions options_;
  std::byte* view_ = nullptr;  // faults
  std::byte* real_ = nullptr;  // the same memory
  std::mutex mutex_;
  std::map<std::size_t, std::size_t> blocks_;  // offset, bytes
  std::map<const std::byte*, std::size_t> host_blocks_;
  std::atomic<std::size_t> allocated_ = 0;
  std::vector<std::shared_ptr<Channel>> channels_;
  std::size_t next_channel_ = 0;
  std::vector<std::unique_ptr<StreamState>> streams_;
  std::atomic<bool> broken_ = false;
};

}  // namespace support
