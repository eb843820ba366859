// Is preloaded where MPICH runs more ranks than there are cores. MPICH has no option to leave its
// core when idle. Debian's asks UCX for progress while it waits, so UCX sleeps a moment. It does
// not yield: with many threads that yield all the time, Linux 6.18 lets others wait for minutes.

#include <dlfcn.h>
#include <time.h>

// Looked up by name: no header declares these.
#pragma GCC diagnostic ignored "-Wmissing-declarations"
extern "C" unsigned ucp_worker_progress(void* worker) {
  static const auto progress = reinterpret_cast<unsigned (*)(void*)>([] {
    constexpr const char* name = "ucp_worker_progress";
    if (void* const next = dlsym(RTLD_NEXT, name)) return next;
    return dlsym(dlopen("libucp.so.0", RTLD_LAZY | RTLD_NOLOAD), name);  // loaded while it runs
  }());
  constexpr int polls = 50;
  thread_local int idle = 0;
  const unsigned events = progress(worker);
  idle = events > 0 ? 0 : idle + 1;
  if (idle > polls) {
    idle = polls;
    const timespec moment{.tv_sec = 0, .tv_nsec = 20'000};
    nanosleep(&moment, nullptr);
  }
  return events;
}
