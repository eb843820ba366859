#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "../execute/plan_cache.hpp"
#include "../select/select.hpp"
#include "../status/page.hpp"
#include "arguments.hpp"
#include "context.hpp"

namespace baton::communicator {

/// A simple call (plain buffers, built-in op) without its addresses and the caller's choice.
struct SimpleCall {
  SimpleCall() = default;
  SimpleCall(Collective collective, const ConstData& input, const Data& output,
             OpKind op = OpKind::sum, int root = 0)
      : kind(static_cast<std::uint64_t>(collective) | static_cast<std::uint64_t>(input.type) << 8 |
             static_cast<std::uint64_t>(output.type) << 16 | static_cast<std::uint64_t>(op) << 24 |
             static_cast<std::uint64_t>(static_cast<std::uint32_t>(root)) << 32),
        input_count(input.count),
        output_count(output.count) {}

  Collective collective() const { return static_cast<Collective>(kind & 0xff); }
  OpKind op() const { return static_cast<OpKind>(kind >> 24 & 0xff); }
  Datatype type() const { return static_cast<Datatype>(kind >> 16 & 0xff); }  ///< the output's
  bool of_user() const { return op() == OpKind::user; }
  bool operator==(const SimpleCall&) const = default;

  // collective, types, op and root in one word, so that one comparison suffices
  std::uint64_t kind = 0;
  std::int64_t input_count = 0, output_count = 0;
};

/// Simple calls made before, with their plans: a repeated call needs only a check of its addresses.
/// Direct-mapped. Entries are forgotten when a plan is dropped or the communicator breaks. Calls
/// that are compared among the ranks, and calls with a user's op, are not kept.
class RepeatedCalls {
 public:
  struct Entry {
    SimpleCall call;
    Choice choice;
    execute::CachedPlan* plan = nullptr;
    std::unique_ptr<execute::Run> run;  ///< kept here if it needs no scratch of the communicator's
    execute::Kernels kernels;
    std::size_t input_bytes, output_bytes;
    std::ptrdiff_t in_place_distance;  ///< input - output, in bytes
    bool in_place;
    status::Call shown;  ///< on the rank's page

    bool is(const SimpleCall& other, const Choice& its_choice) const {
      return plan && call == other && choice.segment == its_choice.segment &&
             choice.algorithm.size() == its_choice.algorithm.size() &&
             (choice.algorithm.empty() || choice.algorithm == its_choice.algorithm);
    }
    /// Whether this entry also holds for these addresses.
    bool fits(const std::byte* input, const std::byte* output) const {
      if ((input_bytes > 0 && !input) || (output_bytes > 0 && !output)) return false;
      if (in_place) return input - output == in_place_distance;
      return input + input_bytes <= output || output + output_bytes <= input;
    }
  };
  Entry& at(const SimpleCall& call) {
    const auto mix = (call.kind + 31 * static_cast<std::uint64_t>(call.input_count) +
                      static_cast<std::uint64_t>(call.output_count)) *
                     0x9e3779b97f4a7c15ull;
    return entries_[mix >> 59];
  }
  void forget();

 private:
  std::array<Entry, 32> entries_{};
};

/// Finds the plan of an earlier equal call, or selects an algorithm and makes a plan.
class Planner {
 public:
  /// The memory that plans work on.
  enum class Memory : std::uint8_t {
    host,
    device,        ///< the transport moves messages; `queue` folds and copies
    device_fused,  ///< the whole plan runs in a stream, messages in fused groups
  };
  explicit Planner(const Context& context)
      : context_(context), plans_(static_cast<std::size_t>(context.options.plans)) {}
  /// Makes all later plans for a device's memory. `queue` outlives them.
  void plan_for(Memory memory, const execute::DeviceQueue* queue) {
    memory_ = memory;
    queue_ = queue;
  }

  /// A plan to run, or to ask what a call would do, which touches no buffers: they may lie
  /// anywhere.
  enum class Purpose : bool { run, ask };
  execute::CachedPlan& plan(const Arguments& arguments, const Choice& choice,
                            Purpose purpose = Purpose::run);
  /// The call's schedule before it is cut into segments.
  Schedule schedule(const Arguments& arguments, const Choice& choice) const;
  /// A built-in algorithm on bytes of the host's memory, for internal use.
  execute::CachedPlan& internal(Collective collective, const char* algorithm, std::int64_t count);
  /// A single message of `count` elements of `bytes` bytes each.
  execute::CachedPlan& message(StepKind kind, int peer, std::int64_t count, std::size_t bytes);
  /// A plan without steps.
  execute::CachedPlan& nothing();
  /// A schedule of the caller's own. Kept until the next call of this function.
  execute::CachedPlan& unregistered(const Schedule& schedule, std::size_t element_bytes,
                                    std::int64_t input, std::int64_t output);

  RepeatedCalls& repeated() { return repeated_; }

 private:
  Problem problem(const Arguments& arguments) const;
  selecting::Selection selection(const Arguments& arguments, const Problem& problem,
                                 const Choice& choice) const;
  execute::CachedPlan& keep(std::unique_ptr<execute::CachedPlan> plan);

  const Context& context_;
  Memory memory_ = Memory::host;
  const execute::DeviceQueue* queue_ = nullptr;
  execute::PlanKey key_;
  execute::PlanCache plans_;
  std::unique_ptr<execute::CachedPlan> unregistered_;
  RepeatedCalls repeated_;
};

/// Throws Error(invalid_argument) where the schedule has more lanes than an operation has tags.
void check_lanes(const Schedule& schedule);

/// This rank's schedule of a call, in fused groups that all ranks agree on. The groups are derived
/// from facts that all ranks know. A rank does not know whether others call in place. Calls in
/// place wait for more, so their schedules are used.
///
/// Throws Error(unsupported) if ranks know only their own counts and a message of the algorithm
/// waits for another.
Schedule fused_schedule(const Arguments& arguments, const selecting::Selection& selected,
                        const Problem& problem);

}  // namespace baton::communicator
