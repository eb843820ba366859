#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cli/common/collective_options.hpp"

namespace baton::cli::tune {

/// The command line of `baton tune`.
struct TuneCommand {
  CollectiveOptions data = {.collective = "all", .bytes = "8:16M"};
  std::vector<std::string> schedules, msccl;
  std::string output;
  int repeats = 5;
  bool progress = false;
};

/// The built-in algorithms and those of the user: of shared objects, and made of schedules.
class Algorithms {
 public:
  /// Throws Error(invalid_argument), naming the file, for schedules that are no algorithm, or not
  /// for so many ranks.
  Algorithms(const TuneCommand& command, int ranks);

  const Registry& registry() const { return registry_; }
  /// Those of the user, in order of registration.
  std::vector<const Algorithm*> own(Collective collective) const;
  /// Elements of the whole vector of a collective whose multiples all of the schedules serve.
  std::int64_t unit(Collective collective) const;

 private:
  void add(const CollectiveOptions& data, int ranks);

  Registry registry_;
  std::map<Collective, std::int64_t> units_;
};

/// Sizes of message pieces in bytes that are measured on so many bytes: one at least; 0: not cut.
std::vector<std::int64_t> segments_of(const Algorithm& algorithm, std::int64_t bytes);

}  // namespace baton::cli::tune
