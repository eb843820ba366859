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

/// The fused groups in the order in which they run. Throws Error(invalid_argument) if another step,
/// or a message of another round, lies inside a fused group: then messages of equal round are not
/// under way together.
std::vector<FusedGroup> fused_groups_of(const Plan& plan);
/// For example "send to rank 1 and receive from ranks 0 and 2".
std::string in_words(const Plan& plan, const FusedGroup& group);

/// Enqueues whole plans in a device's streams: messages as fused groups, local steps as the
/// device's work. Nothing waits on the host.
class FusedQueue {
 public:
  FusedQueue(Device& device, FusedTransport& transport) : device_(device), transport_(transport) {}

  /// `bases`: as in Run. `markers`: empty, or one to set first and one to set after each fused
  /// group. Throws errors of the device and the transport; part of the plan may then be under way.
  void give(const Plan& plan, std::span<const FusedGroup> groups, std::span<std::byte* const> bases,
            const Kernels& kernels, Stream stream,
            std::span<const std::unique_ptr<Marker>> markers);

 private:
  void exchange(const Plan& plan, const FusedGroup& group, std::span<std::byte* const> bases,
                Stream stream);

  Device& device_;
  FusedTransport& transport_;
  std::vector<Rows> rows_;  // of the step being enqueued
};

}  // namespace baton::execute
