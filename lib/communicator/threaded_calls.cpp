#include "threaded_calls.hpp"

#include <utility>

#include "baton/error.hpp"
#include "state.hpp"

namespace baton::communicator {

void StreamOperation::mark(Device& device, Stream stream) {
  if (!reached_) {
    reached_ = device.make_marker();
    gate_ = device.make_gate();
  }
  reached_->set(stream);
}

void StreamOperation::start_when_reached(Stream stream) {
  gate_->hold(stream);
  held_ = ahead_ = true;
  completed_ = 0;
}

bool StreamOperation::reach() {
  if (!ahead_) return true;
  if (!reached_->passed()) return false;
  ahead_ = false;
  since_ = std::chrono::steady_clock::now();
  start();
  return true;
}

void StreamOperation::stepped() {
  const auto timeout = context_.options.timeout;
  if (finished() || ahead_ || timeout.count() == 0) return;
  const auto now = std::chrono::steady_clock::now();
  if (const std::size_t done = completed(); done != completed_) {
    completed_ = done;
    since_ = now;
  } else if (now - since_ > timeout) {
    fail_timeout();
  }
}

void StreamOperation::failed_meanwhile() noexcept { calls_.fail(*this); }

void StreamOperation::ended() noexcept {
  ahead_ = false;
  if (!std::exchange(held_, false)) return;
  gate_->open();
  calls_.thread().ended();
}

ThreadedCalls::ThreadedCalls(State& state, std::shared_ptr<Device> device)
    : DeviceCalls(state, std::move(device)) {
  state_.planner.plan_for(Planner::Memory::device, &queue_);
  Family& family = state_.launcher.family();
  if (!family.progress_thread)
    family.progress_thread = std::make_unique<ProgressThread>(family.operations);
}

ProgressThread& ThreadedCalls::thread() const { return *state_.launcher.family().progress_thread; }

std::unique_ptr<DeviceCalls> ThreadedCalls::split(State* part, int, int) {
  return part ? std::make_unique<ThreadedCalls>(*part, device_) : nullptr;
}

std::unique_ptr<StreamOperation> ThreadedCalls::take_operation() {
  Launcher& launcher = state_.launcher;
  // On a device's memory, all idle operations are StreamOperations.
  if (auto idle = launcher.take_idle())
    return std::unique_ptr<StreamOperation>(static_cast<StreamOperation*>(idle.release()));
  return std::make_unique<StreamOperation>(state_.context, launcher.runs(), launcher.busy(), *this);
}

void ThreadedCalls::tell_error() {
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void ThreadedCalls::fail(StreamOperation& operation) noexcept {
  try {
    state_.launcher.fail(operation);
  } catch (...) {
    if (!error_) error_ = std::current_exception();
  }
}

void ThreadedCalls::meet() {
  std::byte* const bases[] = {&state_.arguments.token, nullptr};
  state_.launcher.run({&state_.planner.internal(Collective::barrier, "dissemination", 0),
                       {},
                       bases,
                       name(Collective::barrier).data()});
}

void ThreadedCalls::enqueue(const Call& call, Stream stream) {
  Launcher& launcher = state_.launcher;
  const InUse in_use(launcher.busy());
  std::erase_if(under_way_, [](const UnderWay& one) { return one.request.done(); });
  tell_error();
  launcher.require_usable();
  std::unique_ptr<StreamOperation> operation = take_operation();
  std::exception_ptr wrong;
  try {
    device_->check_stream(stream);
    state_.prepare(*operation, call, call.choice);
    operation->mark(*device_, stream);
  } catch (const Error& error) {
    // Its peers may already have scratch and wait for this rank.
    if (error.code != ErrorCode::invalid_argument && error.code != ErrorCode::unsupported)
      launcher.break_off(error.what());
    operation->abandon();
    wrong = std::current_exception();
  }
  // Ranks share hardware queues: no stream is held before all ranks have enqueued their
  // collectives.
  if (state_.context.can.one_process && state_.context.size > 1) meet();
  if (wrong) {
    launcher.give_operation(std::move(operation));
    std::rethrow_exception(wrong);
  }
  thread().began();
  try {
    operation->start_when_reached(stream);
  } catch (const Error& error) {
    thread().ended();
    launcher.break_off(error.what());
    operation->abandon();
    throw;
  }
  StreamOperation* const given = operation.get();
  Request request = state_.request(std::move(operation));
  launcher.keep(*given, true);
  under_way_.push_back({given, std::move(request)});
}

void ThreadedCalls::synchronize() {
  const InUse in_use(state_.launcher.busy());
  for (const UnderWay& one : under_way_) {
    if (one.request.done()) continue;
    try {
      state_.launcher.wait(*one.operation);
    } catch (...) {
      if (!error_) error_ = std::current_exception();
    }
  }
  under_way_.clear();
  tell_error();
}

}  // namespace baton::communicator
