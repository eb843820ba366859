#include "baton/processes.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "../base/raise.hpp"
#include "baton/shm.hpp"
#include "groups.hpp"
#include "process.hpp"
#include "tcp/meeting.hpp"
#ifdef BATON_HAS_UCX
#include "baton/ucx.hpp"
#endif

namespace baton {
namespace {

using Bytes = std::vector<std::byte>;

enum class Way : std::int64_t { any, shm, ucx };
constexpr int most_processes = tcp::most_ranks;
constexpr std::string_view names[] = {"", "shm", "ucx"};

Way way_of_environment() {
  const char* const text = std::getenv("BATON_TRANSPORT");
  const auto* const found = std::ranges::find(names, std::string_view(text ? text : ""));
  if (found == std::end(names))
    base::refuse("BATON_TRANSPORT: expected shm or ucx, found '{}'", text);
  return static_cast<Way>(found - std::begin(names));
}

/// The value of each rank.
template <class T>
std::vector<T> all_of(const Exchange& exchange, const T& own, int rank, int size) {
  Bytes block(sizeof own);
  std::memcpy(block.data(), &own, sizeof own);
  std::vector<T> values;
  for (const Bytes& other : transport::exchanged(exchange, block, rank, size, sizeof own))
    std::memcpy(&values.emplace_back(), other.data(), sizeof own);
  return values;
}

struct Plan {
  std::uint64_t machine;
  Way way;
};

/// The way that all ranks go. Throws Error(mismatch) if they want different ones.
Way agreed(const std::vector<Plan>& plans, int rank) {
  for (std::size_t r = 1; r < plans.size(); ++r)
    if (plans[r].way != plans[0].way) {
      const auto said = [](Way way) {
        return way == Way::any ? "none" : std::string(names[static_cast<std::size_t>(way)]);
      };
      base::raise(ErrorCode::mismatch,
                  fmt::format("BATON_TRANSPORT: expected the same on all ranks, found {} on rank 0 "
                              "and {} on rank {}",
                              said(plans[0].way), said(plans[r].way), r),
                  {.rank = rank});
    }
  if (plans[0].way != Way::any) return plans[0].way;
  const bool together = std::ranges::all_of(
      plans, [&](const Plan& plan) { return plan.machine == plans[0].machine; });
  return together ? Way::any : Way::ucx;
}

std::unique_ptr<Transport> by_ucx(int rank, int size, const Exchange& exchange,
                                  const ProcessOptions& options) {
#ifdef BATON_HAS_UCX
  return ucx_transport(
      rank, size, exchange,
      {.meeting = options.meeting, .farewell = options.farewell, .concurrent = options.concurrent});
#else
  static_cast<void>(size), static_cast<void>(exchange), static_cast<void>(options);
  base::raise(ErrorCode::unsupported,
              "expected processes of one machine that may share memory, found others, which need "
              "UCX: this library was built without it",
              {.rank = rank});
#endif
}

}  // namespace

std::unique_ptr<Transport> process_transport(int rank, int size, const Exchange& exchange,
                                             const ProcessOptions& options) {
  transport::check_meeting("a transport of processes", rank, size, most_processes, exchange);
  const auto plans =
      all_of(exchange, Plan{transport::own_process().machine, way_of_environment()}, rank, size);
  const ShmOptions shared{.meeting = options.meeting, .concurrent = options.concurrent};
  switch (agreed(plans, rank)) {
    case Way::shm:
      return shm_transport(rank, size, exchange, shared);
    case Way::ucx:
      return by_ucx(rank, size, exchange, options);
    case Way::any:
      break;
  }
  std::unique_ptr<Transport> together;
  bool exchanging = false;
  const Exchange watched = [&](const Bytes& own) {
    exchanging = true;
    auto blocks = exchange(own);
    exchanging = false;
    return blocks;
  };
  try {
    together = shm_transport(rank, size, watched, shared);
  } catch (const Error&) {
    if (exchanging) throw;
    // The system forbids it, or has too little memory.
  }
  const auto all = all_of(exchange, static_cast<char>(together != nullptr), rank, size);
  if (std::ranges::find(all, 0) == all.end()) return together;
  together.reset();
  return by_ucx(rank, size, exchange, options);
}

std::unique_ptr<Transport> process_transport(int rank, int size, const std::string& address,
                                             const ProcessOptions& options) {
  return process_transport(
      rank, size,
      [&](const Bytes& own) { return tcp::exchange_at(address, rank, size, own, options.meeting); },
      options);
}

}  // namespace baton
