#pragma once
/// The cause of a hang, from the pages of all ranks.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "page.hpp"

namespace baton::status {

/// The facts about one rank of the communicator.
struct Witness {
  std::optional<Standing> standing;  ///< empty: it has no page
  Condition condition;
  /// Pages of its process in other communicators, with an operation under way.
  std::vector<Standing> others = {};
  bool shown = true;  ///< it had a page when the communicator was made
};

/// The operation that a rank gives up.
struct Complaint {
  std::string label;  ///< the communicator's
  int rank = 0;
  std::uint64_t number = 0;  ///< 0: a message
  std::string name;          ///< "recv"
  int peer = -1;             ///< of a message
  double seconds = 0;        ///< without progress
  std::string failure = {};  ///< that the rank found instead; empty: it ran out of time
};

/// The collective at which the communicator hangs: the least one that any rank has not completed;
/// 0: no rank has a page.
std::uint64_t first_pending(std::span<const Witness> ranks);

/// What `look` finds; a rank that lives and is in the hanging collective gets 150 ms to show that
/// it waits there, since on a crowded machine it may have had no turn since its last message.
std::vector<Witness> look_closely(const std::function<std::vector<Witness>()>& look);

/// One sentence, which, unless the rank found a failure, does not depend on the rank that asks,
/// except for messages: "all_reduce #12 of communicator 'world' cannot complete …: rank 2 has not
/// entered it (…); rank 0 waits for …".
std::string diagnosis(const Complaint& complaint, std::span<const Witness> ranks);

}  // namespace baton::status
