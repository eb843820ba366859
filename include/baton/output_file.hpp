#pragma once
/// Files that are replaced whole or not at all.

#include <cstddef>
#include <string>
#include <string_view>

#pragma GCC visibility push(default)
namespace baton {

/// A file that is written in pieces beside the one of its name, as FILE.part-PID, and replaces it
/// when it is whole: where writing fails, or the program ends meanwhile, a file that was there
/// stays as it was. It gets that file's permissions. Of a symbolic link, the file that it leads to
/// is replaced. What is no regular file (a pipe, a device, /dev/stdout) is written at once.
///
/// All functions throw Error(invalid_argument) that names the file and the system's reason.
class OutputFile {
 public:
  /// Makes the part: where it returns, the folder can be written to.
  explicit OutputFile(const std::string& file);
  /// Removes what has not been committed.
  ~OutputFile();
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&& other) noexcept;

  /// Appends bytes.
  void write(const void* data, std::size_t bytes);
  /// Appends a text.
  void write(std::string_view text) { write(text.data(), text.size()); }
  /// For a program that writes to it itself.
  int descriptor() const { return file_; }
  /// Gives the file its name, when all of it is on the disk. The last call.
  void commit();

 private:
  std::string name_;    // as it was given
  std::string target_;  // that is replaced; empty: the file is written at once
  std::string part_;    // empty: there is none (any more)
  int file_ = -1;
};

/// Writes a whole OutputFile.
void write_file(const std::string& file, std::string_view content);

}  // namespace baton
#pragma GCC visibility pop
