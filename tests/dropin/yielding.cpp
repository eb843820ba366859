// Preloaded beneath everything else where MPICH runs more ranks than there are cores: it has no
// option to yield when idle, so this does it in UCX, which it asks for progress while it waits.

#include <dlfcn.h>
#include <sched.h>

// Looked up by name: no header declares these.
#pragma GCC diagnostic ignored "-Wmissing-declarations"
extern "C" unsigned ucp_worker_progress(void* worker) {
  static const auto progress =
      reinterpret_cast<unsigned (*)(void*)>(dlsym(RTLD_NEXT, "ucp_worker_progress"));
  constexpr int polls = 50;
  thread_local int idle = 0;
  const unsigned events = progress(worker);
  idle = events > 0 ? 0 : idle + 1;
  if (idle > polls) {
    idle = polls;
    sched_yield();
  }
  return events;
}
