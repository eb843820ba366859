#pragma once
/// Memory of processes that others may not read.

#include <doctest/doctest.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

/// Longer messages MPI libraries may read themselves, as they found at their start that they could.
inline constexpr std::size_t longest_unread = 3000;

/// While it exists, this process may not read the memory of others that hide theirs, as it could
/// as root; with `hides`, it hides its own.
class WithoutPtrace {
 public:
  explicit WithoutPtrace(bool hides) : before_(effective()) {
    set(before_ & ~(1u << CAP_SYS_PTRACE));
    if (hides) REQUIRE(prctl(PR_SET_DUMPABLE, 0) == 0);
  }
  WithoutPtrace(const WithoutPtrace&) = delete;
  ~WithoutPtrace() {
    set(before_);
    prctl(PR_SET_DUMPABLE, 1);
  }

 private:
  static constexpr unsigned words = _LINUX_CAPABILITY_U32S_3;
  struct Sets {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct data[words]{};
  };
  static Sets sets() {
    Sets now;
    REQUIRE(syscall(SYS_capget, &now.header, now.data) == 0);
    return now;
  }
  static std::uint32_t effective() { return sets().data[0].effective; }
  static void set(std::uint32_t effective) {
    Sets now = sets();
    now.data[0].effective = effective;
    REQUIRE(syscall(SYS_capset, &now.header, now.data) == 0);
  }
  std::uint32_t before_;
};
