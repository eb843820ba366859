#include "file.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>

#include "baton/error.hpp"

namespace baton::transformer::data {

namespace {

[[noreturn]] void refuse_access(const std::filesystem::path& file, std::string_view to,
                                std::string_view found) {
  throw Error(ErrorCode::invalid_argument,
              fmt::format("{}: expected a file to {}, found {}", file.string(), to, found));
}

}  // namespace

std::string read_file(const std::filesystem::path& file) {
  if (std::error_code error; std::filesystem::is_directory(file, error))
    refuse_access(file, "read", "a folder");
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  if (!stream) refuse_access(file, "read", std::strerror(errno));
  std::string content(std::istreambuf_iterator<char>(stream), {});
  if (stream.bad()) refuse_access(file, "read", std::strerror(errno));
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
  if (!good) refuse_access(file, "read", std::strerror(why));
  refuse_access(file, "read", S_ISDIR(status.st_mode) ? "a folder" : "a device or a pipe");
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

OutputFile::OutputFile(const std::filesystem::path& file) : name_(file) {
  static std::atomic<int> made_before = 0;  // ranks that are threads may write one file at once
  part_ = fmt::format("{}.{}.{}.part", file.string(), getpid(), made_before.fetch_add(1));
  file_ = open(part_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file_ < 0) refuse();
}

OutputFile::~OutputFile() {
  if (file_ >= 0) close(file_);
  if (!part_.empty()) unlink(part_.c_str());
}

void OutputFile::refuse() { refuse_access(name_, "write", std::strerror(errno)); }

void OutputFile::write(const void* data, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t written = ::write(file_, static_cast<const char*>(data) + done, bytes - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) refuse();
    done += static_cast<std::size_t>(written);
  }
}

void OutputFile::commit() {
  if (fsync(file_) != 0) refuse();  // on the disk before it has its name
  const bool closed = close(std::exchange(file_, -1)) == 0;
  if (!closed || std::rename(part_.c_str(), name_.c_str()) != 0) refuse();
  part_.clear();
  // The name as well; where folders cannot be synchronised, the system does it in its own time.
  const std::filesystem::path folder = name_.has_parent_path() ? name_.parent_path() : ".";
  const int names = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (names < 0) return;
  fsync(names);
  close(names);
}

void write_file(const std::filesystem::path& file, std::string_view content) {
  OutputFile output(file);
  output.write(content.data(), content.size());
  output.commit();
}

void refuse(const std::filesystem::path& file, std::int64_t byte, std::string_view expected,
            std::string_view found) {
  throw Error(ErrorCode::invalid_argument, fmt::format("{}, byte {}: expected {}, found {}",
                                                       file.string(), byte, expected, found));
}

}  // namespace baton::transformer::data
