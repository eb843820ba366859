#include "memory.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <memory>
#include <set>
#include <string>

#include "baton/error.hpp"
#include "state.hpp"

namespace baton::simulating {
namespace {

/// Beside the program: each rank's state, wires and events, and the copies made by growing vectors.
constexpr double rank_bytes = 512, growth = 1.5;

double number_in(const char* file) {
  std::ifstream in(file);
  double number = 0;
  return in >> number ? number : std::numeric_limits<double>::infinity();
}

/// Bytes that this process may still take, by the limits of the system and of its control group.
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

}  // namespace

void refuse_beyond(int ranks, double needed, double available) {
  if (needed <= available) return;
  throw Error(ErrorCode::unsupported,
              fmt::format("simulate: expected at least {:.1f} GiB of memory for {} ranks, found "
                          "{:.1f} GiB available",
                          needed / (1 << 30), ranks, available / (1 << 30)));
}

void check_memory(int ranks, const std::function<FlatRank(int)>& rank_of, const Network& network) {
  // The busiest rank of the sample, such as a root, may be the only one of its kind.
  double most = 0, sum = 0, shapes_bytes = 0;
  std::set<std::shared_ptr<const Shape>> shapes;
  const std::set<int> sample{0, std::min(1, ranks - 1), ranks / 3, ranks / 2, ranks - 1};
  for (const int rank : sample) {
    const std::shared_ptr<const Shape> shape = rank_of(rank).shape;
    const auto bytes = static_cast<double>(state_bytes(*shape, network));
    most = std::max(most, bytes);
    sum += bytes;
    if (shapes.insert(shape).second) shapes_bytes += static_cast<double>(shape->bytes());
  }
  const auto sampled = static_cast<double>(sample.size());
  const double others = sampled > 1 ? (sum - most) / (sampled - 1) : 0;
  // If all ranks of the sample differ, all ranks may.
  const double distinct = shapes.size() == sample.size() ? ranks / sampled : 1;
  refuse_beyond(
      ranks, growth * (most + (ranks - 1) * others + distinct * shapes_bytes) + ranks * rank_bytes,
      available_memory());
}

}  // namespace baton::simulating
