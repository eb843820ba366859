#pragma once
/// Agreement among the ranks that still answer.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <vector>

#include "baton/transport.hpp"

namespace baton::communicator {

/// All ranks that take part greet each other. The lowest one proposes a group; when all members
/// have accepted, it commits, and tells also the ranks left out. A rank accepts one proposal:
/// another one only if the first proposer is in it, who then withdraws his own. So no rank is in
/// two groups.
class Survivors {
 public:
  struct Limits {
    std::chrono::milliseconds patience;  ///< for an answer
    std::function<bool(int)> gone;       ///< whether this rank certainly sends nothing more
    /// Whether this rank certainly takes part; optional.
    std::function<bool(int)> takes_part = [](int) { return false; };
    /// Whether others have told this rank, not by messages, that they go on without it; optional.
    std::function<bool()> left_out = [] { return false; };
  };
  /// `turn`: the same on all ranks, another for each agreement. Messages have tag `tag`.
  Survivors(Transport& transport, int tag, std::uint32_t turn, Limits limits);
  /// Gives up messages to ranks that do not answer.
  ~Survivors();
  Survivors(const Survivors&) = delete;
  Survivors& operator=(const Survivors&) = delete;

  /// The ranks of the group, ascending, this one among them; the same on all of them, unless one
  /// dies meanwhile. Throws Error(timeout) on a rank that is left out or cannot agree, and
  /// Error(transport) on one that receives nothing from ranks that take part: alone it must not
  /// leave them out.
  std::vector<int> agree();
  /// The ranks that did not greet this one within the patience, ascending. Every caller greets all
  /// others. Instead of agree().
  std::vector<int> absent();

 private:
  enum class Kind : std::uint32_t { hello, propose, accept, reject, commit };
  struct Head {
    std::uint32_t turn;
    Kind kind;
    std::uint32_t ballot;
  };
  using Ranks = std::vector<bool>;  // by rank
  using Clock = std::chrono::steady_clock;
  struct Peer {
    Message message;
    std::vector<std::byte> bytes;
    bool listening = false, heard = false, accepted = false;
    bool gone = false;    // sends nothing more
    bool silent = false;  // does not answer, and may yet do so
    bool lost() const { return gone || silent; }
  };
  struct Sent {
    int to;
    Message message;
    std::vector<std::byte> bytes;
  };

  Peer& peer(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  void listen(int rank);
  void send(int to, Kind kind, std::uint32_t ballot, const Ranks& ranks = {});
  void take(int from);
  void poll();
  /// Polls until `done()` or the time has passed.
  bool wait(std::chrono::milliseconds at_most, const std::function<bool()>& done);
  bool settled() const { return committed_ || left_out_by_ >= 0; }
  Ranks view() const;
  void consider(int from, std::uint32_t ballot, const Ranks& ranks);
  /// False: a member rejects the group.
  bool propose(const Ranks& ranks);
  /// Proposes a group until its members answer with one voice, another rank leads, or the patience
  /// is over.
  void lead(const Ranks& ranks);
  void follow(int leader);
  void commit(const Ranks& ranks);
  /// Greets all others, and waits until each has done so or is gone.
  void greet();
  bool deaf() const;
  /// The first rank that takes part, if none has been heard; otherwise -1.
  int unheard() const;
  /// `late`: it was so when this rank came.
  void fail_if_left_out(bool late) const;

  Transport& transport_;
  const int tag_, rank_, size_;
  const std::uint32_t turn_;
  const Limits limits_;
  std::vector<Peer> peers_;
  std::list<Sent> sent_;
  Clock::time_point look_at_ = {};  // next question who is gone
  std::uint32_t ballot_ = 0;
  bool leading_ = false;  // its proposal stands
  bool committing_ = false;
  int accepted_ = -1;     // whose proposal
  int left_out_by_ = -1;  // the rank that says so
  bool committed_ = false;
  Ranks group_;
};

}  // namespace baton::communicator
