#pragma once
/// Collectives among a group of ranks.

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "baton/calls.hpp"
#include "baton/export.hpp"
#include "baton/options.hpp"
#include "baton/transport.hpp"

namespace baton::communicator {
class Operation;
struct State;
}  // namespace baton::communicator

#pragma GCC visibility push(default)
namespace baton {

class Hosts;
class Registry;
class Schedule;
struct Timeline;
/// Messages that a rank sends.
struct Traffic {
  std::int64_t messages = 0, bytes = 0;

  /// Adds up.
  Traffic& operator+=(const Traffic& other) {
    messages += other.messages, bytes += other.bytes;
    return *this;
  }
  bool operator==(const Traffic&) const = default;
};

/// A collective under way. Movable; destroying one that is not complete waits for it.
class Request {
 public:
  Request();
  Request(Request&&) noexcept;
  Request& operator=(Request&&) noexcept;
  ~Request();

  /// Advances all operations of the communicator; whether this one is complete. Throws as wait(),
  /// and again each time it is asked afterwards.
  bool test();
  /// Whether test() would return true or throw at once. Advances nothing.
  bool done() const;
  /// Returns when this rank's part is complete: outputs may be read, inputs reused. Throws Error
  /// (mismatch, truncated, transport, timeout).
  void wait();
  /// The ranks and steps that it waits for: "waits for rank 3 (step 4 …)"; empty if it is done.
  std::string waits_for() const;
  /// Why it has not completed although the caller has `waited` for so long: the sentence of
  /// Error(timeout), the same on all ranks of a machine that ask. Empty if it is done. For callers
  /// with a timeout of their own, which then give it up: other ranks that wait for it are told, and
  /// give it up, too.
  std::string cause(std::chrono::milliseconds waited) const;
  /// Gives it up; the request is empty afterwards. Its communicator is of no further use, and says
  /// `why`. Where the transport cannot cancel (Capabilities::cancels), its buffers may be written
  /// until the transport is destroyed.
  void abandon(const std::string& why);

 private:
  friend struct communicator::State;
  struct BATON_HIDDEN Release {
    void operator()(communicator::Operation* operation) const;
  };
  explicit Request(std::unique_ptr<communicator::Operation, Release> operation);
  std::unique_ptr<communicator::Operation, Release> operation_;
};

/// A call with its plan, its buffers and copies of its lists, to be started any number of times,
/// one at a time.
class PersistentCall {
 public:
  PersistentCall();
  PersistentCall(PersistentCall&&) noexcept;
  PersistentCall& operator=(PersistentCall&&) noexcept;
  ~PersistentCall();
  void run();       ///< starts and waits
  Request start();  ///< the request must be complete before the next start

 private:
  friend class Communicator;
  struct BATON_HIDDEN State;
  std::unique_ptr<State> state_;
};

/// A group of ranks and the collectives among them.
///
/// Every function of namespace `calls` is a member in three forms. name(…, choice) returns when
/// this rank's part is complete. start_name(…, choice) returns at once; any number may be under
/// way, started in the same order on all ranks. plan_name(…, choice) makes a PersistentCall.
///
/// Every rank of the group makes the same calls in the same order, nonblocking ones included. One
/// thread at a time uses a communicator; different communicators may be used by different threads
/// if the transport can (Capabilities::concurrent).
///
/// Errors, for all collectives: Error(invalid_argument) before anything is sent where a count,
/// shape, dimension, root, buffer, operation or algorithm does not fit; Error(mismatch) with
/// Options::check where ranks differ; Error(truncated, transport, timeout) while it runs. The first
/// two leave the communicator usable.
///
/// In place is where input and output are the same memory, as the table in schedule/problem.hpp
/// says; any other overlap of input and output is refused.
class Communicator {
 public:
  /// The ranks of a transport. Collective: ranks agree on options. Throws Error(invalid_argument)
  /// for a wrong option, Error(transport), and Error(timeout) that names the ranks that do not
  /// answer, at most twice Options::timeout after the last progress.
  explicit Communicator(std::unique_ptr<Transport> transport,
                        Options options = Options::from_environment());
  /// With the options of `like`, which is a communicator on every rank. Sends nothing. `members`
  /// are its ranks as ranks of the first communicator, from which `like` was split or made, and
  /// which alone may be recorded; empty: this one is not recorded, and its hangs name no cause.
  Communicator(std::unique_ptr<Transport> transport, const Communicator& like,
               std::vector<int> members = {});
  Communicator(Communicator&&) noexcept;
  Communicator& operator=(Communicator&&) noexcept;
  ~Communicator();

  int rank() const;                  ///< this rank, from 0
  int size() const;                  ///< ranks of the group
  const Options& options() const;    ///< as the ranks have agreed
  const Registry& registry() const;  ///< the algorithms that calls choose from
  Transport& transport() const;      ///< of the communicator's own messages
  /// Which ranks share a host; null: all do.
  const std::shared_ptr<const Hosts>& hosts() const;

  /// The communicator of the ranks that give the same color, ordered by key, then by rank. A
  /// negative color gives an empty one (`!valid()`), of which nothing may be asked. Collective.
  Communicator split(int color, int key = 0);
  /// The same, with options of its own: each new communicator agrees on its rank 0's. While it is
  /// made, the timeout is the given one and missing ranks are named, as in any collective. Throws
  /// Error(invalid_argument) for a wrong option.
  Communicator split(int color, int key, Options options);
  /// The communicator of the ranks that call this, in their order here: those that go on after a
  /// failure. All of them call it, for each failure once; those that wait in another operation for
  /// a rank that is here get an error and may come, too. Ranks that have ended, or that do not
  /// come within `patience`, are left out; one that comes too late gets Error(timeout), one that no
  /// message reaches any more Error(transport). The ranks agree by messages: at most P² small ones.
  /// Works on failed communicators, too. A rank that dies amid the agreement may be in the group; a
  /// further shrink() leaves it out. Throws Error(unsupported) where the transport makes no
  /// subgroups (Capabilities::subgroups).
  Communicator shrink(std::chrono::milliseconds patience = std::chrono::seconds(10));
  /// Whether this is a communicator: false for an empty one of split().
  bool valid() const { return state_ != nullptr; }

  /// Renames the communicator in errors and in `baton status`, as Options::name names it from its
  /// start: the first 63 bytes count, control characters become spaces. Local; give the same
  /// name on all ranks. Throws Error(invalid_argument) for an empty name.
  void set_name(std::string_view name);
  /// The name.
  const std::string& name() const;

  // The collectives in their three forms.
#define BATON_FORMS(name, parameters, arguments)                         \
  void name(BATON_LIST parameters const Choice& choice = {});            \
  Request start_##name(BATON_LIST parameters const Choice& choice = {}); \
  PersistentCall plan_##name(BATON_LIST parameters const Choice& choice = {});
  BATON_COLLECTIVES(BATON_FORMS)
#undef BATON_FORMS

  void run(const Call& call);             ///< returns when this rank's part is complete
  Request start(const Call& call);        ///< returns at once
  PersistentCall plan(const Call& call);  ///< to be started any number of times
  /// Runs a schedule that no registry knows: every rank gives its own part of it. Input and output
  /// must have the sizes that the schedule's header states. It is run as it is; verify() it first.
  void run(const Schedule& schedule, ConstData input, Data output, Op op = sum);
  /// The schedule that `call` would run, before it is cut into segments.
  Schedule schedule(const Call& call);
  /// The algorithm and the segment that `call` would run by.
  Choice chosen(const Call& call);
  /// The messages and bytes that this rank sends in `call`, segments included; Options::check sends
  /// more.
  Traffic traffic(const Call& call);

  /// Sends a message to another rank or to this one; returns when `data` may be used again.
  /// Messages of equal tag (0 to 1023) arrive in order, those of no elements among them.
  void send(ConstData data, int peer, int tag = 0);
  /// Receives a message of exactly this length; throws Error(truncated) for another one.
  void recv(Data data, int peer, int tag = 0);
  Request start_send(ConstData data, int peer, int tag = 0);  ///< as send(); returns at once
  Request start_recv(Data data, int peer, int tag = 0);       ///< as recv(); returns at once

  /// Advances all operations under way; for callers that compute meanwhile. True if any made
  /// progress.
  bool progress();

  /// A rank whose message of send() with this tag has come while no recv() has asked for it; -1 if
  /// there is none. Throws Error(unsupported) where the transport does not probe
  /// (Capabilities::probes).
  int probe(int tag);

  /// From now on the times of every step of every collective are recorded, also on communicators
  /// that are split from this one while it records, and of messages of send() and recv(). Each
  /// rank keeps its last `events` events (40 B each) and counts what it had to drop; an event costs
  /// less than 100 ns. The clocks of ranks that have not the same are compared with rank 0's.
  /// Collective. With Options::trace it is called when the communicator is made.
  void start_recording(std::int64_t events = 1 << 18);
  /// Ends it; clocks are compared again. On rank 0 all that was recorded, elsewhere nothing.
  /// Collective. Throws Error(timeout) where ranks do not take part, Error(invalid_argument) where
  /// nothing is being recorded.
  Timeline stop_recording();
  /// The same, and rank 0 writes it to a file (see lib/trace/README.md), which read_trace() reads.
  /// Throws Error(invalid_argument) on all ranks where the file cannot be written. With
  /// Options::trace, destroying the communicator does this unless it was done before, and is
  /// collective then; ranks whose peers do not come, because of an error or the end of MPI, write
  /// their own parts to FILE.rank0 and so on, after Options::timeout, or a minute without one.
  void stop_recording(const std::string& file);
  /// Writes a sentence, such as an Error's, to standard error, as one line "baton: SENTENCE". Where
  /// several ranks of a machine report the same, one of them writes it. For programs that end at an
  /// error on all ranks. Sends nothing.
  void report(std::string_view sentence) const;
  /// Whether start_recording() was called on this communicator, and stop_recording() was not.
  bool recording() const;

 private:
  explicit Communicator(std::shared_ptr<communicator::State> state);
  std::shared_ptr<communicator::State> state_;
};

}  // namespace baton
#pragma GCC visibility pop
