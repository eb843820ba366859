#pragma once
/// Messages in fused groups for tests: what NCCL does, among threads.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "baton/fused_transport.hpp"
#include "stand_in.hpp"

namespace support {

struct StandInFusedOptions {
  std::uint64_t seed = 0;  ///< not 0: messages are delayed at random
  /// After so long without an end, a fused group is taken for deadlocked: its stream goes on, and
  /// check() says what it waited for.
  std::chrono::milliseconds limit{60'000};
  enum class Split : std::uint8_t { part, error, null } split = Split::part;  ///< what it gives
};

/// Transports of `size` ranks on one stand-in device, in rank order. Messages match by their number
/// between two ranks. A fused group holds its streams until all its messages are complete, and
/// those of a rank run one after another whatever their streams. When a fused group begins, what it
/// receives into is filled with rubbish and what it sends is taken note of; check() reports
/// messages of unequal length, and what has changed while it was being sent.
std::vector<std::unique_ptr<baton::FusedTransport>> stand_in_fused(
    int size, const std::shared_ptr<StandInDevice>& device, const StandInFusedOptions& = {});

}  // namespace support
