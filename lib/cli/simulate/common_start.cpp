#include "common_start.hpp"

#include <sched.h>

#include <algorithm>
#include <thread>

#include "trace/recorder.hpp"

namespace baton::cli::simulate {
namespace {

constexpr int rounds = 200;
constexpr int tag = 0;
const tracing::Patience patience{std::chrono::seconds(20)};
/// From when all have come, in which messages of the coming end and links have a pause.
constexpr std::int64_t run_up = 3'000'000;  // ns
/// Before the start, from when on a rank does not sleep any more.
constexpr std::int64_t awake = 150'000;  // ns

}  // namespace

CommonStart::CommonStart(World& world) : world_(world), transport_(world.transport()) {
  tracing::ClockSample sample;
  const auto hosts = world.hosts();
  for (int r = 1; r < world.size() && !world.one_clock(); ++r) {
    // Ranks of a host have one clock.
    const auto first = std::find(hosts.begin(), hosts.end(), hosts[static_cast<std::size_t>(r)]);
    if (first - hosts.begin() != r || first == hosts.begin()) continue;
    if (world.rank() == 0)
      tracing::answer_clock(*transport_, r, tag, rounds, tracing::now, patience);
    if (world.rank() == r)
      sample = tracing::compare_clock(*transport_, 0, tag, rounds, tracing::now, patience);
    world.barrier();
  }
  // Of all ranks, so that each finds its host's.
  std::vector<std::int64_t> offsets(static_cast<std::size_t>(world.size()));
  world.gather(std::as_bytes(std::span(&sample.offset, 1)),
               std::as_writable_bytes(std::span(offsets)));
  const auto own =
      std::find(hosts.begin(), hosts.end(), hosts[static_cast<std::size_t>(world.rank())]);
  ahead_ = -offsets[static_cast<std::size_t>(own - hosts.begin())];
  error_ = world.max(static_cast<double>(sample.error)) * 1e-9;
}

double CommonStart::timed(const std::function<void()>& body) {
  const auto common = [&] { return tracing::now() - ahead_; };
  const auto begin = static_cast<std::int64_t>(world_.max(static_cast<double>(common()))) + run_up;
  for (std::int64_t left = begin - common(); left > 0; left = begin - common()) {
    if (left > awake) {
      std::this_thread::sleep_for(std::chrono::nanoseconds(left - awake));
    } else {
      sched_yield();
    }
  }
  body();
  return world_.max(static_cast<double>(common() - begin)) * 1e-9;
}

}  // namespace baton::cli::simulate
