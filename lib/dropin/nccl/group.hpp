#pragma once
/// ncclGroupStart and ncclGroupEnd.

#include <functional>
#include <memory>
#include <optional>

#include "baton/stream.hpp"
#include "communicator.hpp"

namespace baton::nccl_abi {

/// A call that a group holds back.
struct Job {
  std::shared_ptr<ncclComm> member;  ///< null: it makes one
  std::function<void()> body;        ///< empty: a message
  std::optional<StreamMessage> message = std::nullopt;
  std::optional<Stream> stream = std::nullopt;  ///< of a collective

  /// Whether it is in the calling thread's own stream, which its handle names in no other thread.
  bool of_thread() const {
    return (message ? message->stream : stream) == Stream{cudaStreamPerThread};
  }
};

/// Opens a group of this thread; groups nest.
void begin_group();
/// Whether this thread has a group open.
bool in_group();
/// Does the job now, or at the end of the thread's group. Throws Error(unsupported) for jobs of two
/// communicators in the thread's own stream, since one of them needs another thread.
ncclResult_t give(Job job);
/// In a group, a call failed: the group will do nothing. Returns the code.
ncclResult_t spoil_group(ncclResult_t code);
/// Ends a group; with the outermost one, jobs are done. Jobs of different communicators go side by
/// side. Of one communicator, collectives go in order and messages behind them, side by side; all
/// its streams are at one point meanwhile, as if each had been given all of the group's calls.
/// `drop`: nothing is done.
ncclResult_t end_group(bool drop = false);

}  // namespace baton::nccl_abi
