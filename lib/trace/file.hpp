#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "part.hpp"

namespace baton::tracing {

/// What stands at the beginning of a trace file. The format is described in README.md.
std::string file_head();
/// One rank's part, to stand behind it.
std::string written(const Part& part);

struct ReadParts {
  std::vector<Part> parts;
  std::vector<std::string> damage;  ///< a sentence for each thing that was lost
};
/// All parts of a file, but for what is damaged. Throws Error(invalid_argument) where it is no
/// trace, or one of another version; `origin` is what sentences call it.
ReadParts read_parts(std::string_view bytes, const std::string& origin);

}  // namespace baton::tracing
