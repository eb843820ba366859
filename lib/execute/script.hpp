#pragma once

#include <cstdint>
#include <vector>

#include "baton/schedule.hpp"

namespace baton::execute {

/// One action of a small schedule's script.
struct ScriptLine {
  /// `receive` posts a receive and awaits it, when the rank can do nothing else. `send` posts a
  /// send and awaits it, when only local steps and sends under way are left.
  enum class Act : std::uint8_t { post, await, receive, send, local };
  static constexpr std::uint8_t none = 0xff;
  Act act;
  std::uint8_t step;
  std::uint8_t turn;         ///< of a message: the number of earlier messages of its channel
  std::uint8_t with = none;  ///< of a receive: a send that may be posted and awaited together with
                             ///< it, since neither lets any other message go
};

/// The steps of a schedule in an order in which each can run when it is met. Messages without
/// dependencies are posted first: receives, then sends. A receive that must be under way alone
/// comes after all steps that do not need it.
///
/// Empty if the schedule has more than a few steps: those are better run in the order in which
/// messages arrive.
std::vector<ScriptLine> script_of(const Schedule& schedule);

}  // namespace baton::execute
