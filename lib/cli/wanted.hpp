#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "baton/schedule.hpp"

namespace baton::cli {

/// Which schedules a command line asks for.
struct Wanted {
  std::string collective;  ///< may be empty where `schedule` is not
  std::string algorithm;   ///< empty: the reference
  std::string schedule;    ///< a file, in place of all others
  std::string hosts, op = "sum";
  int ranks = 0;  ///< 0: 4, or those of `hosts`
  int root = 0;
  std::int64_t count = -1;   ///< elements of a vector, or of a rank's block; -1: one per chunk
  std::int64_t segment = 0;  ///< elements; 0: not cut
  bool in_place = false;
  bool in_groups = false;  ///< messages are put in groups
  int window = 0;          ///< of groups: messages of one lane, peer and direction; 0: any number

  /// The number of ranks. Throws Error(invalid_argument) where `hosts` is not of as many.
  int size() const;
  /// Which ranks share a host; null: all do.
  std::shared_ptr<const Hosts> grouping() const;
};

/// The schedules of all ranks. Throws Error(invalid_argument), such as for what does not exist.
std::vector<Schedule> schedules_of(const Wanted& wanted);

}  // namespace baton::cli
