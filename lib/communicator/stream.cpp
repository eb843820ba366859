#include "baton/stream.hpp"

#include <fmt/core.h>

#include <thread>
#include <utility>

#include "../base/raise.hpp"
#include "fused_calls.hpp"
#include "state.hpp"
#include "threaded_calls.hpp"

namespace baton {

using communicator::InUse;
using communicator::State;

namespace {

/// Throws Error(mismatch) where ranks differ in it.
void agree(State& state, Returns returns) {
  const auto all =
      state.gathered(static_cast<std::uint64_t>(returns), "exchange of when calls return");
  const auto other = std::ranges::find_if(all, [&](std::uint64_t one) { return one != all[0]; });
  if (other == all.end()) return;
  const auto name = [](std::uint64_t one) {
    return static_cast<Returns>(one) == Returns::at_once ? "at_once" : "complete";
  };
  throw Error(ErrorCode::mismatch,
              fmt::format("expected the same Returns on all ranks, found {} on rank 0 and {} on "
                          "rank {}",
                          name(all[0]), name(*other), other - all.begin()));
}

}  // namespace

StreamCommunicator::StreamCommunicator(std::unique_ptr<Transport> transport,
                                       std::shared_ptr<Device> device, Options options,
                                       Returns returns) {
  if (!device) base::refuse("expected a device, found null");
  const Capabilities can = transport->capabilities();
  if (!can.concurrent)
    throw Error(ErrorCode::unsupported,
                fmt::format("expected a transport that a second thread may use, since calls in "
                            "streams return before they are complete; found {}, which serves one "
                            "thread (with MPI, ask for MPI_THREAD_MULTIPLE)",
                            can.name));
  if (!can.device_memory)
    throw Error(
        ErrorCode::unsupported,
        fmt::format("expected a transport whose messages may lie in the memory of {}, "
                    "found {}, which takes only the host's (device_transport() makes one of "
                    "it)",
                    device->name(), can.name));
  state_ = State::first(std::move(transport), options, false);
  agree(*state_, returns);
  const Options& agreed = state_->context.options;
  if (!agreed.trace.empty()) state_->recording.start(*state_, agreed.trace_events);
  state_->device =
      std::make_unique<communicator::ThreadedCalls>(*state_, std::move(device), returns);
}

StreamCommunicator::StreamCommunicator(std::unique_ptr<Transport> host,
                                       std::shared_ptr<Device> device,
                                       std::unique_ptr<FusedTransport> fused, Options options) {
  if (!host || !device || !fused)
    base::refuse(
        "expected a transport of the host's, a device and a transport of fused groups, found null");
  if (host->rank() != fused->rank() || host->size() != fused->size())
    base::refuse(
        "expected two transports of the same ranks, found rank {} of {} and, in fused groups, rank "
        "{} of {}",
        host->rank(), host->size(), fused->rank(), fused->size());
  state_ = State::first(std::move(host), options, false);
  state_->device =
      std::make_unique<communicator::FusedCalls>(*state_, std::move(device), std::move(fused));
}

StreamCommunicator::StreamCommunicator(std::shared_ptr<State> state) : state_(std::move(state)) {}
StreamCommunicator::StreamCommunicator(StreamCommunicator&&) noexcept = default;
StreamCommunicator& StreamCommunicator::operator=(StreamCommunicator&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}
StreamCommunicator::~StreamCommunicator() {
  if (!state_) return;
  try {
    synchronize();
  } catch (...) {
    // The destructor has no caller to report an error to.
  }
  state_->device->close();
}

int StreamCommunicator::rank() const { return state_->context.rank; }
int StreamCommunicator::size() const { return state_->context.size; }
Device& StreamCommunicator::device() const { return state_->device->device(); }

StreamCommunicator StreamCommunicator::split(int color, int key) {
  synchronize();
  const InUse in_use(state_->launcher.busy());
  std::shared_ptr<State> part = state_->split(color, key);
  auto calls = state_->device->split(part.get(), color, key);
  if (part) part->device = std::move(calls);
  return StreamCommunicator(std::move(part));
}

const std::string& StreamCommunicator::name() const { return state_->launcher.watch().label(); }
void StreamCommunicator::set_name(std::string_view name) {
  synchronize();
  state_->set_name(name);
}

Choice StreamCommunicator::chosen(const Call& call) { return state_->chosen(call); }
void StreamCommunicator::enqueue(const Call& call, Stream stream) {
  state_->device->enqueue(call, stream);
}
void StreamCommunicator::exchange(std::span<const StreamMessage> messages,
                                  const std::function<bool()>& others_came) {
  state_->device->exchange(messages, others_came);
}
void StreamCommunicator::check() {
  const InUse in_use(state_->launcher.busy());
  state_->device->check();
  state_->launcher.require_usable();
}
void StreamCommunicator::abort(const std::string& why) {
  std::string reason = why;
  state_->launcher.interrupt();
  state_->device->interrupt();
  // Not as a call, but as an advance: a call that comes meanwhile waits for the end of this.
  while (!state_->launcher.busy().try_advance()) std::this_thread::yield();
  state_->launcher.break_off(std::move(reason));
  state_->device->abort();
  state_->launcher.busy().leave();
}
void StreamCommunicator::synchronize() { state_->device->synchronize(); }

#define BATON_DEFINE(name, parameters, arguments)                                            \
  void StreamCommunicator::name(BATON_LIST parameters Stream stream, const Choice& choice) { \
    Call call = calls::name arguments;                                                       \
    call.choice = choice;                                                                    \
    enqueue(call, stream);                                                                   \
  }
BATON_COLLECTIVES(BATON_DEFINE)
#undef BATON_DEFINE

}  // namespace baton
