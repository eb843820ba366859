#pragma once
/// The row with which each algorithm's file ends.

#include <limits>
#include <span>
#include <string>

#include "baton/schedule.hpp"

namespace baton::algorithms {

/// An algorithm as the registry has it: see baton::Algorithm for what the members mean. Constant
/// data, so that all rows are there before any code runs.
///
/// The file <collective>_<name>.cpp defines the row <collective>_<name>. Nothing else names it: the
/// build collects the files (collect.py).
struct Row {
  Collective collective;
  const char* name;
  /// Where the algorithm stands among those of its collective. The first is the reference; of equal
  /// estimates the first is chosen. Without it: behind the others, by name.
  int place = std::numeric_limits<int>::max();
  Schedule (*generate)(const Problem&);
  Cost (*cost)(const Problem&);
  std::string (*refuses)(const Problem&) = nullptr;
  bool uneven = false, ordered = false, pipelined = false, hierarchical = false, neighbors = false;
  const char* rounds;
  const char* depth = "";
  const char* sent;
  const char* source;
};

/// The registry's entry for a row.
Algorithm algorithm_of(const Row& row);

/// The rows of all files, in any order, and the name of each row's file without ".cpp".
struct NamedRow {
  const char* file;
  const Row* row;
};
std::span<const NamedRow> all_rows();

}  // namespace baton::algorithms
