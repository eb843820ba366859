#pragma once

#include <fstream>
#include <string>
#include <vector>

#include "cli/common/json.hpp"
#include "report.hpp"

namespace baton::cli::bench {

/// Everything that was measured, all samples included.
Json json_of(const BenchRow& row);
Json json_of(const std::vector<BenchRow>& rows);
Json json_of(const Links& links);

/// The file of option --json, opened before anything is measured. Throws Error(invalid_argument) if
/// it cannot be written.
class JsonFile {
 public:
  explicit JsonFile(const std::string& path);
  void write(const Json& json);

 private:
  std::string path_;
  std::ofstream stream_;
};

}  // namespace baton::cli::bench
