#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "baton/fused_transport.hpp"
#include "device_run.hpp"
#include "plan.hpp"

namespace baton::execute {

/// A fused group of a plan whose schedule fused() made: [first, last) are its messages.
struct FusedGroup {
  std::uint32_t first, last;
};

/// In the order in which they run. Throws Error(invalid_argument) where another step, or a message
/// of another round, stands amid a fused group, so that messages of equal round are not all under
/// way together.
std::vector<FusedGroup> fused_groups_of(const Plan& plan);
/// "send to rank 1 and receive from ranks 0 and 2"
std::string in_words(const Plan& plan, const FusedGroup& group);

/// Gives whole plans to a device's streams: messages as fused groups, and the steps between as the
/// device's work. Nothing waits on the host.
class FusedQueue {
 public:
  FusedQueue(Device& device, FusedTransport& transport) : device_(device), transport_(transport) {}

  /// `bases`: as Run's. `markers`: none, or one that is set before all else and one after each
  /// fused group. Throws what the device and the transport throw; part of the plan may then be
  /// under way.
  void give(const Plan& plan, std::span<const FusedGroup> groups, std::span<std::byte* const> bases,
            const Kernels& kernels, Stream stream,
            std::span<const std::unique_ptr<Marker>> markers);

 private:
  void exchange(const Plan& plan, const FusedGroup& group, std::span<std::byte* const> bases,
                Stream stream);

  Device& device_;
  FusedTransport& transport_;
  std::vector<Rows> rows_;  // of the step being given
};

}  // namespace baton::execute
