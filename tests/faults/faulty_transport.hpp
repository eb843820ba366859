#pragma once
/// A transport with one planned fault.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "baton/forwarding.hpp"

namespace faults {

enum class Kind : std::uint8_t {
  none,
  reordered,   ///< messages of different peers and tags overtake each other, as the seed says
  shortened,   ///< a message of the rank loses its last byte
  lengthened,  ///< it has one more
  corrupted,   ///< one bit of it changes
  refused,     ///< a send or receive is refused when it is posted
  failed,      ///< it fails while it is under way
  stopped,     ///< the rank stops when it posts it, until the others are done
  dead,        ///< the rank's program ends there: an exception of its own
  no_memory,   ///< an allocation of the rank fails
};
inline constexpr int kinds = 10;
const char* name(Kind kind);

struct Plan {
  Kind kind = Kind::none;
  int rank = 0;            ///< that has the fault
  int at = 0;              ///< the number of its message, or of its allocation
  std::uint64_t seed = 0;  ///< of kind `reordered`; otherwise of the transport's delays, 0: none
};
/// "rank 2: message 5 corrupted".
std::string describe(const Plan& plan);

/// Thrown by kind `dead`, and by `stopped` at the end.
struct Ended {};

/// The course of a fault, shared by the ranks.
struct Course {
  std::atomic<bool> armed = false;     ///< messages count from now on
  std::atomic<bool> happened = false;  ///< the fault
  std::atomic<bool> over = false;      ///< a rank that has stopped may end
};

/// Only the plan's rank has the fault; kind `reordered` has every rank.
std::unique_ptr<baton::Transport> faulty_transport(std::unique_ptr<baton::Transport> inner,
                                                   const Plan& plan, Course& course);

}  // namespace faults
