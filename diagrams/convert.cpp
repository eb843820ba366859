#include <fcntl.h>
#include <fmt/core.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

#include "baton/error.hpp"
#include "baton/output_file.hpp"
#include "diagrams.hpp"

namespace baton::diagrams {
namespace {

/// A file of its own, gone when this is.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& text) {
    const char* folder = std::getenv("TMPDIR");
    name_ = std::string(folder != nullptr && *folder != '\0' ? folder : "/tmp") + "/baton-XXXXXX";
    const int file = mkstemp(name_.data());
    if (file < 0) {
      throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}", name_, std::strerror(errno)));
    }
    std::size_t done = 0;
    while (done < text.size()) {
      const ssize_t n = ::write(file, text.data() + done, text.size() - done);
      if (n < 0 && errno != EINTR) break;
      done += n > 0 ? static_cast<std::size_t>(n) : 0;
    }
    const bool closed = ::close(file) == 0;
    if (done < text.size() || !closed) {
      const int error = errno;
      ::unlink(name_.c_str());
      throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}", name_, std::strerror(error)));
    }
  }
  ~TemporaryFile() { ::unlink(name_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

/// The standard output of a new process is a file that is open here.
struct Actions {
  explicit Actions(int output) {
    if (posix_spawn_file_actions_init(&list) != 0 ||
        posix_spawn_file_actions_adddup2(&list, output, STDOUT_FILENO) != 0)
      throw std::bad_alloc();
  }
  ~Actions() { posix_spawn_file_actions_destroy(&list); }
  Actions(const Actions&) = delete;
  Actions& operator=(const Actions&) = delete;
  posix_spawn_file_actions_t list{};
};

}  // namespace

void convert(const std::string& svg, const std::string& format, const std::string& file) {
  const TemporaryFile source(svg);
  OutputFile output(file);
  std::string arguments[] = {"rsvg-convert", "--format", format, source.name()};
  char* pointers[std::size(arguments) + 1] = {};
  for (std::size_t i = 0; i < std::size(arguments); ++i) pointers[i] = arguments[i].data();
  pid_t process = 0;
  const Actions actions(output.descriptor());
  const int error = posix_spawnp(&process, pointers[0], &actions.list, nullptr, pointers, environ);
  if (error == ENOENT) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: expected the program rsvg-convert, which makes PNG and PDF of SVG "
                            "(Debian: librsvg2-bin), found none",
                            file));
  }
  if (error != 0) {
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: rsvg-convert cannot be run: {}", file, std::strerror(error)));
  }
  int status = 0;
  while (waitpid(process, &status, 0) < 0) {
    if (errno == EINTR) continue;
    throw Error(ErrorCode::unsupported,
                fmt::format("{}: rsvg-convert is lost: {}", file, std::strerror(errno)));
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: expected rsvg-convert to write it, found that it failed", file));
  }
  output.commit();
}

}  // namespace baton::diagrams
