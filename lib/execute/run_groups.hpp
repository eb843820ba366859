#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "baton/group_transport.hpp"
#include "plan.hpp"
#include "run.hpp"

namespace baton {

/// The groups of a plan whose schedule grouped() made: [first, last) are its messages.
struct MessageGroup {
  std::uint32_t first, last;
};

/// In the order in which they run. Throws Error(invalid_argument) where another step, or a message
/// of another round, stands amid a group, so that messages of equal round are not all under way
/// together.
std::vector<MessageGroup> groups_of(const Plan& plan);
/// "send to rank 1 and receive from ranks 0 and 2"
std::string in_words(const Plan& plan, const MessageGroup& group);

/// Gives whole plans to a device's streams: messages as groups, and what stands between as the
/// device's work. Nothing waits on the host.
class GroupQueue {
 public:
  GroupQueue(Device& device, GroupTransport& transport) : device_(device), transport_(transport) {}

  /// `bases`: as Run's. `markers`: none, or one that is set before all else and one after each
  /// group. Throws what the device and the transport throw; part of the plan may then be under way.
  void give(const Plan& plan, std::span<const MessageGroup> groups,
            std::span<std::byte* const> bases, const Kernels& kernels, Stream stream,
            std::span<const std::unique_ptr<Marker>> markers);

 private:
  void exchange(const Plan& plan, const MessageGroup& group, std::span<std::byte* const> bases,
                Stream stream);

  Device& device_;
  GroupTransport& transport_;
  std::vector<Rows> rows_;  // of the step being given
};

}  // namespace baton
