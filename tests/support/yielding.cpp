// Is preloaded where MPICH runs more ranks than there are cores. MPICH has no option to leave its
// core when idle. Debian's asks UCX for progress while it waits, so UCX yields. Now and then it
// sleeps: among threads that only yield, Linux 6.18 may let one wait for a minute.

#include <dlfcn.h>
#include <sched.h>
#include <time.h>

// Looked up by name: no header declares these.
#pragma GCC diagnostic ignored "-Wmissing-declarations"
extern "C" unsigned ucp_worker_progress(void* worker) {
  static const auto progress = reinterpret_cast<unsigned (*)(void*)>([] {
    constexpr const char* name = "ucp_worker_progress";
    if (void* const next = dlsym(RTLD_NEXT, name)) return next;
    return dlsym(dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD), name);  // loaded while it runs
  }());
  constexpr int polls = 50, yields = 16;  // before each sleep
  thread_local int idle = 0;
  const unsigned events = progress(worker);
  idle = events > 0 ? 0 : idle + 1;
  if (idle > polls + yields) {
    idle = polls;
    const timespec moment{.tv_sec = 0, .tv_nsec = 20'000};
    nanosleep(&moment, nullptr);
  } else if (idle > polls) {
    sched_yield();
  }
  return events;
}
