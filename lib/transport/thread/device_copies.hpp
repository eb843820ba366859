#pragma once
/// Messages from or to a device's memory.

#include <cstddef>
#include <memory>
#include <vector>

#include "../../base/marker_pool.hpp"
#include "baton/device.hpp"
#include "group.hpp"

namespace baton::threads {

/// What one rank's device copies for messages whose two sides this rank brought together. They are
/// complete when the device has come so far and this rank looks; it does, since one side is its
/// own.
class DeviceCopies {
 public:
  DeviceCopies(Group& group, std::shared_ptr<Device> device);
  ~DeviceCopies();
  DeviceCopies(const DeviceCopies&) = delete;
  DeviceCopies& operator=(const DeviceCopies&) = delete;

  /// Whether the host cannot read or write this side's data.
  bool needed(const Entry& entry) const {
    return entry.bytes > 0 && device_->residence(entry.data) != Residence::host;
  }
  void start(Entry& send, Entry& recv);
  bool any() const { return !copies_.empty(); }
  /// Completes the messages whose copies are. Throws Error(device), and completes them, if one
  /// failed.
  void complete();
  /// Waits for all.
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
  std::vector<Copy> copies_;  // the oldest first
  base::MarkerPool markers_;
};

}  // namespace baton::threads
