#pragma once

#include <cstdint>
#include <vector>

#include "baton/schedule.hpp"

namespace baton::execute {

/// One thing to do, on the way of a small schedule from its start to its end.
struct ScriptLine {
  /// `receive` posts a receive and awaits it: while it is awaited the rank can do nothing else.
  /// `send` posts a send and awaits it: nothing is left but locals and sends under way.
  enum class Act : std::uint8_t { post, await, receive, send, local };
  static constexpr std::uint8_t none = 0xff;
  Act act;
  std::uint8_t step;
  std::uint8_t turn;         ///< of a message: how many of its channel came before it
  std::uint8_t with = none;  ///< of a receive: the send that may as well be posted and awaited with
                             ///< it, since neither lets any other message go
};

/// The steps of a schedule in an order in which each may be carried out when it is met, with all
/// that wait for nothing posted first: receives, then sends. A receive comes last of all that can
/// be done without it, where no other may be under way at the same time. Empty where the schedule
/// has more than a few steps, whose order had better be that in which messages arrive.
std::vector<ScriptLine> script_of(const Schedule& schedule);

}  // namespace baton::execute
