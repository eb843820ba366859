#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "../execute/plan_cache.hpp"
#include "../trace/clock.hpp"
#include "../trace/recorder.hpp"
#include "baton/data.hpp"
#include "baton/schedule/computation.hpp"
#include "context.hpp"

namespace baton::communicator {

struct State;

/// A call's description in a recording.
struct RecordedCall {
  Collective collective;
  Datatype type;
  OpKind op;
};

/// One rank's recording under way. The communicator that began it and its splits share it.
struct RecordingSession {
  explicit RecordingSession(std::size_t events)
      : recorder(std::make_shared<tracing::Recorder>(events)) {}

  const std::shared_ptr<tracing::Recorder> recorder;
  std::atomic<bool> active = true;  ///< communicators on other threads read it, too
  int rank = 0, ranks = 1;          ///< of the communicator that began it
  int host = 0;
  std::vector<int> clocks;  ///< for each rank, the lowest rank with the same clock
  std::optional<tracing::ClockSample> before;

  int clock() const { return clocks[static_cast<std::size_t>(rank)]; }

  /// Adds a computation of this rank; called by the thread that began the session.
  void add(const Computation& what, std::int64_t begin, std::int64_t end);
  struct Computed {
    std::shared_ptr<const Computation> plan;
    std::uint32_t number = 0;  ///< of the plan
  };
  std::map<std::pair<std::string, ComputationKind>, Computed> computed;
  std::optional<std::uint32_t> own_group;  ///< of this rank alone, for computations
  std::uint32_t computations = 0;          ///< so far
};

/// Makes this session the one that record_computation() of this thread adds to.
void begin_computations(const std::shared_ptr<RecordingSession>& session);

/// The name that this thread's operations are recorded with (RecordedName); may be empty.
const std::string& recorded_name();

/// A communicator's part in a recording.
class Recording {
 public:
  /// Joins a session. `members`: the communicator's ranks as ranks of the session. Throws
  /// Error(invalid_argument) if they do not fit.
  void join(std::shared_ptr<RecordingSession> session, std::vector<int> members,
            const Context& context);
  /// Records the run's next execution, if a recording is under way.
  void record(execute::Run& run, execute::CachedPlan& plan, const RecordedCall& call,
              std::uint64_t sequence) {
    if (session_) [[unlikely]]
      record_into_session(run, plan, call, sequence);
  }
  /// Records the run's next execution as a message to or from a rank of the communicator.
  void record_message(execute::Run& run, StepKind kind, int peer, int tag, const Data& data) {
    if (session_) [[unlikely]]
      record_message_into_session(run, kind, peer, tag, data);
  }
  bool under_way() const { return session_ != nullptr; }
  /// The recording that new splits join; null if none is under way.
  std::shared_ptr<RecordingSession> active_session() const {
    return session_ && session_->active ? session_ : nullptr;
  }

  // For the communicator that began the session; all three are collective.

  /// Begins a session. Throws Error(invalid_argument) if one is under way or `events` is not from 1
  /// to 2^30.
  void start(State& state, std::int64_t events);
  /// Ends the session; returns a trace file's bytes on rank 0.
  std::string stop(State& state);
  /// Ends the recording of Options::trace and writes its file.
  void finish_trace(State& state) noexcept;
  bool began() const { return began_; }

 private:
  [[gnu::cold]] void record_into_session(execute::Run& run, execute::CachedPlan& plan,
                                         const RecordedCall& call, std::uint64_t sequence);
  std::uint32_t number_of(execute::CachedPlan& plan, const RecordedCall& call);
  [[gnu::cold]] void record_message_into_session(execute::Run& run, StepKind kind, int peer,
                                                 int tag, const Data& data);
  std::string own_part(const std::optional<tracing::ClockSample>& after);

  std::shared_ptr<RecordingSession> session_;
  std::uint32_t group_ = 0;   // number in the session
  std::vector<int> members_;  // of the communicator, as ranks of the session
  /// Messages of one size.
  struct Sent {
    std::shared_ptr<const void> plan;  ///< held, so that the recorder does not forget it
    std::uint32_t number = 0;
  };
  /// Messages of one tag to or from one rank.
  struct Channel {
    std::optional<std::uint32_t> group;
    std::uint32_t messages = 0;  // so far
    // by count, type and name
    std::map<std::tuple<std::int64_t, Datatype, std::string>, Sent> plans;
  };
  std::map<std::tuple<StepKind, int, int>, Channel> channels_;  // by kind, peer, tag
  bool began_ = false;  // start() was called here and stop() was not
};

/// The file name of this process's next recording to `file`: FILE, then FILE-2 and so on.
std::string next_trace_name(const std::string& file);

}  // namespace baton::communicator
