#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../trace/recorder.hpp"
#include "baton/device.hpp"
#include "baton/memory.hpp"
#include "baton/transport.hpp"
#include "baton/types.hpp"
#include "marker_pool.hpp"
#include "plan.hpp"

namespace baton::execute {

/// What a run applies to data.
struct Kernels {
  FoldFunction fold = nullptr;
  Op::Function user = nullptr;  ///< instead of `fold`
  void* context = nullptr;
  DivideFunction divide = nullptr;
  OpKind op = OpKind::sum;  ///< what `fold` does, and to what: for devices
  Datatype type = Datatype::u8;
};

/// Where runs of plans on a device's memory have their folds and copies done.
struct DeviceQueue {
  Device* device;
  Stream stream;
};

/// Appends what a fold, copy or divide works on, its operands being at `bases`.
void append_rows(const Plan& plan, const Plan::Item& item, std::span<std::byte* const> bases,
                 std::vector<Rows>& rows);
/// Gives the work of steps of one kind to a stream.
void give_rows(Device& device, const Plan& plan, StepKind kind, const Kernels& kernels,
               std::span<const Rows> rows, Stream stream);

/// One execution of a plan at a time: request state, nothing else. All memory is taken when it is
/// made, so starting and driving it allocates nothing.
///
/// Steps go in the order in which messages arrive (start, drive), or, where all is near, in that of
/// the plan's script, which costs less for each. Of a run on a device's memory, folds and copies
/// are given to a stream as soon as all before them is complete or in the same stream; what waits
/// for them on the host goes on when a marker behind them has been passed.
///
/// Invariants: a step is started once, when all it waits for is complete; messages of a channel are
/// posted in program order, at most `window` of them in flight.
class Run {
 public:
  Run(std::shared_ptr<const Plan> plan, int window, const DeviceQueue* queue = nullptr);

  const Plan& plan() const { return *plan_; }
  /// Base addresses, to be set before start(): scratch, slots, inputs, outputs.
  std::span<std::byte*> bases() { return bases_; }
  bool on_device() const { return queue_ != nullptr; }
  /// Whether the run is so small that it keeps scratch and slots of its own, already set.
  bool has_scratch() const { return !own_scratch_.empty(); }

  /// The times of all steps of the next execution go to `recorder`, as those of its plan `plan`.
  void record(const std::shared_ptr<tracing::Recorder>& recorder, std::uint32_t plan,
              std::uint32_t sequence);

  /// Posts what can be posted. Messages carry tags `tag` + lane.
  void start(Transport& transport, const Kernels& kernels, int tag);
  /// As start(), and on to the end where all messages are near: goes through the plan's script,
  /// testing one message at a time, at most `attempts` times, or, where nothing else can be done
  /// and `may_wait`, waiting for it in the transport. Returns whether all steps are complete; if
  /// not, the run goes on by drive(). Throws as that does.
  bool start_scripted(Transport& transport, const Kernels& kernels, int tag, int attempts,
                      bool may_wait = false);
  /// Whether there is a script, and room for its messages.
  bool scripted() const { return !script_.empty(); }
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
    std::uint32_t fold;  // that is done with a receive, part by part, or no_fold
    std::size_t folded;  // bytes of it
    bool outgrows;
    Run* run;
  };
  /// A line of the script with all that it needs of the plan.
  struct Line {
    ScriptLine::Act act;
    bool sends;  // a message
    StepKind kind;
    std::uint32_t step;
    std::uint32_t flight;
    int peer, lane;
    Place place;
    std::size_t bytes;   // of a message, or of what is one block
    std::uint32_t with;  // of a receive: the line in script_ of the send that goes with it
    std::uint32_t fold;  // of a receive: the step that waits for nothing else, or no_fold
    std::span<const Piece> pieces;  // of what is no message
  };
  /// Steps, as bits.
  struct Progress {
    std::uint64_t posted = 0, complete = 0;
  };
  /// Steps that were given to a device, local_[first] to local_[last - 1], and the marker behind.
  struct Launched {
    std::unique_ptr<Marker> marker;
    std::uint32_t first, last;
  };
  struct ChannelState {
    std::uint32_t next;  // in plan.messages()
    std::uint32_t in_flight;
    std::uint32_t free;  // bit k: flight k of this channel is free
  };

  std::byte* address(const Place& place) const { return bases_[place.base] + place.offset; }
  /// Whether the message is read in its sender's memory.
  bool reads(const Line& line) const {
    return line.bytes >= least_read_ && single_copy_->reads(line.peer);
  }
    [[gnu::cold]] void use(Transport& transport);
  void begin(Transport& transport, const Kernels& kernels, int tag);
  void post_ready(std::uint32_t channel);
  Line message_line(std::uint32_t step, std::uint32_t flight) const;
  /// The fold that a receive is all that is missing to, as far as `waits` says.
  std::uint32_t fold_after(std::uint32_t step, std::span<const std::uint32_t> waits) const;
  void write_script();
  void write_waiting_script();
  /// Receives a line's message, waiting for it, and sends the one that goes with it.
  void receive(const Line& line);
  /// Sends it, waiting for its end.
  void send(const Line& line);
  /// Posts a line's message; the parts of it.
  void send_off(const Line& line);
  [[gnu::cold]] void send_off_recorded(const Line& line);
  void hand_to_transport(const Line& line);
  /// The same for a message that its receiver reads in the sender's memory.
  void offer_or_fetch(const Line& line);
  /// Folds a part of a message (Destination).
  static void take(void* flight, std::byte* part, std::size_t bytes);
  /// Notes that a message is complete, and the fold that came with it done.
  void land(Flight& flight);
  /// Whether the step was done with its message.
  bool done_before(std::uint32_t step) {
    return !folded_.empty() && std::exchange(folded_[step], char{0}) != 0;
  }
  void fold(std::byte* into, const std::byte* left, const std::byte* right, std::size_t count) {
    if (kernels_.user) {
      kernels_.user(into, left, right, count, kernels_.context);
    } else {
      kernels_.fold(into, left, right, count);
    }
  }
  /// How far a run has come by this script.
  Progress progress_at(std::span<const Line> before) const;
  /// Takes up the order of arrival where the script was left. Whether all steps are complete.
  bool leave_script(const Progress& progress);
  /// Makes these steps' flights the active ones.
  void note_flights(std::uint64_t steps);
  void post(std::uint32_t channel, std::uint32_t step);
  void complete(std::uint32_t step);
  void run_local(StepKind kind, std::span<const Piece> pieces);
  /// The same for a step with its number, whose times are recorded.
  [[gnu::cold]] void run_local(std::uint32_t step, StepKind kind, std::span<const Piece> pieces);
  void note_end(std::uint32_t step) { moments_[step].end = tracing::now(); }
  /// Hands over what was recorded of this execution.
  void hand_over() noexcept {
    if (recorded_) [[unlikely]]
      add_to_recorder();
  }
  [[gnu::cold]] void add_to_recorder() noexcept;
  void drain_local();
  /// Gives what is ready to the device's stream, and whatever only waits for that.
  void launch_local();
  /// Those of the steps that are of this kind.
  void launch(StepKind kind, std::span<const std::uint32_t> steps);
  /// Completes what the device has done.
  void collect_launched();
  void forget_launched();
  /// Returns when the device works on this run's memory no more.
  void wait_for_device() noexcept;
  /// Throws Error(truncated) unless as many bytes were received as the step says.
  void check_length(std::uint32_t step, std::size_t bytes) const {
    const Plan::Item& item = plan_->items()[step];
    if (item.kind == StepKind::recv && bytes != static_cast<std::size_t>(item.bytes)) [[unlikely]]
      fail_length(step, bytes);
  }
  [[noreturn]] void fail_length(std::uint32_t step, std::size_t bytes) const;

  std::shared_ptr<const Plan> plan_;
  std::uint32_t window_;
  std::vector<Line> script_;          // empty where there is none, or no room for its messages
  std::vector<Line> waiting_script_;  // the same for ranks that may wait in the transport
  Transport* transport_ = nullptr;
  BlockingCalls* blocking_ = nullptr;                                 // the transport's, if any
  SingleCopy* single_copy_ = nullptr;                                 // likewise
  std::size_t least_read_ = std::numeric_limits<std::size_t>::max();  // bytes
  Kernels kernels_;
  int tag_ = 0;
  std::size_t completed_ = 0;
  std::vector<std::byte*> bases_;
  std::vector<std::byte> own_scratch_;
  std::vector<std::uint32_t> initial_waits_, waits_;
  std::vector<ChannelState> channels_;
  std::vector<char> folded_;           // steps that were done with their messages, if any may be
  std::vector<Flight> flights_;        // channel s owns [s * window, (s + 1) * window)
  std::vector<std::uint32_t> active_;  // flights in use
  std::vector<std::uint32_t> local_;   // ready folds and copies, each entered once
  std::uint32_t local_head_ = 0, local_tail_ = 0;
  const DeviceQueue* queue_;  // null: the data is the host's; else:
  std::vector<Launched> launched_;
  std::size_t collected_ = 0;  // of launched_
  MarkerPool markers_;
  std::vector<Rows> rows_;  // of the step being given to the device
  bool recorded_ = false;   // whether this execution is; if so:
  std::uint32_t recorded_plan_ = 0, recorded_sequence_ = 0;
  std::shared_ptr<tracing::Recorder> recorder_;
  std::vector<tracing::Moments> moments_;  // of each step
};

inline void Run::hand_to_transport(const Line& line) {
  Flight& flight = flights_[line.flight];
  flight.step = line.step;
  flight.fold = Plan::no_fold;
  if (reads(line)) [[unlikely]]
    return offer_or_fetch(line);
  std::byte* const data = address(line.place);
  if (line.sends) {
    transport_->isend(line.peer, tag_ + line.lane, data, line.bytes, flight.message);
  } else {
    transport_->irecv(line.peer, tag_ + line.lane, data, line.bytes, flight.message);
  }
}

inline void Run::send_off(const Line& line) {
  if (recorded_) [[unlikely]]
    return send_off_recorded(line);
  hand_to_transport(line);
}

}  // namespace baton::execute
