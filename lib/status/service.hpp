#pragma once
/// Questions to other machines. Each process that may be asked has a door, a TCP port at which a
/// thread answers: the process may be stuck in its transport.

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "inquiry.hpp"

namespace baton::status {

/// Where a process answers.
struct Door {
  static constexpr std::size_t most_addresses = 3;
  std::uint64_t number = 0;  ///< that who asks must know; 0: it answers nobody
  std::uint64_t port = 0;
  std::array<std::array<char, 48>, most_addresses> addresses{};  ///< as text; empty: no more
};

/// Whether BATON_INTERFACE is set: a door is wanted also without a timeout.
bool door_wanted();

/// This process's door, which is opened now, once, and stays. It answers whoever knows its number
/// and BATON_SECRET. It is at the addresses of the interfaces that BATON_INTERFACE names (as
/// tcp::own_addresses() reads it), without loopback where there is another. Number 0 if the system
/// gives none.
Door own_door();

enum class Reply : std::uint8_t {
  answered,
  refused,  ///< nobody listens there: the process has ended, if it ever answered
  silent,
};
struct Answers {
  Reply reply = Reply::silent;
  std::vector<Finding> findings = {};  ///< of the inquiry's members, if it answered
};

/// Asks the process behind a door about ranks of its machine; waits for `limit` at most.
Answers ask(const Door& door, const Inquiry& inquiry, std::chrono::milliseconds limit);

/// The ranks of a communicator that run on other machines.
class Elsewhere {
 public:
  /// `doors`: of a family's ranks; `places`: the communicator's ranks in it.
  Elsewhere(std::shared_ptr<const std::vector<Door>> doors, std::span<const ProcessId> processes,
            std::vector<int> places);
  ~Elsewhere();
  Elsewhere(const Elsewhere&) = delete;
  Elsewhere& operator=(const Elsewhere&) = delete;

  /// What another process of this user and machine needs to ask the same ranks, and what it makes
  /// of it; null: these bytes are no such thing.
  std::vector<std::byte> written() const;
  static std::unique_ptr<Elsewhere> read(std::span<const std::byte> bytes);

  /// Of a communicator of these ranks.
  std::unique_ptr<Elsewhere> part(const std::vector<int>& ranks) const;
  /// Whether there are such ranks.
  bool any() const { return !machines_->empty(); }
  /// Whether a rank runs on another machine.
  bool has(int rank) const;
  /// Those ranks.
  std::vector<int> ranks() const;
  /// The first rank on this machine; -1: there is none.
  int first_here() const;
  /// Asks about ranks of other machines, all machines at once; findings in the order of `ranks`. Of
  /// a machine that does not answer, the condition is Life::elsewhere.
  std::vector<Finding> ask(const Inquiry& inquiry, std::span<const int> ranks) const;
  /// The latest finding about such a rank; asks in the background, a few times a second. Before the
  /// first answer: Life::elsewhere.
  Finding latest(int rank, std::uint64_t communicator) const;

 private:
  struct Machine;
  struct Look;
  std::vector<Finding> ask_machine(Machine& machine, const Inquiry& inquiry,
                                   std::span<const int> ranks) const;

  const std::shared_ptr<const std::vector<Door>> doors_;
  const std::vector<ProcessId> processes_;
  const std::vector<int> places_;
  const std::unique_ptr<std::vector<std::unique_ptr<Machine>>> machines_;
  const std::unique_ptr<Look> look_;
};

}  // namespace baton::status
