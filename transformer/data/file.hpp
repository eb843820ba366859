#pragma once
/// Files, read and written.

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

/// A file that is written in pieces beside the one of its name, which it replaces when it is whole:
/// where writing fails, or the program ends meanwhile, a file that was there stays as it was.
class OutputFile {
 public:
  /// Throws Error(invalid_argument) where it cannot be written, as do all functions.
  explicit OutputFile(const std::filesystem::path& file);
  /// Removes what has not been committed.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// Appends bytes.
  void write(const void* data, std::size_t bytes);
  /// Gives the file its name, when all of it is on the disk.
  void commit();

 private:
  [[noreturn]] void refuse();
  std::filesystem::path name_, part_;
  int file_ = -1;
};

/// Writes an OutputFile at once. Throws Error(invalid_argument).
void write_file(const std::filesystem::path& file, std::string_view content);

/// Throws Error(invalid_argument): "FILE, byte N: expected …, found …".
[[noreturn]] void refuse(const std::filesystem::path& file, std::int64_t byte,
                         std::string_view expected, std::string_view found);

}  // namespace baton::transformer::data
