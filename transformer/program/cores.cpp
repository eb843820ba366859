#include "cores.hpp"

#include <fmt/core.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <map>
#include <span>
#include <utility>

#include "baton/error.hpp"
#include "baton/schedule/hosts.hpp"

namespace baton::transformer::program {
namespace {

constexpr int most_cores = 8192;  // that Linux numbers

/// A set of cores as the kernel takes it.
class CoreSet {
 public:
  CoreSet() : words_{} {}
  explicit CoreSet(const std::vector<int>& cores) : CoreSet() {
    for (const int core : cores) CPU_SET_S(static_cast<std::size_t>(core), bytes(), set());
  }
  static constexpr std::size_t bytes() { return most_cores / 8; }
  cpu_set_t* set() { return reinterpret_cast<cpu_set_t*>(words_.data()); }
  std::vector<int> cores() {
    std::vector<int> cores;
    for (int core = 0; core < most_cores; ++core)
      if (CPU_ISSET_S(static_cast<std::size_t>(core), bytes(), set())) cores.push_back(core);
    return cores;
  }
  std::span<std::uint64_t> words() { return words_; }

 private:
  std::array<std::uint64_t, most_cores / 64> words_;
};

/// Those that this thread may use.
CoreSet usable() {
  CoreSet set;
  if (sched_getaffinity(0, CoreSet::bytes(), set.set()) == 0) return set;
  throw Error(ErrorCode::unsupported, fmt::format("--cores-per-rank: expected the cores that a "
                                                  "thread may use, found {}",
                                                  std::strerror(errno)));
}

/// Threads that end meanwhile need no core.
bool pin_thread(int id, CoreSet& set) {
  return sched_setaffinity(id, CoreSet::bytes(), set.set()) == 0 || errno == ESRCH;
}

bool pin_threads(CoreSet& set, bool process) {
  bool pinned = pin_thread(0, set);
  if (!process) return pinned;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    const std::string name = task.path().filename();
    int id = 0;
    std::from_chars(name.data(), name.data() + name.size(), id);
    pinned = pin_thread(id, set) && pinned;
  }
  return pinned;
}

}  // namespace

Pinning shared_out(const std::vector<std::vector<int>>& usable, int each, const Hosts* hosts) {
  Pinning pinning;
  std::map<std::pair<int, int>, int> ranks_on;  // by host and core
  for (std::size_t rank = 0; rank < usable.size(); ++rank) {
    std::vector<int> cores = usable[rank];
    if (static_cast<std::size_t>(each) > cores.size()) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("--cores-per-rank: expected at most the {} core{} that rank {} may "
                              "use, found {}",
                              cores.size(), cores.size() == 1 ? "" : "s", rank, each));
    }
    const int host = hosts ? hosts->of(static_cast<int>(rank)) : 0;
    const auto users = [&](int core) -> int& { return ranks_on[{host, core}]; };
    std::stable_sort(cores.begin(), cores.end(), [&](int a, int b) { return users(a) < users(b); });
    cores.resize(static_cast<std::size_t>(each));
    std::sort(cores.begin(), cores.end());
    for (const int core : cores) pinning.shared = ++users(core) > 1 || pinning.shared;
    pinning.cores.push_back(std::move(cores));
  }
  return pinning;
}

Pinning pin(Communicator& world, int each, bool process) {
  CoreSet own = usable();
  std::vector<std::uint64_t> words(own.words().size() * static_cast<std::size_t>(world.size()));
  world.all_gather(own.words(), std::span(words));
  std::vector<std::vector<int>> all;
  for (int rank = 0; rank < world.size(); ++rank) {
    CoreSet its;
    std::copy_n(words.begin() + static_cast<std::ptrdiff_t>(rank * its.words().size()),
                its.words().size(), its.words().begin());
    all.push_back(its.cores());
  }
  Pinning pinning = shared_out(all, each, world.hosts().get());
  CoreSet mine(pinning.cores[static_cast<std::size_t>(world.rank())]);
  std::int32_t refused = pin_threads(mine, process) ? 0 : 1;
  world.all_reduce(std::span(&refused, 1), sum);
  if (refused == 0) return pinning;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("--cores-per-rank: expected cores that ranks may be pinned to, found {} "
                          "of {} ranks refused by the system",
                          refused, world.size()));
}

}  // namespace baton::transformer::program
