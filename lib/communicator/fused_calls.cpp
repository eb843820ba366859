#include "fused_calls.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "state.hpp"

namespace baton {
namespace {

// As far apart as a device's memory blocks are aligned.
constexpr std::size_t alignment = 256;
std::size_t aligned(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

// Rounds without progress after which the thread leaves its core to others, and then sleeps.
constexpr int spins = 256, yields = 4096;
constexpr std::chrono::microseconds nap(20);

}  // namespace

FusedCalls::~FusedCalls() {
  try {
    reap();
  } catch (const Error&) {
    // Nobody is left to be told.
  }
  if (!calls_.empty()) give_up();
}

std::byte* FusedCalls::take_block(Stream stream, std::size_t bytes) {
  const auto same = std::find_if(calls_.rbegin(), calls_.rend(), [&](const Given& call) {
    return call.block && call.stream == stream && call.bytes == bytes;
  });
  return same != calls_.rend() ? std::exchange(same->block, nullptr) : pool_.take(bytes);
}

void FusedCalls::give(const CachedPlan& cached, const Kernels& kernels,
                      std::span<std::byte* const> tensors, Stream stream, const char* what,
                      std::uint64_t number, bool watched) {
  const Plan& plan = *cached.plan;
  const std::size_t slots = aligned(plan.scratch_bytes()),
                    token = aligned(slots + plan.slot_bytes());
  const std::size_t bytes = tensors.empty() ? token + 1 : slots + plan.slot_bytes();
  Given call{cached.plan, what, number, stream, take_block(stream, bytes), bytes, {}};
  std::vector<std::byte*> bases(plan.bases());
  bases[scratch_base] = call.block;
  bases[slot_base] = call.block + slots;
  if (tensors.empty()) {
    bases[first_tensor_base] = call.block + token;
  } else {
    std::copy(tensors.begin(), tensors.end(), bases.begin() + first_tensor_base);
  }
  // From here on it counts as under way, whatever fails.
  calls_.push_back(std::move(call));
  Given& given = calls_.back();
  const std::size_t markers = watched ? cached.groups.size() + 2 : 1;
  while (given.markers.size() < markers) given.markers.push_back(markers_.take(device_));
  queue_.give(plan, cached.groups, bases, kernels, stream,
              std::span(given.markers).first(given.markers.size() - 1));
  given.markers.back()->set(stream);
}

void FusedCalls::reap() {
  if (calls_.empty()) return;
  try {
    transport_->check();
    while (!calls_.empty()) {
      Given& call = calls_.front();
      while (call.passed < call.markers.size() && call.markers[call.passed]->passed())
        ++call.passed;
      if (call.passed < call.markers.size()) return;
      pool_.give(call.block, call.bytes);
      for (std::unique_ptr<Marker>& marker : call.markers) markers_.give(std::move(marker));
      calls_.pop_front();
    }
  } catch (const Error& error) {
    fail(error);
  }
}

void FusedCalls::wait(std::chrono::milliseconds timeout) {
  std::pair<std::uint64_t, std::size_t> reached;
  auto since = std::chrono::steady_clock::now();
  for (int quiet = 0;; ++quiet) {
    reap();
    if (calls_.empty()) return;
    const Given& oldest = calls_.front();
    const std::pair now_at(oldest.number, oldest.passed);
    const bool begun = oldest.watched() && oldest.passed > 0;
    if (std::exchange(reached, now_at) != now_at || !begun) {
      since = std::chrono::steady_clock::now();
    } else if (timeout.count() > 0 && std::chrono::steady_clock::now() - since > timeout) {
      fail_timeout(timeout);
    }
    if (quiet > yields) {
      std::this_thread::sleep_for(nap);
    } else if (quiet > spins) {
      std::this_thread::yield();
    }
  }
}

void FusedCalls::give_up() noexcept {
  transport_->abort();
  calls_.clear();
}

void FusedCalls::fail(const Error& error) const {
  throw named(error, calls_.front().what, calls_.front().number, transport_->rank());
}

void FusedCalls::fail_timeout(std::chrono::milliseconds timeout) const {
  const Given& call = calls_.front();
  const auto groups = fused_groups_of(*call.plan);
  std::string what = "the end of its device's work";
  int peer = -1;
  if (call.passed <= groups.size()) {
    const FusedGroup& group = groups[call.passed - 1];
    what =
        fmt::format("group {} of {} ({})", call.passed, groups.size(), in_words(*call.plan, group));
    peer = call.plan->items()[group.first].peer;
  }
  Error error(ErrorCode::timeout,
              fmt::format("rank {} waits for {}, without progress for {} s", transport_->rank(),
                          what, static_cast<double>(timeout.count()) / 1000));
  error.peer = peer;
  fail(error);
}

}  // namespace baton
