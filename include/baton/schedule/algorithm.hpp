#pragma once
/// The properties of an algorithm beside its schedule, and the table of all algorithms.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "baton/schedule/step.hpp"

#pragma GCC visibility push(default)
namespace baton {

/// The cost of an algorithm for the rank `problem.rank`, unsegmented. Proved against the schedules.
struct Cost {
  /// Longest path over all ranks in the one-port model: a message takes one unit, a rank sends one
  /// message and receives one at a time, each in program order; folds and copies take none. The
  /// same for every rank of the problem. For counts that leave some messages empty, an upper bound.
  std::int64_t rounds = 0;
  std::int64_t sent = 0;      ///< elements sent by this rank
  std::int64_t received = 0;  ///< elements received by this rank
  std::int64_t scratch = 0;   ///< elements of scratch, slots not counted
  std::int64_t folded = 0;    ///< elements that this rank folds
  /// Elements of the messages along the longest path, about, for choosing among algorithms; 0: as
  /// many as the busiest rank sends or receives.
  std::int64_t path = 0;
  /// Longest path if ranks could send and receive any number of messages at once: how often a
  /// latency is paid. 0: as many as rounds, at most.
  std::int64_t depth = 0;
  /// Of a hierarchical algorithm: the rounds and the path's elements between ranks of one host, at
  /// most. Its `path` then counts what passes one host's link in one direction, by all its ranks.
  std::int64_t local_rounds = 0;
  std::int64_t local_path = 0;
};

/// One row of the registry.
struct Algorithm {
  Collective collective = Collective::all_reduce;
  std::string name;  ///< unique within the collective
  std::function<Schedule(const Problem&)> generate;
  std::function<Cost(const Problem&)> cost;
  /// Why the algorithm does not serve this problem, as the end of a sentence ("needs an even number
  /// of ranks, found 5"); empty if it does. Null: serves every problem of the collective that
  /// `uneven` and `ordered` allow. Must not depend on problem.rank.
  std::function<std::string(const Problem&)> refuses;
  bool uneven = false;     ///< takes uneven counts
  bool ordered = false;    ///< keeps rank order, so serves operations that do not commute
  bool pipelined = false;  ///< pipelined by structure: takes problem.blocks instead of segments
  /// Treats ranks of one host apart from others: serves ranks on several hosts, some of which share
  /// one.
  bool hierarchical = false;
  bool neighbors = false;   ///< each rank sends to one of the two next to it, all the time
  std::string rounds = {};  ///< formula of Cost::rounds, for readers
  std::string depth = {};   ///< of Cost::depth; empty: as many as rounds, at most
  std::string sent = {};    ///< of Cost::sent of the rank that sends the most
  std::string source = {};  ///< where it was published
};

/// The algorithms that a program has. A value: copy the built-in ones, add your own, and hand the
/// result to a communicator.
class Registry {
 public:
  /// An empty table.
  Registry() = default;
  /// All algorithms of this library.
  static Registry builtin();

  /// Adds an algorithm; throws Error(invalid_argument) if the name is taken or a part is missing.
  void add(Algorithm algorithm);
  /// The algorithm; throws Error(invalid_argument) that lists those that exist.
  const Algorithm& find(Collective collective, std::string_view name) const;
  /// All algorithms of a collective, in order of registration: the first is the reference.
  std::vector<const Algorithm*> of(Collective collective) const;
  /// All algorithms, in order of registration.
  const std::vector<Algorithm>& all() const& { return algorithms_; }
  void all() && = delete;  // the table would be gone before its algorithms are read

 private:
  std::vector<Algorithm> algorithms_;
};

/// Why `algorithm` does not serve `problem`, as the end of a sentence; empty if it does.
std::string refusal(const Algorithm& algorithm, const Problem& problem);

}  // namespace baton
#pragma GCC visibility pop
