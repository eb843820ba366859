#pragma once
/// Messages in groups for tests: what NCCL does, among threads.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "baton/group_transport.hpp"
#include "stand_in.hpp"

namespace support {

struct StandInGroupsOptions {
  std::uint64_t seed = 0;  ///< not 0: messages are delayed at random
  /// After so long without an end, a group is taken for deadlocked: its stream goes on, and check()
  /// says what it waited for.
  std::chrono::milliseconds limit{60'000};
};

/// Transports of `size` ranks on one stand-in device, in rank order. Messages match by their number
/// between two ranks. A group holds its streams until all its messages are complete, and groups of
/// a rank run one after another whatever their streams. When a group begins, what it receives into
/// is filled with rubbish and what it sends is taken note of; check() reports messages of unequal
/// length, and what has changed while it was being sent.
std::vector<std::unique_ptr<baton::GroupTransport>> stand_in_groups(
    int size, const std::shared_ptr<StandInDevice>& device, const StandInGroupsOptions& = {});

}  // namespace support
