#pragma once
/// Questions about ranks, and what others may do to a rank's page: of this machine directly, of
/// another in messages.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "diagnosis.hpp"
#include "page.hpp"

namespace baton::status {

enum class Action : std::uint8_t {
  look,       ///< nothing but a look
  give_up,    ///< lets the rank know that operation `number` is given up
  claim,      ///< rank `number` wants to write the first sentence of all; `done`: it may
  tell,       ///< the sentence about operation `number`
  told,       ///< the same, of the caller that has the right
  leave_out,  ///< shrink() number `number` goes on without the rank
  report,     ///< a sentence with hash `number`; `done`: nobody has reported it before
};

/// A rank of the communicator that is asked about.
struct Member {
  std::int32_t rank = 0;
  ProcessId process;
};

struct Inquiry {
  Action action = Action::look;
  std::uint64_t communicator = 0;
  std::uint64_t number = 0;
  std::uint32_t code = 0;  ///< ErrorCode, of what is given up or told
  std::string sentence = {};
  std::vector<Member> members = {};
};

/// The answer about one rank.
struct Finding {
  Witness witness;    ///< without its page, unless this was a look
  bool page = false;  ///< it has one
  bool done = false;
};

/// Does to a page what is asked; false: somebody has done it before.
bool act(const Inquiry& inquiry, Layout& page);
/// Answers about members that run on this machine, in their order.
std::vector<Finding> answers(const Inquiry& inquiry);

/// As bytes, less than 64 KiB for each finding.
std::vector<std::byte> packed(const Inquiry& inquiry);
std::vector<std::byte> packed(const Finding& finding);
/// What was packed; none: these bytes are no such thing. Times are moved to this machine's clock.
std::optional<Inquiry> inquiry_of(std::span<const std::byte> bytes);
std::optional<Finding> finding_of(std::span<const std::byte> bytes);

}  // namespace baton::status
