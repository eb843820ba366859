#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "part.hpp"

namespace baton::tracing {

/// The first bytes of a trace file. README.md describes the format.
std::string file_head();
/// One rank's part as bytes, to follow the head.
std::string written(const Part& part);

struct ReadParts {
  std::vector<Part> parts;
  std::vector<std::string> damage;  ///< a sentence for each loss
};
/// All undamaged parts of a file. Throws Error(invalid_argument) if it is no trace, or of another
/// version. Sentences call the file `origin`.
ReadParts read_parts(std::string_view bytes, const std::string& origin);

}  // namespace baton::tracing
