#pragma once
/// The shared state of a group's threads.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "baton/thread.hpp"
#include "bell.hpp"
#include "mailbox.hpp"
#include "message.hpp"

namespace baton::threads {

/// A group's mailboxes, buffers and bells. It lives as long as the group's last transport, so a
/// rank may leave early.
class Group {
 public:
  /// `bells` in rank order. Ranks spin for `spin` before they block.
  Group(std::vector<std::shared_ptr<Bell>> bells, const ThreadOptions& options,
        std::chrono::microseconds spin);

  int size() const { return static_cast<int>(members_.size()); }
  const ThreadOptions& options() const { return options_; }
  std::chrono::microseconds spin() const { return spin_; }
  Mailbox& mailbox(int rank) { return member(rank).mailbox; }
  BufferPool& buffers(int rank) { return member(rank).buffers; }
  Bell& bell(int rank) { return *member(rank).bell; }

  /// Completes both sides after the copy, and rings for each side except `self` (null: for both).
  /// Both sides have been taken from their mailbox.
  void complete(Entry& send, Entry& recv, const Entry* self);
  /// The device that copies for a rank; null: all memory is the host's.
  const std::shared_ptr<Device>& device(int rank) const {
    return options_.devices[options_.devices.size() == 1 ? 0 : static_cast<std::size_t>(rank)];
  }
  bool has_devices() const { return !options_.devices.empty(); }

  struct Seat {
    std::shared_ptr<Group> group;  ///< null: the rank's color was negative
    int rank = -1;
  };
  /// This rank's seat in the group of its color. Returns when all ranks have called it; throws
  /// Error(transport) if a rank has left.
  Seat split(int rank, int color, int key);
  /// This rank's seat in the group of these ranks, which the first of them to call it makes.
  Seat subgroup(int rank, const std::vector<int>& ranks, int number);
  /// Declares that a rank makes no further calls.
  void leave(int rank);

 private:
  struct Member {
    Member(std::shared_ptr<Bell> bell, std::size_t eager_bytes)
        : bell(std::move(bell)), buffers(eager_bytes) {}
    std::shared_ptr<Bell> bell;
    Mailbox mailbox;
    BufferPool buffers;

    // for split(), under its lock
    int color = 0;
    int key = 0;
    bool arrived = false;
    bool left = false;
    Seat seat;  // from the last complete split
  };

  Member& member(int rank) { return *members_[static_cast<std::size_t>(rank)]; }
  void seat_everyone();
  std::shared_ptr<Group> group_of(const std::vector<int>& ranks, std::uint64_t seed) const;

  std::vector<std::unique_ptr<Member>> members_;
  ThreadOptions options_;
  std::chrono::microseconds spin_;

  std::mutex split_mutex_;
  std::condition_variable split_changed_;
  int arrived_ = 0;
  int splits_ = 0;  // complete ones
  struct Subgroup {
    std::shared_ptr<Group> group;
    std::size_t seated = 0;
  };
  std::map<std::pair<std::vector<int>, int>, Subgroup> subgroups_;  // that some have not joined
};

}  // namespace baton::threads
