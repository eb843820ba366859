#pragma once

#include <array>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "../execute/plan_cache.hpp"
#include "../execute/progress.hpp"
#include "../execute/scratch_pool.hpp"
#include "../select/select.hpp"
#include "arguments.hpp"
#include "baton/communicator.hpp"
#include "baton/error.hpp"
#include "engine.hpp"
#include "fused_calls.hpp"
#include "recording.hpp"

namespace baton {

/// What a communicator shares with those split from it.
struct Family {
  ProgressList operations;
  UseFlag busy{false};  ///< the one in use, where the transport serves one thread at a time
  std::unique_ptr<Engine> engine;  ///< of communicators on a device's memory
};

/// What a communicator on a device's memory has there.
struct DevicePart {
  /// `transport`: null where messages go the communicator's way.
  explicit DevicePart(std::shared_ptr<Device> of,
                      std::unique_ptr<FusedTransport> transport = nullptr)
      : device(std::move(of)), queue{device.get(), device->make_stream()}, scratch(device.get()) {
    if (transport) fused = std::make_unique<FusedCalls>(*device, scratch, std::move(transport));
  }
  ~DevicePart() { device->end_stream(queue.stream); }
  DevicePart(const DevicePart&) = delete;
  DevicePart& operator=(const DevicePart&) = delete;

  const std::shared_ptr<Device> device;
  const DeviceQueue queue;
  ScratchPool scratch;
  std::exception_ptr error;  ///< of the first operation that failed and that nobody has been told
  std::unique_ptr<FusedCalls> fused;  ///< null: messages go the communicator's way
};

/// Marks a communicator (or its family) as in use for the length of a call.
class InUse {
 public:
  explicit InUse(UseFlag& flag) : flag_(flag) {
    if (!flag_.enter()) {
      throw Error(
          ErrorCode::invalid_argument,
          "expected one thread at a time to use a communicator, found two (a transport without "
          "Capabilities::concurrent serves one thread over all communicators)");
    }
  }
  ~InUse() { flag_.leave(); }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;

 private:
  UseFlag& flag_;
};

/// A plan taken for one execution, with its scratch.
struct Execution {
  CachedPlan* plan = nullptr;
  std::unique_ptr<Run> run;
  Kernels kernels;
};

/// All that tells one simple call (plain buffers, built-in operation) from another, apart from
/// addresses and the caller's choice.
struct SimpleCall {
  SimpleCall() = default;
  SimpleCall(Collective collective, const ConstData& input, const Data& output,
             OpKind op = OpKind::sum, int root = 0)
      : what(static_cast<std::uint64_t>(collective) | static_cast<std::uint64_t>(input.type) << 8 |
             static_cast<std::uint64_t>(output.type) << 16 | static_cast<std::uint64_t>(op) << 24 |
             static_cast<std::uint64_t>(static_cast<std::uint32_t>(root)) << 32),
        input_count(input.count),
        output_count(output.count) {}

  Collective collective() const { return static_cast<Collective>(what & 0xff); }
  OpKind op() const { return static_cast<OpKind>(what >> 24 & 0xff); }
  Datatype type() const { return static_cast<Datatype>(what >> 16 & 0xff); }  ///< of the output
  bool of_user() const { return op() == OpKind::user; }
  bool operator==(const SimpleCall&) const = default;

  std::uint64_t what = 0;  // collective, types, operation, root: so that one comparison serves
  std::int64_t input_count = 0, output_count = 0;
};

/// Simple calls that were made before, with their plans: a repeated call needs no checks but of its
/// addresses. Direct-mapped; forgotten when a plan is dropped or the communicator breaks. Calls
/// that are compared among the ranks, or whose operation is the user's, are not kept.
class RepeatedCalls {
 public:
  struct Entry {
    SimpleCall call;
    Choice choice;
    CachedPlan* plan = nullptr;
    std::unique_ptr<Run> run;  ///< at hand, if it needs no scratch of the communicator's
    Kernels kernels;
    std::size_t input_bytes, output_bytes;
    std::ptrdiff_t in_place_distance;  ///< input - output, bytes
    bool in_place;

    bool is(const SimpleCall& other, const Choice& its_choice) const {
      return plan && call == other && choice.segment == its_choice.segment &&
             choice.algorithm.size() == its_choice.algorithm.size() &&
             (choice.algorithm.empty() || choice.algorithm == its_choice.algorithm);
    }
    /// Whether these addresses need no more than this entry knows.
    bool fits(const std::byte* input, const std::byte* output) const {
      if ((input_bytes > 0 && !input) || (output_bytes > 0 && !output)) return false;
      if (in_place) return input - output == in_place_distance;
      return input + input_bytes <= output || output + output_bytes <= input;
    }
  };
  Entry& at(const SimpleCall& call) {
    const auto mix = (call.what + 31 * static_cast<std::uint64_t>(call.input_count) +
                      static_cast<std::uint64_t>(call.output_count)) *
                     0x9e3779b97f4a7c15ull;
    return entries_[mix >> 59];
  }
  void forget() {
    for (Entry& entry : entries_) {
      if (entry.run) entry.plan->give(std::move(entry.run));
      entry.plan = nullptr;
    }
  }

 private:
  std::array<Entry, 32> entries_{};
};

/// The comparison of a call among all ranks, before it runs: every rank's description of its call
/// goes to rank 0, and its verdict to all.
struct CheckExchange {
  static constexpr std::size_t record_bytes = 512;

  bool failed = false;             ///< the call is wrong on this rank
  std::vector<std::byte> records;  ///< this rank's, and on rank 0 everybody's behind it
  std::vector<std::byte> verdict;
  Execution gather, broadcast;

  void write(const std::string& text);
  /// On rank 0: compares the records and writes the verdict.
  void judge(int size);
  /// Throws the verdict, if it is one; `local` is this rank's own error.
  void conclude(int rank) const;
};

/// The error with an operation's name and rank.
Error named(const Error& error, const char* what, std::uint64_t number, int rank);

/// One collective or message under way.
class Operation final : public Advancing {
 public:
  explicit Operation(Communicator::State& communicator) : communicator_(communicator) {}

  void begin(const char* what, std::uint64_t number, int tag) {
    what_ = what;
    number_ = number;
    tag_ = tag;
    finished_ = false;
    error_ = nullptr;
  }
  /// Takes over a run that has been started.
  void adopt(Execution execution, const char* what, std::uint64_t number, int tag) {
    begin(what, number, tag);
    phase_ = Phase::running;
    execution_ = std::move(execution);
  }
  Execution& execution() { return execution_; }
  std::unique_ptr<CheckExchange>& check() { return check_; }

  /// Starts what has been prepared: the check, if there is one, or the run. The run may come to its
  /// end, if that takes no more than so many tests, or waits in the transport.
  void start(int spins = 0, bool may_wait = false);
  /// Advances it once; whether it is finished. Throws what went wrong.
  bool step();
  /// Steps completed, to notice progress.
  std::size_t completed() const;
  bool finished() const { return finished_; }
  /// Whether advance() met an error that nobody has been told.
  bool failed() const { return error_ != nullptr; }
  std::uint64_t number() const { return number_; }
  bool advance(const UseFlag* held) noexcept override;
  /// Throws the error that advance() met, if any.
  void rethrow();
  /// Gives up what is in flight and returns plan and scratch.
  void abandon() noexcept;
  [[noreturn]] void fail_timeout() const;
  /// In two steps, puts it at this point of a device's stream: it starts when the stream has come
  /// here, and the stream is held from the second step until it is complete.
  void mark(Device& device, Stream stream);
  void start_when_reached(Stream stream);
  /// Whether its stream has not come to it yet.
  bool ahead() const { return phase_ == Phase::ahead; }
  bool in_stream() const { return turn_ && turn_->stream; }
  /// The error with this operation's name and rank.
  Error named(const Error& error) const;

  std::shared_ptr<Communicator::State> keep_alive;

 private:
  enum class Phase : std::uint8_t { gathering, telling, running, ahead };
  /// Where it stands in a stream.
  struct Turn {
    std::unique_ptr<Marker> reached;
    std::unique_ptr<Gate> gate;
    Stream stream = nullptr;  ///< null: in none now
    std::size_t completed = 0;
    std::chrono::steady_clock::time_point since;  ///< it has had so many steps completed
  };
  /// Lets its stream go on.
  void release() noexcept;
  /// Throws Error(timeout) if it has made no progress for too long.
  void check_time();
  bool step_check();
  void finish() noexcept;
  const Run& current() const;

  Communicator::State& communicator_;
  const char* what_ = "";
  std::uint64_t number_ = 0;
  int tag_ = 0;
  Phase phase_ = Phase::running;
  bool finished_ = true;
  Execution execution_;
  std::unique_ptr<CheckExchange> check_;
  std::exception_ptr error_;
  std::unique_ptr<Turn> turn_;
};

struct Communicator::State : std::enable_shared_from_this<Communicator::State> {
  State(std::unique_ptr<Transport> transport, Options options, std::shared_ptr<Family> family);
  /// With the options, the table, the family and the device of another.
  State(std::unique_ptr<Transport> transport, const State& like,
        std::unique_ptr<FusedTransport> fused = nullptr);
  ~State();

  static constexpr int user_tags = 1024;
  static constexpr int lanes = 8;

  std::unique_ptr<Transport> transport;
  Options options;
  std::shared_ptr<const Registry> registry;
  std::shared_ptr<Family> family;
  NetworkParameters network;
  std::shared_ptr<const Table> table;     ///< of the communicator that this one was split from, too
  const TableSection* section = nullptr;  ///< of the table, for this communicator
  const Capabilities can;                 ///< of the transport
  int rank, size;
  std::shared_ptr<const Hosts> hosts;  ///< never changes, so it is no part of a plan's key
  bool waits;                          ///< whether the transport may wait for a message by itself
  int operation_tags;                  ///< operations that can be told apart by tag
  UseFlag own_busy;
  UseFlag* busy;  ///< own_busy, or the family's
  std::uint64_t sequence = 0;
  int tag_turn = 0;
  std::string broken;                     ///< why no further calls are possible
  std::unique_ptr<DevicePart> on_device;  ///< null: data is the host's
  PlanCache plans;
  RepeatedCalls repeated;
  ScratchPool scratch;
  ScratchPool& scratch_of(const Run& run) { return run.on_device() ? on_device->scratch : scratch; }
  Arguments arguments;  ///< of the call being made
  PlanKey key;
  Operation blocking{*this};  ///< for calls that wait
  std::vector<std::unique_ptr<Operation>> idle_operations;
  std::vector<Operation*> under_way;     ///< nonblocking collectives, the oldest first
  std::unique_ptr<CachedPlan> uncached;  ///< of the schedule that the caller gave
  std::shared_ptr<Recording> recording;  ///< null: nothing is recorded
  std::uint32_t group = 0;               ///< of the recording
  bool records = false;                  ///< whether start_recording() was called on this one

  /// `choice` stands instead of the call's, so that no call copies an algorithm's name.
  void run(const Call& call, const Choice& choice);
  Request start(const Call& call, const Choice& choice);
  /// Starts what has been prepared.
  Request start(std::unique_ptr<Operation> operation);
  std::unique_ptr<Operation> take_operation();
  /// Gives a call to a stream of the device.
  Request enqueue(const Call& call, const Choice& choice, Stream stream);
  /// The same, where messages go in fused groups.
  void enqueue_fused(const Call& call, const Choice& choice, Stream stream);
  /// Returns when all of these are complete.
  void complete_fused();
  /// Lets all streams go on, and throws.
  [[noreturn]] void give_up_fused(const Error& error);
  /// This rank's schedule, in fused groups that all ranks agree on.
  Schedule fused_schedule(const Selection& selected, const Problem& problem) const;
  /// Compares the call being made among all ranks, which is `wrong` on this one; throws the
  /// verdict.
  void compare(const Choice& choice, const Error* wrong, int tag);
  /// Returns when all ranks have come here.
  void meet();
  /// Throws if data of the call being made is out of the host's reach. Costs a microsecond, so it
  /// is for calls that are planned anew.
  void check_reach() const;
  /// Throws unless the data of the call being made is the device's.
  void check_residence() const;
  /// Throws what an operation in a stream failed with, once.
  void tell_error();
  /// Ends an operation in a stream that failed with the exception being handled.
  void fail_in_stream(Operation& operation) noexcept;
  /// Prepares a call in `operation`; with checking on, errors are kept for the other ranks to hear.
  void prepare(Operation& operation, const Call& call, const Choice& choice);
  void prepare_message(Operation& operation, StepKind kind, Data data, int peer, int tag);
  void prepare_schedule(Operation& operation, const Schedule& schedule, ConstData input,
                        Data output, Op op);
  /// Whether nothing but a call's own messages matters while it waits: no time limit, and nothing
  /// else under way that must be advanced.
  bool may_wait() const {
    return waits && options.timeout.count() == 0 && family->operations.empty();
  }
  /// Waits for the operation, advancing the family's others.
  void wait(Operation& operation);
  /// Runs what was prepared in `blocking`.
  void run_blocking();
  /// Gives the operation up and throws the exception being handled, named; to be called in a
  /// handler.
  [[noreturn]] void fail(Operation& operation);
  void require_usable() const;
  /// Makes further calls impossible.
  void break_off(std::string why) {
    broken = std::move(why);
    repeated.forget();
  }

  /// The problem of the call being made.
  Problem problem() const;
  Selection selection(const Problem& problem, const Choice& choice) const;
  CachedPlan& cached_plan(const Choice& choice);
  /// What a call would run by.
  Choice chosen(const Call& call);
  CachedPlan& keep(std::unique_ptr<CachedPlan> plan);
  Execution execute(CachedPlan& plan, const Kernels& kernels, std::span<std::byte* const> bases);
  Kernels kernels(Collective collective, const Op& op, Datatype type) const;
  /// Runs a simple call: at once if it is a repeated one, else by way of `make()`, which describes
  /// it. Runs a call that was made before, on the run that its entry has at hand.
  void run_again(RepeatedCalls::Entry& entry, std::byte* input, std::byte* output);
  template <class MakeCall>
  void run_simple(const SimpleCall& simple, const void* input, void* output, const Choice& choice,
                  const MakeCall& make);
  /// The same for a call that has no run at hand.
  template <class MakeCall>
  void run_anew(RepeatedCalls::Entry& entry, const SimpleCall& simple, std::byte* in,
                std::byte* out, const Choice& choice, const MakeCall& make);
  void give_back(Execution& execution) noexcept;
  /// As give_back(), for a run whose messages were abandoned. Where the transport cannot cancel,
  /// one may still arrive: then the run and its scratch are kept for good.
  void give_up(Execution& execution) noexcept;
  /// Brings operations under way to their end whose tag is about to be used again.
  void free_next_tag() {
    if (!under_way.empty() && sequence >= static_cast<std::uint64_t>(operation_tags))
      finish_oldest();
  }
  void finish_oldest();
  int next_tag() {
    ++sequence;
    tag_turn = tag_turn + 1 == operation_tags ? 0 : tag_turn + 1;
    return user_tags + lanes * tag_turn;
  }
  /// Makes rank 0's agreed options, and its table, everybody's.
  void agree_options();
  /// Rank 0's text on all ranks; throws on all what `write` throws there.
  std::string agreed(const std::function<std::string()>& write);
  void broadcast_internal(std::span<std::byte> bytes);
  /// Runs a built-in algorithm on bytes, for the library's own use.
  Execution internal(Collective collective, const char* algorithm, std::int64_t count,
                     std::span<std::byte* const> bases);
  void prepare_check(Operation& operation, const Choice& choice, const Error* local);

  void start_recording(std::int64_t events);
  /// Takes part in a recording, as the group of these ranks of it.
  void join(std::shared_ptr<Recording> joined, std::vector<int> members);
  /// Has the run recorded, if anything is.
  void record(Run& run, CachedPlan& plan, Collective collective, Datatype type, OpKind op) {
    if (recording) [[unlikely]]
      record_into(run, plan, collective, type, op);
  }
  void record(Run& run, CachedPlan& plan, const SimpleCall& call) {
    record(run, plan, call.collective(), call.type(), call.op());
  }
  [[gnu::cold]] void record_into(Run& run, CachedPlan& plan, Collective collective, Datatype type,
                                 OpKind op);
  /// What the recorder knows the plan by.
  std::uint32_t recorded_plan(CachedPlan& plan, Collective collective, Datatype type, OpKind op);
  /// Ends the recording; a trace file's bytes on rank 0.
  std::string stop_recording();
  /// Ends the recording that Options::trace asked for.
  void finish_trace() noexcept;
  /// Every rank's number, in rank order.
  std::vector<std::uint64_t> gathered(std::uint64_t own);
  /// This rank's clock against rank 0's, if it is the first that has it.
  std::optional<tracing::ClockSample> compare_clocks(const Recording& of);
  /// Ends this rank's recording: its part of a trace file.
  std::string own_part(const std::optional<tracing::ClockSample>& after);
  /// All ranks' parts as a trace file, on rank 0.
  std::string gathered_parts(const std::string& own);
  /// How to wait for others to take part in a recording.
  tracing::Patience waiting();
};

}  // namespace baton
