#pragma once
/// The collectives of a step: which algorithm, and its schedule within a rank's program.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "baton/export.hpp"
#include "baton/schedule.hpp"
#include "baton/simulate.hpp"
#include "layout.hpp"

namespace BATON_API baton {
namespace transformer {

/// Chooses algorithms: by name where one is given, else that of the least time by its closed-form
/// cost, on the network's level within a host if all ranks of the group share one, else across. The
/// same on all ranks of the group. Ranks of a host that belong to other groups share its wire.
/// Hierarchical and pipelined algorithms are not considered.
class CollectiveChoice {
 public:
  /// For elements of this size on a network. `names`: algorithms that are used for these
  /// collectives.
  CollectiveChoice(const Network& network, std::size_t element_bytes,
                   std::map<Collective, std::string> names = {});

  /// `count` as in Problem.
  const Algorithm& of(Collective collective, const StepGroup& group, std::int64_t count) const;
  /// About how long it takes, ns.
  double time(Collective collective, const StepGroup& group, std::int64_t count) const;

 private:
  /// What messages cost: each, and each byte.
  struct Level {
    double start = 0, byte = 0;
  };
  static Level level_of(const NetworkLevel& level);
  Level level_of(const StepGroup& group) const;
  double time(const Algorithm& algorithm, const Problem& problem, const Level& level) const;

  std::shared_ptr<const Registry> registry_;
  Level within_, across_;
  int ranks_per_host_ = 0;
  double fold_per_byte_ = 0, element_bytes_ = 1;
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
  };
  /// That of `count` elements among the ranks along an axis.
  const Part& of(Collective collective, Along along, std::int64_t count);

 private:
  const CollectiveChoice& choice_;
  const StepLayout& layout_;
  int rank_;
  std::map<std::tuple<Collective, Along, std::int64_t>, Part> parts_;
};

}  // namespace transformer
}  // namespace baton
