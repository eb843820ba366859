#include "process.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "../base/folder.hpp"
#include "place.hpp"

namespace baton::transport {
namespace {

/// Fields of /proc/…/stat behind the name: state, and so on.
struct Stat {
  char state = 0;
  std::int64_t parent = 0;
  unsigned flags = 0;
  int threads = 0;
  std::uint64_t start = 0;
  std::uint64_t signals = 0;  // that wait for this thread
  int exit_code = 0;

  /// Also while it ends: from then on its messages may fail.
  bool ended() const {
    constexpr unsigned exiting = 0x4;  // PF_EXITING
    return state == 'Z' || state == 'X' || (flags & exiting) != 0;
  }
  /// Of a first thread that has ended: whether its process ends by a signal. One that is stopped
  /// has that signal here.
  bool killed() const {
    const int signal = WIFSIGNALED(exit_code) ? WTERMSIG(exit_code) : 0;
    return signal != 0 && signal != SIGSTOP && signal != SIGTSTP && signal != SIGTTIN &&
           signal != SIGTTOU;
  }
  /// Also as part of its process, which sends SIGKILL to each of its threads first.
  bool ends() const { return ended() || (signals >> (SIGKILL - 1) & 1) != 0; }
};

enum class Read : std::uint8_t { done, absent, refused };

Read read_stat(const std::string& file, Stat& stat) {
  const auto failed = [] {
    return errno == ENOENT || errno == ESRCH ? Read::absent : Read::refused;
  };
  const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return failed();
  std::array<char, 2048> text;  // a line of some 300
  const ssize_t length = read(descriptor, text.data(), text.size());
  const Read outcome = length < 0 ? failed() : Read::done;
  close(descriptor);
  if (outcome != Read::done) return outcome;
  const std::string line(text.data(), static_cast<std::size_t>(length));
  const std::size_t name_end = line.rfind(')');  // names may contain anything
  if (name_end == std::string::npos) return Read::absent;
  std::istringstream fields(line.substr(name_end + 1));
  fields >> stat.state >> stat.parent;
  std::string skipped;
  constexpr int parent_field = 4, flags_field = 9, threads_field = 20, start_field = 22,
                signals_field = 31, exit_code_field = 52;
  for (int field = parent_field + 1; field <= exit_code_field; ++field) {
    if (field == flags_field) {
      fields >> stat.flags;
    } else if (field == threads_field) {
      fields >> stat.threads;
    } else if (field == start_field) {
      fields >> stat.start;
    } else if (field == signals_field) {
      fields >> stat.signals;
    } else if (field == exit_code_field) {
      fields >> stat.exit_code;
    } else {
      fields >> skipped;
    }
  }
  return Read::done;
}

/// A thread with which the process lives on although its first one has ended. `absent`: there is
/// none. The threads of a process that ends do so one after another.
Read read_survivor(const std::string& folder, Stat& stat) {
  const std::optional<std::vector<std::string>> threads = base::names_in(folder + "task");
  if (!threads) return errno == ENOENT ? Read::absent : Read::refused;
  for (const std::string& thread : *threads) {
    if (thread.starts_with('.')) continue;
    const Read read = read_stat(fmt::format("{}task/{}/stat", folder, thread), stat);
    if (read == Read::refused || (read == Read::done && !stat.ends())) return read;
  }
  return Read::absent;
}

std::uint64_t visibility() {
  std::uint64_t seen = own_place().machine;
  for (const char* const file : {"/proc/self/ns/pid", "/dev/shm"}) {
    struct stat status {};
    if (::stat(file, &status) == 0)
      seen = (seen ^ status.st_ino ^ status.st_dev << 32) * 0x100000001b3u;
  }
  return seen;
}

}  // namespace

ProcessId own_process() {
  thread_local ProcessId own;
  if (own.pid != getpid()) {  // not asked before, or this is a fork
    Stat stat;
    read_stat("/proc/self/stat", stat);
    own = {visibility(), stat.start, getpid()};
  }
  return own;
}

std::int32_t own_thread() { return static_cast<std::int32_t>(syscall(SYS_gettid)); }

bool descends(std::int64_t pid, std::int64_t ancestor) {
  constexpr int most_generations = 100;
  for (int i = 0; i < most_generations && pid > 0; ++i) {
    if (pid == ancestor) return true;
    Stat stat;
    if (read_stat(fmt::format("/proc/{}/stat", pid), stat) != Read::done) return false;
    pid = stat.parent;
  }
  return false;
}

Condition condition_of(const ProcessId& process, std::int32_t thread) {
  if (process.machine != own_process().machine) return {};
  Condition found{.life = Life::ended};
  const std::string folder = fmt::format("/proc/{}/", process.pid);
  Stat stat;
  const Read read = read_stat(folder + "stat", stat);
  if (read == Read::refused) return {.life = Life::unknown};
  const bool another = process.start != 0 && stat.start != process.start;
  if (read == Read::absent || another) return found;
  if (stat.ended()) {
    Stat survivor;
    const Read others =
        stat.threads > 1 && !stat.killed() ? read_survivor(folder, survivor) : Read::absent;
    if (others == Read::refused) return {.life = Life::unknown};
    if (others == Read::absent) {
      if (WIFSIGNALED(stat.exit_code)) found.signal = WTERMSIG(stat.exit_code);
      return found;
    }
    stat.state = survivor.state;
  }
  if (thread != 0) {
    Stat own;
    const Read of_thread = read_stat(fmt::format("{}task/{}/stat", folder, thread), own);
    found.thread_ended = of_thread == Read::absent || own.ended();
    if (of_thread == Read::done && !found.thread_ended) stat.state = own.state;
  }
  const char state = stat.state;
  found.life = state == 'R'                   ? Life::runs
               : state == 'T' || state == 't' ? Life::stopped
                                              : Life::sleeps;
  return found;
}

std::string describe(const Condition& condition) {
  switch (condition.life) {
    case Life::elsewhere:
      return "it runs on another machine and does not answer";
    case Life::refuses:
      return "its machine refuses connections to it, as if its process had ended";
    case Life::unknown:
      return "its process cannot be looked at, since this one may open no more files";
    case Life::ended:
      return condition.signal > 0
                 ? fmt::format("its process has ended with signal {}", condition.signal)
                 : "its process has ended";
    case Life::stopped:
      return "its process is stopped";
    case Life::runs:
    case Life::sleeps:
      break;
  }
  if (condition.thread_ended) return "its process is alive, its thread has ended";
  return condition.life == Life::runs ? "its process is alive and computes"
                                      : "its process is alive and sleeps";
}

}  // namespace baton::transport
