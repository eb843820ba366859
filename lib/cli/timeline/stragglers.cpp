#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <map>
#include <vector>

#include "cli/common/text.hpp"
#include "sources.hpp"

namespace baton::cli::timeline {
namespace {

/// Who entered last, over all calls of one kind.
struct Lateness {
  int calls = 0;
  struct OfRank {
    int calls = 0;
    std::int64_t ns = 0;  // after the last of the others, in sum
  };
  std::map<int, OfRank> last;
};

constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

}  // namespace

std::string stragglers(const Trace& trace) {
  const Timeline& timeline = trace.timeline;
  // The first event of each rank in each operation, and how many it has there.
  std::vector<std::map<int, std::int64_t>> entered(timeline.operations.size());
  std::vector<std::map<int, std::size_t>> events(timeline.operations.size());
  for (const Event& event : timeline.events) {
    auto& first = entered[event.operation].try_emplace(event.rank, never).first->second;
    first = std::min(first, event.posted);
    ++events[event.operation][event.rank];
  }
  std::map<std::string, Lateness> kinds;
  for (std::size_t i = 0; i < entered.size(); ++i) {
    const TimedOperation& operation = timeline.operations[i];
    const std::size_t ranks =
        operation.ranks.empty() ? static_cast<std::size_t>(timeline.ranks) : operation.ranks.size();
    // Messages, computations, and operations of which some rank's events were lost.
    if (ranks < 2 || entered[i].size() < ranks || operation.choice.algorithm.empty()) continue;
    const auto whole = [&](std::size_t r) {
      const int one = operation.rank_of(static_cast<int>(r));
      return !lacks_events(trace, one) ||
             events[i][one] == (*operation.schedules)[r].steps().size();
    };
    bool known = true;
    for (std::size_t r = 0; known && r < ranks; ++r) known = whole(r);
    if (!known) continue;
    int rank = -1;
    std::int64_t latest = std::numeric_limits<std::int64_t>::min(), before = latest;
    for (const auto& [one, time] : entered[i]) {
      if (time > latest) {
        before = latest;
        latest = time;
        rank = one;
      } else {
        before = std::max(before, time);
      }
    }
    Lateness& kind = kinds[operation.name];
    ++kind.calls;
    Lateness::OfRank& its = kind.last[rank];
    ++its.calls;
    its.ns += latest - before;
  }
  if (kinds.empty()) return "no collective of which all ranks' events were recorded\n";
  std::string text;
  for (const auto& [name, kind] : kinds) {
    text += fmt::format("{}, {}:\n", name, counted(kind.calls, "call"));
    std::vector<std::pair<int, Lateness::OfRank>> order(kind.last.begin(), kind.last.end());
    std::ranges::stable_sort(order, std::ranges::greater(),
                             [](const auto& one) { return one.second.ns; });
    for (const auto& [rank, its] : order)
      text +=
          fmt::format("  rank {} entered last in {} of {}, {:.1f} us after all others on average\n",
                      rank, its.calls, kind.calls, static_cast<double>(its.ns) / 1e3 / its.calls);
  }
  if (timeline.clock_error > 0)
    text += fmt::format("Clocks agree to within {:.1f} us.\n",
                        static_cast<double>(timeline.clock_error) / 1e3);
  return text;
}

}  // namespace baton::cli::timeline
