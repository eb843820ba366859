#pragma once
/// Messages from or to a device's memory.

#include <cstddef>
#include <memory>
#include <vector>

#include "../../base/marker_pool.hpp"
#include "baton/device.hpp"
#include "group.hpp"

namespace baton::threads {

/// The copies by one rank's device, for messages that this rank matched. A message completes when
/// this rank tests and finds its copy done. One side is this rank's own, so it does test.
class DeviceCopies {
 public:
  DeviceCopies(Group& group, std::shared_ptr<Device> device);
  ~DeviceCopies();
  DeviceCopies(const DeviceCopies&) = delete;
  DeviceCopies& operator=(const DeviceCopies&) = delete;

  /// Whether the host cannot access this side's data.
  bool needed(const Entry& entry) const {
    return entry.bytes > 0 && device_->residence(entry.data) != Residence::host;
  }
  void start(Entry& send, Entry& recv);
  bool any() const { return !copies_.empty(); }
  /// Completes the messages whose copies are done. If one failed, completes them and throws
  /// Error(device).
  void complete();
  /// Waits for all copies.
  void finish() noexcept;

 private:
  struct Copy {
    Entry* send;
    Entry* recv;
    std::unique_ptr<Marker> marker;
  };

  Group& group_;
  std::shared_ptr<Device> device_;
  Stream stream_ = nullptr;
  std::vector<Copy> copies_;  // oldest first
  base::MarkerPool markers_;
};

}  // namespace baton::threads
