#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace support {

/// A folder that is there as long as the object, with all its files.
class TemporaryFolder {
 public:
  TemporaryFolder() : path_(std::filesystem::temp_directory_path() / "baton-test-XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) throw std::filesystem::filesystem_error(path_, {});
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  /// The name of a file in it.
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }
  /// Writes a file in it; its name.
  std::string write(std::string_view name, std::string_view content) const {
    std::string file = *this / name;
    std::ofstream(file, std::ios::binary) << content;
    return file;
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace support
