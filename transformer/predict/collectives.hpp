#pragma once
/// The collectives of a step: which algorithm, and its schedule within a rank's program.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "baton/schedule.hpp"
#include "baton/select.hpp"
#include "baton/simulate.hpp"
#include "layout.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// A collective of one group.
struct StepCollective {
  Collective collective = Collective::all_reduce;
  Axes along;
  std::int64_t count = 0;  ///< as in Problem; of uneven blocks: of all blocks together
  /// Whether blocks are those of shard_of(`count`), as a unit's parameters are divided.
  bool uneven = false;
  /// Any order.
  auto operator<=>(const StepCollective& other) const {
    const auto key = [](const StepCollective& its) {
      return std::tuple(its.collective, its.along.bits(), its.count, its.uneven);
    };
    return key(*this) <=> key(other);
  }
  bool operator==(const StepCollective&) const = default;
};

/// How algorithms are chosen.
enum class ChoiceRule : std::uint8_t {
  library,  ///< as a communicator without a tuning table does, cut into its pieces
  network,  ///< by the least closed-form time on the network, in one piece; not hierarchical ones
};

/// Chooses algorithms: by name where one is given, else by the rule. The same on all ranks of the
/// group. By the network, the level within a host counts if all ranks of the group share one, else
/// that across; ranks of a host that belong to other groups share its wire.
class CollectiveChoice {
 public:
  /// For elements of this size on a network. `names`: algorithms that are used for these
  /// collectives, in one piece.
  CollectiveChoice(const Network& network, std::size_t element_bytes,
                   ChoiceRule rule = ChoiceRule::library,
                   std::map<Collective, std::string> names = {});

  /// Algorithm and segment. Throws Error(invalid_argument) if none serves.
  Choice of(const StepCollective& call, const StepGroup& group) const;
  /// The schedule of the group's own rank by a choice of of(). Throws Error(invalid_argument) if it
  /// does not serve.
  Schedule schedule(const StepCollective& call, const StepGroup& group, const Choice& choice) const;
  /// About how long the fastest on the network takes, in one piece, ns. Throws
  /// Error(invalid_argument) if none serves.
  double time(const StepCollective& call, const StepGroup& group) const;

 private:
  /// What messages cost: each, and each byte.
  struct Level {
    double start = 0, byte = 0;
  };
  static Level level_of(const NetworkLevel& level);
  Level level_of(const StepGroup& group) const;
  Problem problem_of(const StepCollective& call, const StepGroup& group) const;
  /// The fastest that serves the problem, in one piece and not hierarchical.
  const Algorithm& fastest(const Problem& problem, const Level& level) const;
  double time(const Algorithm& algorithm, const Problem& problem, const Level& level) const;

  std::shared_ptr<const Registry> registry_;
  Level within_, across_;
  int ranks_per_host_ = 0;
  double fold_per_byte_ = 0;
  std::size_t element_bytes_ = 1;
  ChoiceRule rule_;
  std::map<Collective, std::string> names_;
};

/// The schedules of one rank in its groups, generated once.
class Parts {
 public:
  /// Of this rank of the layout; both must outlive it.
  Parts(const CollectiveChoice& choice, const StepLayout& layout, int rank)
      : choice_(choice), layout_(layout), rank_(rank) {}

  /// A collective of one group.
  struct Part {
    Schedule schedule;
    StepGroup group;
    Choice choice;
  };
  /// That of this rank.
  const Part& of(const StepCollective& call);

 private:
  const CollectiveChoice& choice_;
  const StepLayout& layout_;
  int rank_;
  std::map<StepCollective, Part> parts_;
};

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
