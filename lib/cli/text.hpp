#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace baton::cli {

/// "1 failure", "2 failures"
std::string counted(std::int64_t n, std::string_view what);
/// "3.0 MiB"
std::string human_bytes(std::int64_t bytes);

}  // namespace baton::cli
