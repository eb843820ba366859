#pragma once
/// The options of a user, per communicator or per call: one typed table.

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "baton/collective.hpp"

#pragma GCC visibility push(default)
namespace baton {

class Registry;

/// Which algorithm a collective uses.
struct Choice {
  std::string algorithm;  ///< empty: chosen by table or cost
  /// Bytes of a piece of a message; 0: messages are not cut; empty: chosen, too.
  std::optional<std::int64_t> segment = std::nullopt;

  bool operator==(const Choice&) const = default;
};

/// Options of a communicator. Those that affect what is sent are rank 0's on all ranks: they are
/// agreed when the communicator is made.
struct Options {
  /// 1: compare a fingerprint of every call among the ranks first. 2: and give every message a
  /// checksum, see checked_transport(); data lies in the host's memory then (BATON_CHECK). Agreed.
  int check = 0;
  /// Say on standard error which algorithm was chosen and why (BATON_EXPLAIN). Rank 0 speaks.
  bool explain = false;
  /// Give up after this long without progress; 0: never (BATON_TIMEOUT, seconds).
  std::chrono::milliseconds timeout{0};
  /// Messages in flight per lane, peer and direction (BATON_WINDOW). At least 1.
  int window = 2;
  /// Bound of the plan cache, in plans (BATON_PLANS).
  int plans = 256;
  /// Choice per collective (BATON_ALL_REDUCE=ring:128K and so on). Agreed.
  std::array<Choice, collective_count> choices{};
  /// A tuning table, a file or the name of one that comes with the library, for calls and
  /// collectives without a choice (BATON_TABLE). Rank 0 reads it. Refused where it was made for
  /// other ranks; see lib/select/README.md. Agreed.
  std::string table;
  /// A file to which the communicator's collectives are recorded, and those of communicators split
  /// from it (BATON_TRACE); empty: none. Further communicators that a process makes, not by
  /// splitting, write to FILE-2 and so on; those whose rank 0 is another process need another name.
  /// See Communicator::start_recording(). Agreed.
  std::string trace;
  /// Events that each rank keeps, the latest (BATON_TRACE_EVENTS); 40 B each. Agreed.
  std::int64_t trace_events = 1 << 18;
  /// A file to which the last operations of all ranks of a machine are written when one fails or is
  /// given up, as a recording of one computation for each (BATON_FLIGHT); empty: none. The rank
  /// that finds the cause writes it.
  std::string flight;
  /// The communicator's name in errors and in `baton status`; empty: "world", and "world/1:0" of
  /// the part of its first split that has color 0; "world/survivors 1", and "world/survivors 1.1"
  /// of theirs, of shrink(). The first 63 bytes count; of longer names of parts, the middle is left
  /// out. See Communicator::set_name().
  std::string name;
  /// The algorithms to choose from; null: Registry::builtin(). Must be the same on all ranks.
  std::shared_ptr<const Registry> registry;

  /// Defaults, then what the environment says. Throws Error(invalid_argument) that names the
  /// variable, what was expected and what was found.
  static Options from_environment();
  /// Sets one option as its environment variable would: set("BATON_ALL_REDUCE", "ring:128K").
  /// Throws as from_environment(), and for a variable that sets no member, with a list of those
  /// that do.
  void set(std::string_view variable, std::string_view text);
};

/// One row per environment variable, for help texts.
struct OptionInfo {
  std::string variable, form, meaning;
};
std::vector<OptionInfo> option_table();  ///< every option that the environment can set

/// "ring" and "ring:128K" as a choice: algorithm[:segment]. Throws Error(invalid_argument).
Choice parse_choice(std::string_view text);

/// "128K" and "64M" as bytes (powers of 1024); throws Error(invalid_argument).
std::int64_t parse_bytes(std::string_view text);

}  // namespace baton
#pragma GCC visibility pop
