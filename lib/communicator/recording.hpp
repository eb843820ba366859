#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../execute/plan_cache.hpp"
#include "../trace/clock.hpp"
#include "../trace/recorder.hpp"
#include "context.hpp"

namespace baton::communicator {

struct State;

/// A call as recordings name it.
struct RecordedCall {
  Collective collective;
  Datatype type;
  OpKind op;
};

/// A recording under way on one rank: shared by the communicator that began it and those split from
/// that one.
struct RecordingSession {
  explicit RecordingSession(std::size_t events)
      : recorder(std::make_shared<tracing::Recorder>(events)) {}

  const std::shared_ptr<tracing::Recorder> recorder;
  std::atomic<bool> active = true;  ///< also read on communicators that other threads use
  int rank = 0, ranks = 1;          ///< of the communicator that began it
  int host = 0;
  std::vector<int> clocks;  ///< of each rank, the lowest rank with the same clock
  std::optional<tracing::ClockSample> before;

  int clock() const { return clocks[static_cast<std::size_t>(rank)]; }
};

/// A communicator's part in a recording.
class Recording {
 public:
  /// Takes part from now on. `members`: the communicator's ranks as ranks of the session. Throws
  /// Error(invalid_argument) where they do not fit.
  void join(std::shared_ptr<RecordingSession> session, std::vector<int> members,
            const Context& context);
  /// Has the next execution of the run recorded, if a recording is under way.
  void record(execute::Run& run, execute::CachedPlan& plan, const RecordedCall& call,
              std::uint64_t sequence) {
    if (session_) [[unlikely]]
      record_into_session(run, plan, call, sequence);
  }
  bool under_way() const { return session_ != nullptr; }
  /// The recording that communicators split from this one join; null: none is under way.
  std::shared_ptr<RecordingSession> active_session() const {
    return session_ && session_->active ? session_ : nullptr;
  }

  // Of the communicator that began it; each is collective.

  /// Begins a session. Throws Error(invalid_argument) where one is under way or `events` is not
  /// from 1 to 2^30.
  void start(State& state, std::int64_t events);
  /// Ends it; a trace file's bytes on rank 0.
  std::string stop(State& state);
  /// Ends the recording that Options::trace asked for and writes its file.
  void finish_trace(State& state) noexcept;
  bool began() const { return began_; }

 private:
  [[gnu::cold]] void record_into_session(execute::Run& run, execute::CachedPlan& plan,
                                         const RecordedCall& call, std::uint64_t sequence);
  std::uint32_t number_of(execute::CachedPlan& plan, const RecordedCall& call);
  std::string own_part(const std::optional<tracing::ClockSample>& after);

  std::shared_ptr<RecordingSession> session_;
  std::uint32_t group_ = 0;  // of the session
  bool began_ = false;       // start() was called here, and stop() was not
};

/// Throws Error(invalid_argument) where the file cannot be written.
void write_trace(const std::string& file, std::string_view bytes);

/// A name for the next recording that this process's communicators write to `file`: that name, then
/// FILE-2 and so on.
std::string next_trace_name(const std::string& file);

}  // namespace baton::communicator
