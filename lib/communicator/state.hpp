#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "arguments.hpp"
#include "baton/communicator.hpp"
#include "baton/schedule/step.hpp"
#include "context.hpp"
#include "launcher.hpp"
#include "planner.hpp"
#include "recording.hpp"

namespace baton::communicator {

class DeviceCalls;

/// A communicator's objects, and the path of a call through them.
struct State : std::enable_shared_from_this<State> {
  State(std::unique_ptr<Transport> transport, Options options);
  /// Takes options, table and family from another.
  State(std::unique_ptr<Transport> transport, const State& like);
  /// Takes the family from another.
  State(std::unique_ptr<Transport> transport, Options options, const State& relative);
  ~State();
  /// The first of a family: its ranks have agreed on options and know each other's pages.
  /// `checksums`: where Options::check asks for them. Errors: as Communicator's constructor.
  static std::shared_ptr<State> first(std::unique_ptr<Transport> transport, const Options& options,
                                      bool checksums);
  /// The same ranks and options; each message carries a checksum.
  static std::shared_ptr<State> with_checksums(std::shared_ptr<State> state);

  Context context;
  std::unique_ptr<DeviceCalls>
      device;  ///< null: data lies in the host's memory; outlives all plans
  Planner planner;
  Recording recording;
  Launcher launcher;
  Arguments arguments;  ///< the current call's

  void run(const Call& call, const Choice& choice);
  Request start(const Call& call, const Choice& choice);
  Request start_message(StepKind kind, Data data, int peer, int tag);
  int probe(int tag);
  void run_schedule(const Schedule& schedule, ConstData input, Data output, Op op);
  /// Runs a simple call. Calls `describe()` only if the call is not a repeated one.
  template <class Describe>
  void run_simple(const SimpleCall& simple, const void* input, void* output, const Choice& choice,
                  const Describe& describe);

  /// Checks a call and finds its plan. Sets all members of `work` but the name. The work refers to
  /// `arguments`.
  void bind(const Call& call, const Choice& choice, Work& work);
  /// The choice that a call would make. Throws what the call would for its arguments.
  Choice chosen(const Call& call);
  /// Loads and enters a call. With Options::check, compares it and its errors among the ranks
  /// first. `wrong`: an error found before; null: none.
  void prepare(Operation& operation, const Call& call, const Choice& choice,
               const Error* wrong = nullptr);

  /// The caller's handle of an operation.
  Request request(std::unique_ptr<Operation> operation);
  /// As baton::wait().
  static void wait(Request& request, const std::function<void()>& meanwhile);

  // Collective, for internal use:

  /// Gives rank 0's options and table to all ranks.
  void agree_options();
  /// Rank 0's text on all ranks. If `write` throws on rank 0, all ranks throw.
  std::string agreed(const std::function<std::string()>& write);
  /// Joins the recording under way on the communicator that this one was split from, if any.
  void join_recording(const State& whole);
  static constexpr const char* start_of_communicator = "start of communicator";
  /// Every rank's number, in rank order.
  std::vector<std::uint64_t> gathered(std::uint64_t own, const char* what = start_of_communicator);
  /// Opens the rank's status page: of a family's first communicator; of the split number `split` of
  /// another, with these ranks of it, if they are known; and, without a message, of one with these
  /// members, ranks of the family's first.
  void open_watch();
  void open_watch(State& whole, std::uint64_t split, int color, const std::vector<int>& members);
  /// The names for watches of those.
  std::uint64_t name_of_part(std::uint64_t split, int color) const;
  std::uint64_t name_of_survivors(std::uint32_t shrunk) const;
  /// Of the survivors of another, its ranks `members`, after so many calls of its shrink().
  void open_watch(State& whole, std::uint32_t shrunk, const std::vector<int>& members);
  void open_watch(const std::vector<int>& members);

  /// As Communicator::set_name().
  void set_name(std::string_view name);
  /// The communicator of the ranks with this color, with this one's options or its own; null where
  /// the color is negative.
  std::shared_ptr<State> split(int color, int key, std::optional<Options> own = {});
  /// The communicator of the ranks that call this too within `patience`.
  std::shared_ptr<State> shrink(std::chrono::milliseconds patience);

 private:
  Request start(std::unique_ptr<Operation> operation, bool ordered);
  void broadcast(std::span<std::byte> bytes);
  void gather(std::span<std::byte> own, std::span<std::byte> all,
              const char* what = start_of_communicator);
  /// Of a communicator that has failed, for exchanges of the transport's own among these ranks:
  /// throws when one of them has been gone for a while, or after Options::timeout.
  std::function<void()> missing(std::vector<int> ranks, std::string what);
  std::vector<status::ProcessId> processes_of(const std::vector<int>& members) const;
  /// Shows the ranks of the family's first communicator that this one has to its watch.
  void meet(const std::vector<int>& ranks, std::vector<bool> shown);
  /// Makes a communicator; if that fails, its other ranks are told.
  std::shared_ptr<State> making(std::uint64_t communicator,
                                const std::function<std::shared_ptr<State>()>& make);
  std::shared_ptr<State> make_part(std::uint64_t number, int color, int key,
                                   std::optional<Options> own);
  /// The transport's part of that: all are told who is missing in it.
  std::unique_ptr<Transport> split_transport(int color, int key);
  /// The members of the survivors' communicator. Ends before they meet in it: a rank that goes on
  /// to the next agreement would greet this one.
  std::vector<int> agree_on_survivors(std::chrono::milliseconds patience);
  template <class Describe>
  void run_anew(RepeatedCalls::Entry& entry, const SimpleCall& simple, std::byte* input,
                std::byte* output, const Choice& choice, const Describe& describe);

  void open_watch(State& whole, std::uint64_t communicator, const std::string& label,
                  std::uint64_t making, const std::vector<int>& members);

  int family_rank_ = -1;  // in the family's first communicator; -1: unknown, on all ranks
  std::uint32_t shrunk_ = 0;
  std::uint64_t splits_ = 0;
};

}  // namespace baton::communicator
