#pragma once

#include <bitset>
#include <string_view>

#include "function.hpp"

namespace baton::pmpi {

/// What the environment says of the drop-in, as rank 0 of MPI_COMM_WORLD has it.
struct Settings {
  std::bitset<function_count> blocking, nonblocking;  ///< which functions are taken over
  bool stats = false;

  bool any() const { return blocking.any() || nonblocking.any(); }

  /// `what` is "off", "only:NAME,NAME…" or, for all functions, empty; `stats` is "0", "1" or empty.
  /// Throws Error(invalid_argument) that names the variable, what was expected and what was found.
  static Settings parse(std::string_view what, std::string_view stats);
  /// parse() of BATON_PMPI and BATON_PMPI_STATS.
  static Settings from_environment();
};

}  // namespace baton::pmpi
