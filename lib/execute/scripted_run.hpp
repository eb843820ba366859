#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "script.hpp"
#include "single_copy_run.hpp"

namespace baton::execute {

/// A run that follows its plan's script, if there is one, while its messages are near: each step is
/// carried out when its line is met, without the bookkeeping of a data-flow run. Where a message
/// keeps it waiting, it goes on in the order of arrival.
///
/// Keeps small scratch and slots itself.
class ScriptedRun final : public SingleCopyRun {
 public:
  ScriptedRun(std::shared_ptr<const Plan> plan, int window);

  /// As Run::start(), and, given `patience.attempts`, on to the end where all messages are near.
  bool start(Transport& transport, const Kernels& kernels, int tag,
             const Patience& patience = {}) override;
  /// Whether there is a script, and room for its messages.
  bool scripted() const { return !script_.empty(); }

 protected:
  void use(Transport& transport) override;

 private:
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

  void write_script();
  void write_waiting_script();
  void post_line(const Line& line);
  [[gnu::cold]] void post_recorded(const Line& line);
  void hand_to_transport(const Line& line);
  bool line_landed(const Line& line);
  void work_line(const Line& line);
  /// Receives a line's message, waiting for it, and sends the one that goes with it.
  void receive(const Line& line);
  /// Sends it, waiting for its end.
  void send(const Line& line);
  /// How far a run has come that has these lines behind it.
  Progress progress_at(std::span<const Line> before) const;
  /// Makes these steps' flights the active ones.
  void note_flights(std::uint64_t steps);
  /// Takes up the order of arrival where the script was left. Returns done().
  bool leave_script(const Progress& progress);

  std::vector<Line> script_;           // empty where there is none, or no room for its messages
  std::vector<Line> waiting_script_;   // the same for ranks that may wait in the transport
  BlockingCalls* blocking_ = nullptr;  // the transport's, if any
  std::vector<std::byte> own_scratch_;
};

}  // namespace baton::execute
