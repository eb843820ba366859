#pragma once

#include <bitset>
#include <string_view>

#include "function.hpp"

namespace baton::pmpi {

/// The drop-in's environment variables, as rank 0 of MPI_COMM_WORLD has them.
struct Settings {
  std::bitset<function_count> blocking, nonblocking;  ///< interposed functions
  bool stats = false;

  bool any() const { return blocking.any() || nonblocking.any(); }

  /// `what` is "off", "only:NAME,NAME…" or, for all functions, empty; `stats` is "0", "1" or empty.
  /// Throws Error(invalid_argument).
  static Settings parse(std::string_view what, std::string_view stats);
  /// parse() of BATON_PMPI and BATON_PMPI_STATS.
  static Settings from_environment();
};

}  // namespace baton::pmpi
