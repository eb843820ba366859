#pragma once
/// A process that may start no more threads.

#include <doctest/doctest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace support {

/// While it exists, this thread cannot start another one. Limits do not hold for root, so the
/// calling thread alone, by the system's bare call, has another user meanwhile.
class WithoutThreads {
 public:
  WithoutThreads() {
    REQUIRE(getrlimit(RLIMIT_NPROC, &usual_) == 0);
    const rlimit none{0, usual_.rlim_max};
    REQUIRE(setrlimit(RLIMIT_NPROC, &none) == 0);
    if (user_ == 0) REQUIRE(syscall(SYS_setresuid, nobody, nobody, 0) == 0);
  }
  WithoutThreads(const WithoutThreads&) = delete;
  ~WithoutThreads() {
    if (user_ == 0) syscall(SYS_setresuid, 0, 0, 0);
    setrlimit(RLIMIT_NPROC, &usual_);
    prctl(PR_SET_DUMPABLE, 1);  // a change of the user has ended that
  }

 private:
  static constexpr uid_t nobody = 65534;
  const uid_t user_ = getuid();
  rlimit usual_{};
};

}  // namespace support
