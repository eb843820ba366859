#pragma once
/// Files, read. baton/output_file.hpp writes them.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace baton::transformer::data {

/// The file's bytes. Throws Error(invalid_argument) where it cannot be read.
std::string read_file(const std::filesystem::path& file);

/// A file that is read in pieces.
class InputFile {
 public:
  /// Throws Error(invalid_argument) where it cannot be read.
  explicit InputFile(const std::filesystem::path& file);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  /// As it was given.
  const std::filesystem::path& name() const { return name_; }
  /// Bytes, when it was opened.
  std::int64_t size() const { return size_; }
  /// Copies `bytes` bytes from number `first` on. Throws Error(invalid_argument) that names the
  /// byte where the file ends before, or cannot be read.
  void read(std::int64_t first, void* to, std::size_t bytes) const;

 private:
  std::filesystem::path name_;
  int file_ = -1;
  std::int64_t size_ = 0;
};

/// Throws Error(invalid_argument): "FILE, byte N: expected …, found …".
[[noreturn]] void refuse(const std::filesystem::path& file, std::int64_t byte,
                         std::string_view expected, std::string_view found);

}  // namespace baton::transformer::data
