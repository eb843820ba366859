#pragma once

#include <fstream>
#include <string>
#include <vector>

#include "bench_report.hpp"
#include "contest.hpp"
#include "world.hpp"

namespace baton::cli {

/// The command line of `baton bench`.
struct BenchOptions {
  std::vector<std::string> collectives;
  std::string bytes = "8:64M", type = "f32", op = "sum", segment, through = "api";
  std::string device;              // empty: the host
  std::string json, judge, trace;  // files
  ContestOptions contest;
  int factor = 2, root = 0, sample_ms = 5;
  int ranks = 0;  // on devices; 0: one on each, but two at least
  bool strict = false, progress = false;
};

std::vector<Exercise> exercises_for(const BenchOptions& options, int ranks);

/// A file for option --json; throws Error(invalid_argument) if it cannot be written.
std::ofstream json_file(const std::string& path);
void write_json(std::ofstream& file, const std::string& path, const Json& json);

/// `baton bench --device`. The exit code.
int bench_device(const BenchOptions& options, Session& session);

/// The benchmark on `cards`, rank r on card r modulo their number.
int bench_on(const std::vector<Card>& cards, int ranks, const BenchOptions& options,
             Session& session);

}  // namespace baton::cli
