#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace baton::cli {

/// Throws Error(invalid_argument).
[[noreturn]] void refuse(const std::string& sentence);

/// "1 failure", "2 failures"
std::string counted(std::int64_t n, std::string_view what);
/// "3.0 MiB"
std::string human_bytes(std::int64_t bytes);
/// "12.3 us"; of microseconds.
std::string human_time(double us);
/// "1.234", "12.34", "1234"; of seconds.
std::string microseconds(double seconds);
double gigabytes_per_second(std::int64_t bytes, double seconds);
/// "128K"; "-": 0; "several": negative.
std::string segment_text(std::int64_t bytes);

/// The text of a file. Throws Error(invalid_argument).
std::string file_text(const std::string& file);
/// Writes a file; throws Error(invalid_argument) that names `option`.
void write_file(const std::string& option, const std::string& file, std::string_view text);

}  // namespace baton::cli
