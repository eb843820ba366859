#include "conformance.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace support {
namespace {

Counts without_repeats(Counts counts) {
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

}  // namespace

Scope thorough(int size) {
  Scope scope;
  scope.counts = without_repeats({0, 1, size - 1, size, size + 1, 13, 67});
  scope.segments = {0, 12, 64};
  scope.roots = {0};
  for (int root = 1; root < size; ++root) {
    if (size <= 5 || root == size / 2 || root == size - 1) scope.roots.push_back(root);
  }
  if (size > 8) scope.segments = {0, 20};
  return scope;
}

Scope brief(int size) {
  Scope scope;
  scope.counts = without_repeats({0, size - 1, size, 67});
  scope.segments = {0, 20};
  scope.roots = without_repeats({0, size - 1});
  return scope;
}

namespace conformance {

baton::Problem problem_of(const baton::Communicator& c, baton::Collective collective) {
  baton::Problem problem;
  problem.collective = collective;
  problem.size = c.size();
  problem.rank = c.rank();
  problem.count = 1;
  problem.hosts = c.hosts();
  return problem;
}

std::string where(const baton::Communicator& c, baton::Collective collective,
                  const baton::Choice& choice, std::int64_t count, std::string_view more) {
  return fmt::format("{} {}, segment {} B, {} elements{}{}, rank {} of {}", name(collective),
                     choice.algorithm.empty() ? "by choice" : choice.algorithm, choice.segment.value_or(-1),
                     count, more.empty() ? "" : ", ", more, c.rank(), c.size());
}

void barriers(baton::Communicator& c) {
  const auto now = [] {
    return static_cast<std::int64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  };
  for (const baton::Algorithm* algorithm : c.registry().of(baton::Collective::barrier)) {
    if (!refusal(*algorithm, problem_of(c, baton::Collective::barrier)).empty()) continue;
    for (int late = 0; late < c.size(); ++late) {
      if (c.rank() == late) std::this_thread::sleep_for(std::chrono::milliseconds(3));
      const std::vector<std::int64_t> came{now()};
      if (late % 2 == 0) {
        c.barrier({algorithm->name, 0});
      } else {
        c.start_barrier().wait();
      }
      const std::int64_t left = now();
      std::vector<std::int64_t> all(static_cast<std::size_t>(c.size()));
      c.all_gather(came, all);
      CHECK(left >= *std::max_element(all.begin(), all.end()));
    }
  }
}

}  // namespace conformance
}  // namespace support
