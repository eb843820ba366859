#pragma once
/// What a ncclComm_t points to.

#include <nccl.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "baton/stream.hpp"
#include "rendezvous.hpp"
#include "result.hpp"
#include "scaling.hpp"

namespace baton::nccl_abi {

/// One rank's communicator.
class Member {
 public:
  /// Collective. `name`: in errors and in `baton status`; empty: none. Throws as connect().
  Member(Origin origin, int rank, int size, int ordinal, const std::string& name = {});
  Member(Origin origin, StreamCommunicator communicator, int ordinal);
  ~Member();
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  int ordinal() const { return ordinal_; }
  /// Whether both are ranks of one communicator on one device.
  bool beside(const Member& other) const {
    return origin_.meeting == other.origin_.meeting && ordinal_ == other.ordinal_;
  }

  /// Throws Error(invalid_argument) after finalize() and revoke(). For calls of the program.
  void require_in_use() const;
  using Use = std::function<void(StreamCommunicator&)>;
  /// Calls `use`, one thread at a time. Throws Error(invalid_argument) after finalize(),
  /// Error(transport) after revoke() and abort(), and what `use` throws.
  void run(const Use& use);
  /// The communicator of some ranks; null for those without a color. Collective.
  std::shared_ptr<ncclComm> split(int color, int key, const std::string& name);
  /// The communicator of all ranks but some, which do not take part. Collective among the others.
  std::shared_ptr<ncclComm> without(const std::set<int>& ranks, const std::string& name);
  /// Returns when all calls are complete. No others are taken.
  void finalize();
  /// Ends all calls under way. Any thread may call it. A call that begins before the end of this
  /// ends, too, or throws Error(transport) that says `why`.
  void abort(const std::string& why) { end(Phase::aborted, why); }
  /// As abort(), and later calls throw Error(invalid_argument).
  void revoke(const std::string& why) { end(Phase::revoked, why); }

  /// The first failure of a call that had returned; success: none so far.
  ncclResult_t asynchronous_error();
  void keep(const Failure& failure) noexcept;
  std::string last_text() const;

  Scalings& scalings() { return *scalings_; }
  /// Memory and windows that the program registered.
  void* register_memory();
  bool deregister(void* handle);

 private:
  enum class Phase : std::uint8_t { in_use, finalized, revoked, aborted };
  void end(Phase phase, const std::string& why);

  const Origin origin_;
  const int ordinal_;
  std::shared_ptr<StreamCommunicator> communicator_;
  const int rank_, size_;
  std::unique_ptr<Scalings> scalings_;
  std::mutex mutex_;  // of the thread that uses communicator_
  std::atomic<Phase> phase_ = Phase::in_use;
  std::uint64_t parts_ = 0;  // split() and without() so far
  mutable std::mutex told_mutex_;
  Failure told_;
  std::mutex registered_mutex_;
  std::set<std::unique_ptr<char>> registered_;
};

}  // namespace baton::nccl_abi

struct ncclComm final : baton::nccl_abi::Member {
  using Member::Member;
};

namespace baton::nccl_abi {

/// Makes a communicator a handle.
ncclComm_t given_out(std::shared_ptr<ncclComm> member);
/// The communicator of a handle; null if it is none of this library's.
std::shared_ptr<ncclComm> of_handle(const ncclComm* handle);
/// Ends a handle. The communicator lives until its last call has returned.
void take_back(const ncclComm* handle);

}  // namespace baton::nccl_abi
