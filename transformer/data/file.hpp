#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace baton::transformer::data {

/// The file's bytes. Throws Error(invalid_argument) where it cannot be read.
std::string read_file(const std::filesystem::path& file);

/// Writes a file whole: where it fails, or the program ends meanwhile, a file that was there stays
/// as it was. Throws Error(invalid_argument).
void write_file(const std::filesystem::path& file, std::string_view content);

/// Throws Error(invalid_argument): "FILE, byte N: expected …, found …".
[[noreturn]] void refuse(const std::filesystem::path& file, std::int64_t byte,
                         std::string_view expected, std::string_view found);

}  // namespace baton::transformer::data
