#include "memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <set>
#include <string>

#include "baton/error.hpp"
#include "baton/schedule/passes.hpp"
#include "program.hpp"

namespace baton::simulating {
namespace {

/// Beside the program: per rank its state, wires and events, and what growing vectors copy.
constexpr double rank_bytes = 512, growth = 1.5;

double number_in(const char* file) {
  std::ifstream in(file);
  double number = 0;
  return in >> number ? number : std::numeric_limits<double>::infinity();
}

}  // namespace

double available_memory() {
  double available = std::numeric_limits<double>::infinity();
  std::ifstream info("/proc/meminfo");
  for (std::string word; info >> word;) {
    double kib = 0;
    if (word == "MemAvailable:" && info >> kib) available = kib * 1024;
  }
  const double group =
      number_in("/sys/fs/cgroup/memory.max") - number_in("/sys/fs/cgroup/memory.current");
  return group > 0 ? std::min(available, group) : available;
}

void refuse_beyond(int ranks, double needed, double available) {
  if (needed <= available) return;
  throw Error(ErrorCode::unsupported,
              fmt::format("simulate: expected at least {:.1f} GiB of memory for {} ranks, found "
                          "{:.1f} GiB available",
                          needed / (1 << 30), ranks, available / (1 << 30)));
}

void check_memory(int ranks, const std::function<Schedule(int)>& schedule_of,
                  std::size_t element_bytes, int calls) {
  // The busiest of the sample, such as a root, may be the only one of its kind.
  double most = 0, sum = 0;
  FlatRank flat;
  const std::set<int> sample{0, std::min(1, ranks - 1), ranks / 3, ranks / 2, ranks - 1};
  for (const int rank : sample) {
    flat.load(packed(schedule_of(rank)), element_bytes, calls);
    const auto bytes = static_cast<double>(flat.bytes());
    most = std::max(most, bytes);
    sum += bytes;
  }
  const double others =
      sample.size() > 1 ? (sum - most) / static_cast<double>(sample.size() - 1) : 0;
  refuse_beyond(ranks, growth * (most + (ranks - 1) * others) + ranks * rank_bytes,
                available_memory());
}

}  // namespace baton::simulating
