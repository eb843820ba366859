#pragma once
/// Messages in the order of a device's streams: sends and receives in fused groups, as NCCL has
/// them.

#include <cstddef>
#include <memory>

#include "baton/device.hpp"

#pragma GCC visibility push(default)
namespace baton {

/// Messages among a group of ranks, each with a device. The messages are given to streams; nobody
/// waits for them on the host. One thread at a time uses one object.
///
/// The sends and receives between begin() and end() are a *fused group*. A stream reaches the fused
/// group after all its earlier work, and goes on when all messages of the fused group are complete.
/// These messages progress side by side, so none may touch the buffer of another's receive. Fused
/// groups of one stream run one after another. Fused groups of different streams run in the order
/// of the calls or side by side.
///
/// There are no tags: the k-th message that a rank gives for another is the k-th that the other
/// expects of it, over all fused groups and streams. Both give the same number of bytes. Buffers
/// are in the device's memory, and in use until the stream has passed the fused group.
///
/// Errors: a call that fails throws Error(transport) or Error(device), with the library's own code
/// and text; check() finds later failures. After either, only abort() and the destructor may be
/// called.
class FusedTransport {
 public:
  /// All messages must be complete, or abort() called before.
  virtual ~FusedTransport() = default;

  virtual int rank() const = 0;  ///< this rank, from 0
  virtual int size() const = 0;  ///< ranks of the group

  virtual void begin() = 0;  ///< opens a fused group
  /// Sends `bytes` bytes to any rank, this one included.
  virtual void send(int peer, const void* data, std::size_t bytes, Stream stream) = 0;
  /// Receives exactly `bytes` bytes from any rank, this one included.
  virtual void recv(int peer, void* data, std::size_t bytes, Stream stream) = 0;
  /// Gives the fused group to its streams. May wait for the peers' calls; does not wait for their
  /// streams.
  virtual void end() = 0;

  /// Throws the first failure of an earlier fused group, as far as it is known.
  virtual void check() = 0;
  /// Ends a call of another thread that waits for peers: it throws Error(transport). Afterwards,
  /// only abort() and the destructor may be called. Any thread may call it.
  virtual void interrupt() noexcept {}
  /// Lets streams go on that wait in fused groups, with undefined data.
  virtual void abort() noexcept = 0;

  /// The transport of the ranks that give the same color, ordered by key, then by rank; null where
  /// color is negative. Collective, with nothing under way. Throws Error(transport); then this one
  /// is aborted.
  virtual std::unique_ptr<FusedTransport> split(int color, int key) = 0;
};

}  // namespace baton
#pragma GCC visibility pop
