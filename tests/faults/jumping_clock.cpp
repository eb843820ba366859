/// For LD_PRELOAD: the system's time of day jumps by hours, back and forth, as long as the process
/// runs. The monotonic clock is as ever.

#include <dlfcn.h>
#include <sys/time.h>
#include <ctime>

namespace {

using Clock = int (*)(clockid_t, timespec*);

int read(clockid_t clock, timespec* time) {
  static const auto real = reinterpret_cast<Clock>(dlsym(RTLD_NEXT, "clock_gettime"));
  return real(clock, time);
}

/// Hours ahead or behind, another number every 10 ms.
std::time_t jump() {
  timespec now{};
  read(CLOCK_MONOTONIC, &now);
  const long turn = now.tv_sec * 100 + now.tv_nsec / 10'000'000;
  return (turn * 7 % 11 - 5) * 3600;
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const int code = read(clock, time);
  if (code == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
    time->tv_sec += jump();
  return code;
}

__attribute__((visibility("default"))) int gettimeofday(timeval* time, void*) noexcept {
  timespec now{};
  const int code = clock_gettime(CLOCK_REALTIME, &now);
  *time = {now.tv_sec, now.tv_nsec / 1000};
  return code;
}

__attribute__((visibility("default"))) std::time_t time(std::time_t* to) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (to != nullptr) *to = now.tv_sec;
  return now.tv_sec;
}
}
