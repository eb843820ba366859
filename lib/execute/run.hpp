#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../trace/recorder.hpp"
#include "baton/memory.hpp"
#include "baton/transport.hpp"
#include "baton/types.hpp"
#include "plan.hpp"

namespace baton::execute {

/// The functions that a run applies to data.
struct Kernels {
  FoldFunction fold = nullptr;
  Op::Function user = nullptr;  ///< replaces `fold`
  void* context = nullptr;
  DivideFunction divide = nullptr;
  OpKind op = OpKind::sum;  ///< the op of `fold` and its element type, for devices
  Datatype type = Datatype::u8;
};

/// Hears of a run's waits inside the transport's blocking calls, during which the run can tell
/// nothing.
class BlockedView {
 public:
  /// A step that is a message.
  struct Wait {
    int peer = -1;  ///< -1: none
    std::uint32_t step = 0;
  };
  /// The run enters a call that receives a message, or sends one, or both.
  virtual void enters(Wait receive, Wait send) noexcept = 0;
  virtual void leaves() noexcept = 0;

 protected:
  ~BlockedView() = default;
};

/// How long start() may wait for messages that are near.
struct Patience {
  int attempts = 0;  ///< tests of messages before it returns; 0: it only posts
  /// Null: it does not wait in the transport's blocking calls. Otherwise it may where there is
  /// nothing else to do, and tells about it.
  BlockedView* view = nullptr;
};

/// Executes a plan in the host's memory, one execution at a time. A step starts when all its
/// dependencies are complete. This is the reference. Derived kinds of run carry out steps in other
/// ways, with the same results.
///
/// Use: set bases(), call start(), then call drive() until it returns true; start() may then run
/// the plan again. Messages of a channel are posted in program order, at most `window` of them in
/// flight. The constructor takes all memory: start() and drive() allocate nothing.
class Run {
 public:
  Run(std::shared_ptr<const Plan> plan, int window);
  virtual ~Run() = default;
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  const Plan& plan() const { return *plan_; }
  /// Base addresses: scratch, slots, inputs, outputs. Set them before start().
  std::span<std::byte*> bases() { return bases_; }
  /// Whether the run has its own scratch and slots.
  bool has_scratch() const { return has_scratch_; }
  virtual bool on_device() const { return false; }

  /// Gives the times of the next execution to `recorder`, as those of its plan `plan`.
  void record(const std::shared_ptr<tracing::Recorder>& recorder, std::uint32_t plan,
              std::uint32_t sequence);

  /// Posts the messages without dependencies, with tags `tag` + lane. Returns done(). Throws as
  /// drive() does.
  virtual bool start(Transport& transport, const Kernels& kernels, int tag,
                     const Patience& patience = {});
  /// Advances without waiting. Returns done(). Throws Error (transport, truncated); then abandon
  /// the run.
  virtual bool drive();
  bool done() const { return completed_ == plan_->items().size(); }
  /// Steps completed so far.
  std::size_t completed() const { return completed_; }
  /// Abandons all messages in flight.
  virtual void abandon() noexcept;

  /// The messages in flight: "waits for rank 3 (step 7: recv 128 B, lane 0) and …".
  std::string waiting() const;
  /// The same behind `text`. Up to 500 characters in all need no allocation.
  void waiting(fmt::memory_buffer& text) const;
  /// Peer and step of one message in flight, or -1.
  std::pair<int, int> blocker() const;

 protected:
  /// A message in flight. Channel c owns flights [c * window, (c + 1) * window).
  struct Flight {
    Message message;
    std::uint32_t step;
  };
  struct Channel {
    std::uint32_t next;  // in plan.messages()
    std::uint32_t in_flight;
    std::uint32_t free;  // bit k: flight k of this channel is free
  };

  // The parts of a run that the derived kinds change.

  /// Called at the first start() with a transport.
  virtual void use(Transport& transport);
  /// Hands the flight's message to the transport.
  virtual void post(std::uint32_t flight);
  /// Called when the flight's message is complete, before the flight is reused.
  virtual void landed(std::uint32_t) {}
  /// Carries out a fold, copy or divide.
  virtual void work(std::uint32_t step);
  /// Carries out all folds, copies and divides that are ready or become ready meanwhile.
  virtual void work_on_ready();

  // Parts of start() and drive().

  void begin(Transport& transport, const Kernels& kernels, int tag) {
    if (transport_ != &transport) [[unlikely]]
      use(transport);
    kernels_ = kernels;
    tag_ = tag;
    completed_ = 0;
    active_.clear();
  }
  /// Resets all steps and messages.
  void reset();
  /// Posts every message that may be posted.
  void post_all();
  /// Posts messages of a channel until one must wait.
  void post_ready(std::uint32_t channel);
  void make_ready(std::uint32_t step, std::int64_t when) {
    ready_[ready_end_++] = step;
    if (recorded_) [[unlikely]]
      moments_[step].posted = when;
  }
  /// Completes the step. Starts, or makes ready, the steps that waited only for it.
  void complete(std::uint32_t step);
  /// Hands over the recording of a finished run. Returns done().
  bool finish();

  std::byte* address(const Place& place) const { return bases_[place.base] + place.offset; }
  const Place& message_place(const Plan::Item& item) const {
    return plan_->pieces()[item.first_piece].at[0];
  }
  void hand_over(bool sends, int peer, int lane, std::byte* data, std::size_t bytes,
                 Message& message) {
    if (sends) {
      transport_->isend(peer, tag_ + lane, data, bytes, message);
    } else {
      transport_->irecv(peer, tag_ + lane, data, bytes, message);
    }
  }
  void apply(StepKind kind, std::span<const Piece> pieces);
  void fold(std::byte* into, const std::byte* left, const std::byte* right, std::size_t count) {
    if (kernels_.user) {
      kernels_.user(into, left, right, count, kernels_.context);
    } else {
      kernels_.fold(into, left, right, count);
    }
  }
  /// Throws Error(truncated): the step's message had another length.
  [[noreturn]] void fail_length(std::uint32_t step, std::size_t bytes) const;
  /// Hands over the recorded times of this execution.
  void end_recording() noexcept {
    if (recorded_) [[unlikely]]
      add_to_recorder();
  }

  const std::shared_ptr<const Plan> plan_;
  const std::uint32_t window_;
  Transport* transport_ = nullptr;
  Kernels kernels_;
  int tag_ = 0;
  std::size_t completed_ = 0;
  std::vector<std::byte*> bases_;
  bool has_scratch_ = false;
  std::vector<std::uint32_t> initial_waits_;  // of each step: the number of its dependencies
  std::vector<std::uint32_t> waits_;          // of each step: dependencies not yet complete
  std::vector<Channel> channels_;
  std::vector<Flight> flights_;
  std::vector<std::uint32_t> active_;  // flights in use
  std::vector<std::uint32_t> ready_;   // folds, copies and divides, each entered once
  std::uint32_t ready_begin_ = 0, ready_end_ = 0;
  bool recorded_ = false;                  // this execution is recorded; if so:
  std::vector<tracing::Moments> moments_;  // of each step

 private:
  [[gnu::cold]] void add_to_recorder() noexcept;

  std::shared_ptr<tracing::Recorder> recorder_;
  std::uint32_t recorded_plan_ = 0, recorded_sequence_ = 0;
};

}  // namespace baton::execute
