#pragma once
/// What moves bytes in the order of a device's streams: sends and receives in groups, as NCCL has
/// them.

#include <cstddef>
#include <memory>

#include "baton/device.hpp"
#include "baton/export.hpp"

namespace BATON_API baton {

/// Messages among a group of ranks, each with a device, that are given to streams instead of being
/// waited for. One thread at a time uses one object.
///
/// What is sent and received between begin() and end() is a *group*. The stream comes to it after
/// all that it was given before, and goes on when all messages of the group are complete; they make
/// progress side by side, so none may touch what another of the group receives. Groups of one
/// stream run one after another; two in different streams may, in the order in which they were
/// given, or side by side.
///
/// There are no tags: the k-th message that a rank gives for another is the k-th that the other
/// expects of it, over all groups and streams. Both give the same number of bytes. Buffers are the
/// device's, and are in use until the stream has passed the group.
///
/// Errors: whatever cannot be given throws Error(transport) or Error(device), with the library's
/// own code and text; what fails later is found by check(). After either, nothing but abort() and
/// the destructor may be called.
class GroupTransport {
 public:
  /// What was given must be complete, or abort() called before.
  virtual ~GroupTransport() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;

  virtual void begin() = 0;
  /// To any rank, this one included.
  virtual void send(int peer, const void* data, std::size_t bytes, Stream stream) = 0;
  virtual void recv(int peer, void* data, std::size_t bytes, Stream stream) = 0;
  /// Gives the group to its streams; does not wait for the peers' streams, but may for their calls.
  virtual void end() = 0;

  /// Throws what went wrong in groups that were given before, as far as it is known.
  virtual void check() = 0;
  /// Lets streams go on that wait in groups, with undefined data.
  virtual void abort() noexcept = 0;

  /// The transport of the ranks that give the same color, ordered by key, then by rank; null where
  /// color is negative. Collective, with nothing under way. Throws Error(transport).
  virtual std::unique_ptr<GroupTransport> split(int color, int key) = 0;
};

}  // namespace baton
