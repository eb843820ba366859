#include "baton/trace.hpp"

#include <fmt/core.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "baton/error.hpp"
#include "file.hpp"
#include "merge.hpp"

namespace baton {

Trace read_trace(std::span<const std::string> files, bool force) {
  Trace trace;
  std::vector<tracing::Part> parts;
  for (const std::string& file : files) {
    if (std::filesystem::is_directory(file)) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("expected a trace file, found that {} is a folder", file));
    }
    std::ifstream stream(file, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
    if (!stream) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("expected a trace file, found that {} cannot be read: {}", file,
                              std::strerror(errno)));
    }
    tracing::ReadParts read = tracing::read_parts(bytes, file);
    std::move(read.parts.begin(), read.parts.end(), std::back_inserter(parts));
    std::move(read.damage.begin(), read.damage.end(), std::back_inserter(trace.damage));
  }
  trace.timeline = tracing::merged(std::move(parts), force);
  return trace;
}

}  // namespace baton
