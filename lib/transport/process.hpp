#pragma once
/// Processes and threads of this machine, as the system shows them.

#include <cstdint>
#include <string>

namespace baton::transport {

/// Tells a process from all others that ever ran.
struct ProcessId {
  std::uint64_t machine = 0;  ///< processes with equal values see each other
  std::uint64_t start = 0;    ///< when it started, in the system's ticks since boot; 0: unknown
  std::int64_t pid = 0;

  bool operator==(const ProcessId&) const = default;
};

ProcessId own_process();
/// Whether a process of this machine is `ancestor`, or was started by it, or by what it started.
bool descends(std::int64_t pid, std::int64_t ancestor);
std::int32_t own_thread();

enum class Life : std::uint8_t {
  elsewhere,  ///< on another machine, or out of sight
  refuses,    ///< on another machine, which refuses connections to it
  unknown,    ///< the system does not tell now: this process may open no more files
  runs,       ///< on a core, or ready for one
  sleeps,     ///< waits in the system
  stopped,    ///< by a signal or a debugger
  ended,
};

struct Condition {
  Life life = Life::elsewhere;
  int signal = 0;             ///< that ended it, if the system still tells
  bool thread_ended = false;  ///< the process lives, the thread does not
};
/// `thread`: 0: not asked for.
Condition condition_of(const ProcessId& process, std::int32_t thread);

/// "its process is alive and sleeps".
std::string describe(const Condition& condition);

}  // namespace baton::transport
