#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "script.hpp"
#include "single_copy_run.hpp"

namespace baton::execute {

/// A run that follows its plan's script while its messages are near. It carries out each step when
/// it meets its line, without the bookkeeping of a data-flow run. If a message keeps it waiting, it
/// continues in the order of arrival.
///
/// Has its own small scratch and slots.
class ScriptedRun final : public SingleCopyRun {
 public:
  ScriptedRun(std::shared_ptr<const Plan> plan, int window);

  /// Run::start(). With `patience.attempts`, it continues to the end if all messages are near.
  bool start(Transport& transport, const Kernels& kernels, int tag,
             const Patience& patience = {}) override;
  /// Whether there is a script, with room for its messages.
  bool scripted() const { return !script_.empty(); }

 protected:
  void use(Transport& transport) override;

 private:
  /// A line of the script with everything that it needs of the plan.
  struct Line {
    ScriptLine::Act act;
    bool sends;  // whether a message is sent
    StepKind kind;
    std::uint32_t step;
    std::uint32_t flight;
    int peer, lane;
    Place place;
    std::size_t bytes;    // of a message, or of a local step that is one block
    std::uint32_t with;   // of a receive: the line in script_ of the send that goes with it
    std::uint32_t taker;  // of a receive: the step that depends on nothing else, or Plan::none
    std::span<const Piece> pieces;  // of a local step
  };
  /// Steps, as bits.
  struct Progress {
    std::uint64_t posted = 0, complete = 0;
  };

  void write_script();
  void write_waiting_script();
  bool waits_inside(const Line& line) const;
  void post_line(const Line& line);
  [[gnu::cold]] void post_recorded(const Line& line);
  void hand_to_transport(const Line& line);
  bool line_landed(const Line& line);
  void work_line(const Line& line);
  /// Waits for a line's message, and sends the one that goes with it.
  void receive(const Line& line, BlockedView& view);
  /// Sends a line's message and waits for its end.
  void send(const Line& line, BlockedView& view);
  /// The progress of a run that has these lines behind it.
  Progress progress_at(std::span<const Line> before) const;
  /// Marks these steps' flights as active.
  void note_flights(std::uint64_t steps);
  /// Continues in the order of arrival from this point of the script. Returns done().
  bool leave_script(const Progress& progress);

  std::vector<Line> script_;           // empty without a script, or without room for its messages
  std::vector<Line> waiting_script_;   // the same for ranks that may wait in the transport
  BlockingCalls* blocking_ = nullptr;  // the transport's, if any
  std::vector<std::byte> own_scratch_;
};

}  // namespace baton::execute
