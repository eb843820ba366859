#include "file.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "baton/error.hpp"

namespace baton::transformer::data {

namespace {

[[noreturn]] void refuse_access(const std::filesystem::path& file, std::string_view found) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: expected a file to read, found {}", file.string(), found));
}

}  // namespace

std::string read_file(const std::filesystem::path& file) {
  if (std::error_code error; std::filesystem::is_directory(file, error))
    refuse_access(file, "a folder");
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  if (!stream) refuse_access(file, std::strerror(errno));
  std::string content(std::istreambuf_iterator<char>(stream), {});
  if (stream.bad()) refuse_access(file, std::strerror(errno));
  return content;
}

InputFile::InputFile(const std::filesystem::path& file)
    : name_(file), file_(open(file.c_str(), O_RDONLY | O_CLOEXEC)) {
  struct stat status {};
  const bool good = file_ >= 0 && fstat(file_, &status) == 0;
  const int why = errno;
  if (good && S_ISREG(status.st_mode)) {
    size_ = status.st_size;
    return;
  }
  if (file_ >= 0) close(file_);
  if (!good) refuse_access(file, std::strerror(why));
  refuse_access(file, S_ISDIR(status.st_mode) ? "a folder" : "a device or a pipe");
}

InputFile::~InputFile() { close(file_); }

void InputFile::read(std::int64_t first, void* to, std::size_t bytes) const {
  for (std::size_t done = 0; done < bytes;) {
    const std::int64_t byte = first + static_cast<std::int64_t>(done);
    const ssize_t got = pread(file_, static_cast<char*>(to) + done, bytes - done, byte);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      data::refuse(name_, byte, fmt::format("{} bytes more", bytes - done),
                   got == 0 ? "the end of the file" : std::strerror(errno));
    }
    done += static_cast<std::size_t>(got);
  }
}

void refuse(const std::filesystem::path& file, std::int64_t byte, std::string_view expected,
            std::string_view found) {
  throw Error(ErrorCode::invalid_argument, fmt::format("{}, byte {}: expected {}, found {}",
                                                       file.string(), byte, expected, found));
}

}  // namespace baton::transformer::data
