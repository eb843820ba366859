#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "baton/memory.hpp"
#include "baton/transport.hpp"
#include "baton/types.hpp"
#include "plan.hpp"

namespace baton {

/// What a run applies to data.
struct Kernels {
  FoldFunction fold = nullptr;
  Op::Function user = nullptr;  ///< instead of `fold`
  void* context = nullptr;
  FinishFunction finish = nullptr;
};

/// One execution of a plan at a time: request state, nothing else. All memory is taken when it is
/// made, so starting and driving it allocates nothing.
///
/// Steps go in the order in which messages arrive (start, drive), or, where all is near, in that of
/// the plan's script, which costs less for each.
///
/// Invariants: a step is started once, when all it waits for is complete; messages of a stream are
/// posted in program order, at most `window` of them in flight.
class Run {
 public:
  Run(std::shared_ptr<const Plan> plan, int window);

  const Plan& plan() const { return *plan_; }
  /// Base addresses, to be set before start(): scratch, slots, inputs, outputs.
  std::span<std::byte*> bases() { return bases_; }
  /// Whether the run is so small that it keeps scratch and slots of its own, already set.
  bool has_scratch() const { return !own_scratch_.empty(); }

  /// Posts what can be posted. Messages carry tags `tag` + lane.
  void start(Transport& transport, const Kernels& kernels, int tag);
  /// As start(), and on to the end where all messages are near: goes through the plan's script,
  /// testing one message at a time, at most `attempts` times. Returns whether all steps are
  /// complete; if not, the run goes on by drive(). Throws as that does.
  bool start_scripted(Transport& transport, const Kernels& kernels, int tag, int attempts);
  /// Whether there is a script, and room for its messages.
  bool scripted() const { return scripted_; }
  /// Advances what can be advanced without waiting; whether all steps are complete. Throws Error
  /// (transport, truncated) after which the run must be abandoned.
  bool drive();
  bool done() const { return completed_ == plan_->items().size(); }
  /// Steps completed so far: changes if and only if there was progress.
  std::size_t completed() const { return completed_; }
  /// Gives up all messages in flight.
  void abandon() noexcept;
  /// "waits for rank 3 (step 7: recv 128 B, lane 0) and …": what is in flight.
  std::string waiting() const;
  /// Peer and step of one message in flight, or -1.
  std::pair<int, int> blocker() const;

 private:
  struct Flight {
    Message message;
    std::uint32_t step;
  };
  struct StreamState {
    std::uint32_t next;  // in plan.messages()
    std::uint32_t in_flight;
    std::uint32_t free;  // bit k: flight k of this stream is free
  };

  std::byte* address(const Place& place) const { return bases_[place.base] + place.offset; }
  void begin(Transport& transport, const Kernels& kernels, int tag);
  void post_ready(std::uint32_t stream);
  /// Posts a message as flight `index`.
  void send_off(std::uint32_t index, std::uint32_t step);
  /// Whether the flight has landed; if so, with all that was expected.
  bool landed(std::uint32_t index);
  /// Takes up the order of arrival where the script was left: step i is posted, or complete, where
  /// bit i is set. Whether all are complete.
  bool leave_script(std::uint64_t posted, std::uint64_t complete);
  /// Makes these steps' flights the active ones.
  void note_flights(std::uint64_t steps);
  void post(std::uint32_t stream, std::uint32_t step);
  void complete(std::uint32_t step);
  void run_local(std::uint32_t step);
  void drain_local();
  void check_length(std::uint32_t step, std::size_t bytes) const;

  std::shared_ptr<const Plan> plan_;
  std::uint32_t window_;
  bool scripted_;
  Transport* transport_ = nullptr;
  Kernels kernels_;
  int tag_ = 0;
  std::size_t completed_ = 0;
  std::vector<std::byte*> bases_;
  std::vector<std::byte> own_scratch_;
  std::vector<std::uint32_t> initial_waits_, waits_;
  std::vector<StreamState> streams_;
  std::vector<Flight> flights_;        // stream s owns [s * window, (s + 1) * window)
  std::vector<std::uint32_t> active_;  // flights in use
  std::vector<std::uint32_t> local_;   // ready folds and copies, each entered once
  std::uint32_t local_head_ = 0, local_tail_ = 0;
};

}  // namespace baton
