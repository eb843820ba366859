#include "file.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>

#include "baton/error.hpp"

namespace baton::transformer::data {

std::string read_file(const std::filesystem::path& file) {
  const auto refuse = [&](std::string_view found) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: expected a file to read, found {}", file.string(), found));
  };
  if (std::error_code error; std::filesystem::is_directory(file, error)) refuse("a folder");
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  if (!stream) refuse(std::strerror(errno));
  std::string content(std::istreambuf_iterator<char>(stream), {});
  if (stream.bad()) refuse(std::strerror(errno));
  return content;
}

void write_file(const std::filesystem::path& file, std::string_view content) {
  static std::atomic<int> written_before = 0;  // ranks that are threads may write one file at once
  const std::string name =
      fmt::format("{}.{}.{}.part", file.string(), getpid(), written_before.fetch_add(1));
  const int part = open(name.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  bool good = part >= 0;
  while (good && !content.empty()) {
    const ssize_t written = write(part, content.data(), content.size());
    good = written > 0 || (written < 0 && errno == EINTR);
    content.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(written, 0)));
  }
  // On the disk before it has its name.
  good = good && fsync(part) == 0;
  if (part >= 0) good = close(part) == 0 && good;
  if (good && std::rename(name.c_str(), file.c_str()) == 0) return;
  const std::string why = std::strerror(errno);
  if (part >= 0) unlink(name.c_str());
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: expected a file to write, found {}", file.string(), why));
}

void refuse(const std::filesystem::path& file, std::int64_t byte, std::string_view expected,
            std::string_view found) {
  throw Error(ErrorCode::invalid_argument, fmt::format("{}, byte {}: expected {}, found {}",
                                                       file.string(), byte, expected, found));
}

}  // namespace baton::transformer::data
