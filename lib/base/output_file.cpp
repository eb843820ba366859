#include "baton/output_file.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "raise.hpp"

namespace baton {
namespace {

[[noreturn]] void refuse(const std::string& file, int reason) {
  base::refuse("{}: expected a file to write, found {}", file,
               std::generic_category().message(reason));
}

std::string folder_of(const std::string& file) {
  const std::string folder = std::filesystem::path(file).parent_path().string();
  return folder.empty() ? "." : folder;
}

/// The name at the end of symbolic links. None: one of them stands for an open file of a process,
/// as /dev/stdout does, whose name must not get another file.
std::optional<std::string> target_of(std::string file) {
  constexpr int most_links = 40;  // as the system
  for (int links = 0; links < most_links; ++links) {
    struct stat status {};
    if (lstat(file.c_str(), &status) != 0 || !S_ISLNK(status.st_mode)) break;
    const std::string folder = folder_of(file);
    struct statfs system {};
    if (statfs(folder.c_str(), &system) == 0 && system.f_type == PROC_SUPER_MAGIC)
      return std::nullopt;
    std::error_code error;
    const auto to = std::filesystem::read_symlink(file, error);
    if (error) break;
    file = (std::filesystem::path(folder) / to).string();
  }
  return file;
}

/// A new file; what an ended process of this number has left goes.
int made(const std::string& part, mode_t mode) {
  constexpr int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
  int file = open(part.c_str(), flags, mode);
  if (file < 0 && errno == EEXIST && unlink(part.c_str()) == 0)
    file = open(part.c_str(), flags, mode);
  return file;
}

bool on_disk(int file) {
  // Not all file systems can: EINVAL.
  return fsync(file) == 0 || errno == EINVAL || errno == ENOTSUP;
}

}  // namespace

OutputFile::OutputFile(const std::string& file) : name_(file) {
  struct stat status {};
  const bool exists = stat(file.c_str(), &status) == 0;
  const auto target = target_of(file);
  if (!target || (exists && !S_ISREG(status.st_mode))) {
    file_ = open(file.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY);
    if (file_ < 0) refuse(file, errno);
    return;
  }
  if (exists && access(file.c_str(), W_OK) != 0) refuse(file, errno);
  static std::atomic<int> made_before = 0;  // ranks that are threads may write one file at once
  const int number = made_before.fetch_add(1);
  target_ = *target;
  part_ = fmt::format("{}.part-{}", target_, getpid());
  if (number > 0) part_ += fmt::format("-{}", number);
  file_ = made(part_, 0666);
  if (file_ < 0) refuse(file, errno);
  if (exists) static_cast<void>(fchmod(file_, status.st_mode & 0777));  // as far as it may
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : name_(std::move(other.name_)),
      target_(std::move(other.target_)),
      part_(std::exchange(other.part_, {})),
      file_(std::exchange(other.file_, -1)) {}

OutputFile& OutputFile::operator=(OutputFile&& other) noexcept {
  std::swap(name_, other.name_);
  std::swap(target_, other.target_);
  std::swap(part_, other.part_);
  std::swap(file_, other.file_);
  return *this;
}

OutputFile::~OutputFile() {
  if (file_ >= 0) close(file_);
  if (!part_.empty()) unlink(part_.c_str());
}

void OutputFile::write(const void* data, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t written = ::write(file_, static_cast<const char*>(data) + done, bytes - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) refuse(name_, errno);
    done += static_cast<std::size_t>(written);
  }
}

void OutputFile::commit() {
  if (!part_.empty() && !on_disk(file_)) refuse(name_, errno);  // before it has its name
  if (close(std::exchange(file_, -1)) != 0) refuse(name_, errno);
  if (part_.empty()) return;
  if (std::rename(part_.c_str(), target_.c_str()) != 0) refuse(name_, errno);
  part_.clear();
  // The name as well; where folders cannot be synchronised, the system does it in its own time.
  const int names = open(folder_of(target_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (names < 0) return;
  fsync(names);
  close(names);
}

void write_file(const std::string& file, std::string_view content) {
  OutputFile output(file);
  output.write(content);
  output.commit();
}

}  // namespace baton
