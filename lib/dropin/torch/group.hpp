#pragma once
/// A process group of torch.distributed on a communicator.

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "baton/communicator.hpp"
#include "driver.hpp"
#include "work.hpp"

namespace baton::pytorch {

/// Calls of one kind, for baton_torch.stats().
struct Count {
  std::int64_t calls = 0, bytes = 0;
};

/// All operations are asynchronous: they return a Work. Ranks call collectives in the same order.
class Group final : public c10d::Backend {
 public:
  using Tensor = at::Tensor;
  using Tensors = std::vector<at::Tensor>;
  using Result = c10::intrusive_ptr<c10d::Work>;

  struct Options final : c10d::Backend::Options {
    /// `name`: that the backend is registered by.
    explicit Options(std::string name, std::chrono::milliseconds timeout = kBackendDefaultTimeout)
        : c10d::Backend::Options(std::move(name), timeout) {}
    c10::intrusive_ptr<c10d::Backend::Options> clone() const override {
      return c10::make_intrusive<Options>(*this);
    }
  };

  /// Collective over the group: ranks find each other through the store. `world`, if there is one,
  /// is the group of all ranks on every rank, and `members` are this group's ranks in it: they
  /// share options and a recording.
  Group(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
        c10::intrusive_ptr<Options> options, const c10::intrusive_ptr<Group>& world,
        std::vector<int> members, const std::string& suffix);
  ~Group() override;

  const std::string getBackendName() const override { return options_->backend; }
  c10::intrusive_ptr<c10d::Backend::Options> getBackendOptions() override { return options_; }
  void setTimeout(std::chrono::milliseconds timeout) override { options_->timeout = timeout; }
  std::uint64_t getSequenceNumberForGroup() override {
    const std::lock_guard lock(mutex_);
    return collectives_;
  }

  Result broadcast(Tensors&, const c10d::BroadcastOptions&) override;
  Result allreduce(Tensors&, const c10d::AllreduceOptions&) override;
  Result allreduce_sparse(Tensors&, const c10d::AllreduceOptions&) override;
  Result allreduce_coalesced(Tensors&, const c10d::AllreduceCoalescedOptions&) override;
  Result reduce(Tensors&, const c10d::ReduceOptions&) override;
  Result allgather(std::vector<Tensors>&, Tensors&, const c10d::AllgatherOptions&) override;
  Result all_gather_single(Tensor&, Tensor&, const c10d::AllgatherOptions&) override;
  Result allgather_coalesced(std::vector<Tensors>&, Tensors&,
                             const c10d::AllgatherOptions&) override;
  Result all_gather_single_coalesced(Tensors&, Tensors&, const c10d::AllgatherOptions&) override;
  Result gather(std::vector<Tensors>&, Tensors&, const c10d::GatherOptions&) override;
  Result gather_single(Tensor&, Tensor&, const c10d::GatherOptions&) override;
  Result scatter(Tensors&, std::vector<Tensors>&, const c10d::ScatterOptions&) override;
  Result reduce_scatter(Tensors&, std::vector<Tensors>&,
                        const c10d::ReduceScatterOptions&) override;
  Result reduce_scatter_single(Tensor&, Tensor&, const c10d::ReduceScatterOptions&) override;
  Result reduce_scatter_single_coalesced(Tensors&, Tensors&,
                                         const c10d::ReduceScatterOptions&) override;
  Result all_to_all_single(Tensor&, Tensor&, std::vector<std::int64_t>&, std::vector<std::int64_t>&,
                           const c10d::AllToAllOptions&) override;
  Result alltoall(Tensors&, Tensors&, const c10d::AllToAllOptions&) override;
  Result send(Tensors&, int peer, int tag) override;
  Result recv(Tensors&, int peer, int tag) override;
  Result recvAnysource(Tensors&, int tag) override;
  Result barrier(const c10d::BarrierOptions&) override;
  void monitoredBarrier(const c10d::BarrierOptions&, bool wait_all_ranks) override;

  /// Fails what is under way; the group is of no further use.
  void abort() override;
  /// Waits a moment for what is under way, then leaves the group.
  void shutdown() override;

  bool open() const { return communicator_ != nullptr; }
  /// Which algorithm an operation of this size would run by, and its messages.
  std::string explain(const std::string& operation, const Tensor& tensor, int root);
  std::map<std::string, Count> counts() const;

 private:
  using Pointer = c10::intrusive_ptr<Work>;
  /// `title`: in PyTorch's profiles, if it is not the name.
  Pointer work(c10d::OpType type, const char* name, const Tensors& inputs,
               std::chrono::milliseconds timeout, const char* title = nullptr);
  /// Counts a call; its number among the collectives, or among the messages.
  std::uint64_t count(c10d::OpType type, const char* name, const Tensors& inputs);
  Result begin(const Pointer& work, std::vector<Call> calls, bool async);
  Result begin(const Pointer& work, Work::Begin begin, bool async);
  Result message(c10d::OpType type, Tensors& tensors, int peer, int tag);
  /// A message of monitored_barrier: the number of a call.
  struct Numbered {
    Pointer work;
    Tensor number;
  };
  Numbered numbered(bool sends, int peer, std::int64_t call);
  /// Receives the next number from `peer`, unless it does so since a call that was given up.
  void expect(int peer);
  /// Receives numbers until that of this call; false: not in time. Older ones belong to calls that
  /// were given up.
  bool arrived(int peer, std::int64_t call, Clock::time_point until);
  std::string reason() const;
  void check_usable(const char* operation) const;
  void name_as_described();
  using Refuse = std::function<void(const std::string&)>;
  Result reduce_all(const char* name, c10d::OpType type, const Refuse& refuse, Tensors& tensors,
                    const c10d::AllreduceOptions& opts);
  Result gather_singles(const char* operation, c10d::OpType type, Tensors& outputs, Tensors& inputs,
                        const c10d::AllgatherOptions& opts);
  Result reduce_scatter_singles(const char* operation, c10d::OpType type, Tensors& outputs,
                                Tensors& inputs, const c10d::ReduceScatterOptions& opts);
  /// A gather of `input` to `root`, or to all ranks, into one tensor, or one for each rank.
  Call gather_call(Work& work, const Tensors& outputs, const Tensor& input,
                   std::optional<int> root);

  const c10::intrusive_ptr<Options> options_;
  Driver& driver_;
  const std::shared_ptr<Work::Parked> parked_ = std::make_shared<Work::Parked>();
  std::unique_ptr<Communicator> communicator_;  // null after shutdown()
  mutable std::mutex mutex_;                    // of the next five: several threads make calls
  std::string over_;                            // the reason if the group is of no further use
  std::string described_;                       // the description by which it is named
  std::uint64_t collectives_ = 0, messages_ = 0;
  std::map<std::string, Count> counts_;
  std::int64_t monitored_ = 0;        // calls of monitored_barrier
  std::map<int, Numbered> expected_;  // from other ranks; of no work: nothing
};

}  // namespace baton::pytorch
