#include "fused_calls.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "../base/backoff.hpp"
#include "../base/raise.hpp"
#include "state.hpp"

namespace baton::communicator {
namespace {

// The alignment of a device's memory blocks.
constexpr std::size_t alignment = 256;
std::size_t aligned(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

}  // namespace

FusedCalls::FusedCalls(State& state, std::shared_ptr<Device> device,
                       std::unique_ptr<FusedTransport> transport)
    : DeviceCalls(state, std::move(device)),
      transport_(std::move(transport)),
      fused_queue_(*device_, *transport_) {
  state_.planner.plan_for(Planner::Memory::device_fused, nullptr);
}

FusedCalls::~FusedCalls() {
  try {
    reap();
  } catch (const Error&) {
    // The destructor has no caller to report an error to.
  }
  if (!calls_.empty()) transport_->abort();
}

std::unique_ptr<DeviceCalls> FusedCalls::split(State* part, int color, int key) {
  std::unique_ptr<FusedTransport> transport;
  try {
    transport = transport_->split(color, key);
    if (part && !transport)
      base::raise(ErrorCode::transport,
                  fmt::format("split: expected a fused transport for color {}, found null", color),
                  {.rank = transport_->rank()});
  } catch (const Error& error) {
    give_up(error);
  }
  return part ? std::make_unique<FusedCalls>(*part, device_, std::move(transport)) : nullptr;
}

void FusedCalls::enqueue(const Call& call, Stream stream) {
  Launcher& launcher = state_.launcher;
  const InUse in_use(launcher.busy());
  launcher.require_usable();
  try {
    reap();
  } catch (const Error& error) {
    give_up(error);
  }
  const int tag = launcher.next_tag();
  Work work{.name = name(call.collective).data()};
  std::optional<execute::Pin> pin;  // comparing the calls needs plans, too
  const auto bind = [&] {
    device_->check_stream(stream);
    state_.bind(call, call.choice, work);
    pin.emplace(*work.plan);
  };
  if (!state_.context.options.check) {
    bind();
  } else {
    synchronize_in_use();  // the host's messages and fused groups must not be under way together
    std::optional<Error> wrong;
    try {
      bind();
    } catch (const Error& error) {
      wrong = error;
    }
    compare(call.choice, wrong ? &*wrong : nullptr, tag);
  }
  // A barrier's token lies in the host's memory.
  if (call.collective == Collective::barrier) work.bases = {};
  try {
    give(work, stream);
  } catch (const Error& error) {
    give_up(communicator::named(error, work.name, launcher.sequence(), state_.context.rank));
  }
}

void FusedCalls::compare(const Choice& choice, const Error* wrong, int tag) {
  Launcher& launcher = state_.launcher;
  Operation& operation = launcher.blocking();
  // The operation carries the comparison only; its plan is empty.
  launcher.load(operation, {&state_.planner.nothing()});
  operation.compare_first(std::make_unique<Comparison>(
      state_.context, state_.planner, launcher.runs(), state_.arguments, choice, wrong));
  constexpr const char* name = "comparison of calls";
  operation.enter(name, launcher.sequence(), tag, internal_call(name));
  launcher.run_blocking();
}

std::byte* FusedCalls::take_block(Stream stream, std::size_t bytes) {
  // cudaStreamPerThread is another stream in each thread.
  if (reinterpret_cast<std::uintptr_t>(stream) == 2) return scratch_.take(bytes);
  const auto same = std::find_if(calls_.rbegin(), calls_.rend(), [&](const Given& call) {
    return call.block && call.stream == stream && call.bytes == bytes;
  });
  return same != calls_.rend() ? std::exchange(same->block, nullptr) : scratch_.take(bytes);
}

void FusedCalls::give(const Work& work, Stream stream) {
  const execute::CachedPlan& cached = *work.plan;
  const execute::Plan& plan = *cached.plan;
  const std::size_t slots = aligned(plan.scratch_bytes()),
                    token = aligned(slots + plan.slot_bytes());
  const std::size_t bytes = work.bases.empty() ? token + 1 : slots + plan.slot_bytes();
  Given call{cached.plan, work.name, state_.launcher.sequence(), stream, take_block(stream, bytes),
             bytes,       {}};
  std::vector<std::byte*> bases(plan.bases());
  bases[execute::scratch_base] = call.block;
  bases[execute::slot_base] = call.block + slots;
  if (work.bases.empty()) {
    bases[execute::first_tensor_base] = call.block + token;
  } else {
    std::copy(work.bases.begin(), work.bases.end(), bases.begin() + execute::first_tensor_base);
  }
  // From here on the call counts as under way, even if an enqueue fails.
  call.place = state_.launcher.watch().begin(call.number, work.shown);
  calls_.push_back(std::move(call));
  Given& given = calls_.back();
  const bool watched = state_.context.options.timeout.count() > 0;
  const std::size_t markers = watched ? cached.groups.size() + 2 : 1;
  while (given.markers.size() < markers) given.markers.push_back(markers_.take(*device_));
  fused_queue_.give(plan, cached.groups, bases, work.kernels, stream,
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
      state_.launcher.watch().end(call.place);
      scratch_.give(call.block, call.bytes);
      for (std::unique_ptr<Marker>& marker : call.markers) markers_.give(std::move(marker));
      calls_.pop_front();
    }
  } catch (const Error& error) {
    throw named(error);
  }
}

void FusedCalls::wait() {
  const auto timeout = state_.context.options.timeout;
  Watch& watch = state_.launcher.watch();
  std::pair<std::uint64_t, std::size_t> reached;
  auto since = std::chrono::steady_clock::now();
  bool shown = false;
  for (base::Backoff backoff;; backoff.wait()) {
    reap();
    state_.launcher.check_interrupted();
    const Given* const oldest = calls_.empty() ? nullptr : &calls_.front();
    const std::pair now_at(oldest ? oldest->number : 0, oldest ? oldest->passed : 0);
    const bool begun = oldest && oldest->watched() && oldest->passed > 0;
    if (std::exchange(reached, now_at) != now_at || !begun) {
      since = std::chrono::steady_clock::now();
      if (std::exchange(shown, false)) watch.hide();
      if (!oldest) return;
      continue;
    }
    const auto quiet = std::chrono::steady_clock::now() - since;
    if (!shown && quiet > Watch::quiet_before_show) {
      const auto [waits, peer] = waits_for();
      watch.show(waits, peer);
      shown = true;
    }
    if (quiet > timeout || (shown && watch.told(oldest->number))) throw named(hung());
  }
}

void FusedCalls::exchange(std::span<const StreamMessage>, const std::function<bool()>&) {
  throw Error(ErrorCode::unsupported,
              "exchange: expected a transport of single messages, found one of fused groups");
}

void FusedCalls::check() {
  try {
    reap();
  } catch (const Error& error) {
    give_up(error);
  }
}

void FusedCalls::abort() noexcept {
  transport_->abort();
  calls_.clear();
}

void FusedCalls::synchronize() {
  const InUse in_use(state_.launcher.busy());
  if (state_.launcher.broken().empty()) synchronize_in_use();
}

void FusedCalls::synchronize_in_use() {
  try {
    wait();
  } catch (const Error& error) {
    give_up(error);
  }
}

void FusedCalls::give_up(const Error& error) {
  state_.launcher.break_off(error.what());
  transport_->abort();
  calls_.clear();
  throw error;
}

Error FusedCalls::named(const Error& error) const {
  return communicator::named(error, calls_.front().name, calls_.front().number, transport_->rank());
}

std::pair<std::string, int> FusedCalls::waits_for() const {
  const Given& call = calls_.front();
  const auto groups = execute::fused_groups_of(*call.plan);
  if (call.passed > groups.size()) return {"waits for the end of its device's work", -1};
  const execute::FusedGroup& group = groups[call.passed - 1];
  return {fmt::format("waits for group {} of {} ({})", call.passed, groups.size(),
                      in_words(*call.plan, group)),
          call.plan->items()[group.first].peer};
}

Error FusedCalls::hung() const {
  const Given& call = calls_.front();
  const auto timeout = state_.context.options.timeout;
  const auto [waits, peer] = waits_for();
  const Watch::Verdict said =
      state_.launcher.watch().verdict(call.name, call.number, peer, timeout);
  Error error(said.code, said.sentence);
  if (said.sentence.empty())
    error = Error(ErrorCode::timeout,
                  fmt::format("rank {} {}, without progress for {} s", transport_->rank(), waits,
                              static_cast<double>(timeout.count()) / 1000));
  else
    error.operation = fmt::format("{} #{}", call.name, call.number);
  error.rank = transport_->rank();
  error.peer = peer;
  return error;
}

}  // namespace baton::communicator
