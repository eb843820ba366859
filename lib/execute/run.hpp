#pragma once

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
  Op::Function user = nullptr;  ///< instead of `fold`
  void* context = nullptr;
  DivideFunction divide = nullptr;
  OpKind op = OpKind::sum;  ///< of `fold`, and the type of its elements: for devices
  Datatype type = Datatype::u8;
};

/// How long start() may stay with messages that are near.
struct Patience {
  int attempts = 0;       ///< tests of messages before it returns; 0: it only posts
  bool may_wait = false;  ///< it may wait in the transport's blocking calls, if it has any, where
                          ///< nothing else can be done
};

/// One execution of a plan at a time, on the host's memory: each step starts when all steps that it
/// waits for are complete. This is the reference; the other kinds of run are derived from it and
/// differ in how they carry out steps, never in their results.
///
/// Use: set bases(), call start(), then drive() until it returns true; then start() again, if the
/// plan is to run again. Messages of a channel are posted in program order, at most `window` of
/// them in flight. All memory is taken by the constructor: start() and drive() allocate nothing.
class Run {
 public:
  Run(std::shared_ptr<const Plan> plan, int window);
  virtual ~Run() = default;
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  const Plan& plan() const { return *plan_; }
  /// Base addresses, to be set before start(): scratch, slots, inputs, outputs.
  std::span<std::byte*> bases() { return bases_; }
  /// Whether the run has set its bases of scratch and slots itself.
  bool has_scratch() const { return has_scratch_; }
  virtual bool on_device() const { return false; }

  /// Gives the times of all steps of the next execution to `recorder`, as those of its plan `plan`.
  void record(const std::shared_ptr<tracing::Recorder>& recorder, std::uint32_t plan,
              std::uint32_t sequence);

  /// Posts the messages that wait for nothing, with tags `tag` + lane. Returns done(). Throws as
  /// drive().
  virtual bool start(Transport& transport, const Kernels& kernels, int tag,
                     const Patience& patience = {});
  /// Goes as far as it can without waiting. Returns done(). Throws Error (transport, truncated),
  /// after which the run must be abandoned.
  virtual bool drive();
  bool done() const { return completed_ == plan_->items().size(); }
  /// Steps completed so far.
  std::size_t completed() const { return completed_; }
  /// Gives up all messages in flight.
  virtual void abandon() noexcept;

  /// "waits for rank 3 (step 7: recv 128 B, lane 0) and …": the messages in flight.
  std::string waiting() const;
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

  // The steps of a run, in which the other kinds differ.

  /// Called at the first start() with a transport.
  virtual void use(Transport& transport);
  /// Hands the flight's message to the transport.
  virtual void post(std::uint32_t flight);
  /// Called when the flight's message is complete, before the flight is free for another.
  virtual void landed(std::uint32_t) {}
  /// Carries out a fold, copy or divide.
  virtual void work(std::uint32_t step);
  /// Carries out all folds, copies and divides that are ready, and those that they make ready.
  virtual void work_on_ready();

  // The parts of start() and drive().

  void begin(Transport& transport, const Kernels& kernels, int tag) {
    if (transport_ != &transport) [[unlikely]]
      use(transport);
    kernels_ = kernels;
    tag_ = tag;
    completed_ = 0;
    active_.clear();
  }
  /// No step is complete, no message posted.
  void reset();
  /// Posts all that may be posted.
  void post_all();
  /// Posts messages of a channel until one must wait.
  void post_ready(std::uint32_t channel);
  void make_ready(std::uint32_t step, std::int64_t when) {
    ready_[ready_end_++] = step;
    if (recorded_) [[unlikely]]
      moments_[step].posted = when;
  }
  /// Counts the step as complete, and starts or makes ready the steps that waited for it alone.
  void complete(std::uint32_t step);
  /// Hands over the recording of a run that is done. Returns done().
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
  /// Throws Error(truncated): the step's message was of another length.
  [[noreturn]] void fail_length(std::uint32_t step, std::size_t bytes) const;
  /// Hands over the times recorded of this execution.
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
  std::vector<std::uint32_t> initial_waits_;  // of each step: how many steps it waits for
  std::vector<std::uint32_t> waits_;          // for how many it waits still
  std::vector<Channel> channels_;
  std::vector<Flight> flights_;
  std::vector<std::uint32_t> active_;  // flights in use
  std::vector<std::uint32_t> ready_;   // folds, copies and divides, each entered once
  std::uint32_t ready_begin_ = 0, ready_end_ = 0;
  bool recorded_ = false;                  // whether this execution is; if so:
  std::vector<tracing::Moments> moments_;  // of each step

 private:
  [[gnu::cold]] void add_to_recorder() noexcept;

  std::shared_ptr<tracing::Recorder> recorder_;
  std::uint32_t recorded_plan_ = 0, recorded_sequence_ = 0;
};

}  // namespace baton::execute
