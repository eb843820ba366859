#pragma once

#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench_report.hpp"
#include "card.hpp"
#include "contest.hpp"
#include "rival.hpp"
#include "world.hpp"

namespace baton::cli {

/// The command line of `baton bench`.
struct BenchOptions {
  std::vector<std::string> collectives;
  std::string bytes = "8:64M", type = "f32", op = "sum", segment, through = "api";
  std::string device;       // empty: the host
  std::string json, trace;  // files
  ContestOptions contest;
  int factor = 2, root = 0, sample_ms = 5;
  int ranks = 0;  // on devices; 0: one on each, but two at least
  bool progress = false;
};

std::vector<Exercise> exercises_for(const BenchOptions& options, int ranks);

/// A file for option --json; throws Error(invalid_argument) if it cannot be written.
std::ofstream json_file(const std::string& path);
void write_json(std::ofstream& file, const std::string& path, const Json& json);

/// `baton bench --device`. The exit code.
int bench_device(const BenchOptions& options, Launch& launch);

/// What a rank of bench_on() works with.
struct BenchDevices {
  int ranks = 0;  ///< of a collective
  /// On rank 0, of its threads: rank r on card r modulo their number.
  std::vector<Card> cards;
  /// This rank's device for the rival's messages and collectives, and the way that these go.
  Card own = {};
  std::string way = {};
  /// Makes the rival. Collective. Throws Error(unsupported) on all ranks where there is none.
  std::function<std::unique_ptr<Rival>(Transport& host, const Card& own)> rival;
};

/// The benchmark: ours by `devices.ranks` threads of rank 0's process and, among the ranks of
/// `world`, ours by the rival's messages and the rival's own.
int bench_on(World& world, const BenchDevices& devices, const BenchOptions& options);

}  // namespace baton::cli
