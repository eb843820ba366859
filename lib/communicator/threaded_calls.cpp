#include "threaded_calls.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include "../base/raise.hpp"
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

void StreamOperation::hold(Stream stream) {
  gate_->hold(stream);
  held_ = true;
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

void StreamOperation::given_up() noexcept {
  // The device's copies, which must end first, may stand behind the stream in a hardware queue.
  if (held_) gate_->open();
}

ThreadedCalls::ThreadedCalls(State& state, std::shared_ptr<Device> device, Returns returns)
    : DeviceCalls(state, std::move(device)),
      returns_(returns),
      meet_(returns == Returns::at_once && share_devices()) {
  state_.planner.plan_for(Planner::Memory::device, &queue_);
  Family& family = state_.launcher.family();
  if (returns_ == Returns::complete) return;
  if (family.progress_thread) return;
  const Context& context = state_.context;
  const bool crowded = context.can.one_process && 2 * static_cast<unsigned>(context.size) >
                                                      std::thread::hardware_concurrency();
  family.progress_thread = std::make_unique<ProgressThread>(family.operations, crowded);
}

bool ThreadedCalls::share_devices() const {
  if (state_.context.size == 1 || state_.context.can.one_process) return state_.context.size > 1;
  static const std::uint64_t process = std::uint64_t{std::random_device()()} << 32;
  // Processes that were forked have the same number.
  const std::uint64_t own = process ^ static_cast<std::uint64_t>(getpid()) << 32 ^
                            reinterpret_cast<std::uintptr_t>(device_.get());
  std::vector<std::uint64_t> devices = state_.gathered(own, "exchange of devices");
  std::ranges::sort(devices);
  return std::ranges::adjacent_find(devices) != devices.end();
}

ProgressThread& ThreadedCalls::thread() const { return *state_.launcher.family().progress_thread; }

std::unique_ptr<DeviceCalls> ThreadedCalls::split(State* part, int, int) {
  return part ? std::make_unique<ThreadedCalls>(*part, device_, returns_) : nullptr;
}

std::unique_ptr<StreamOperation> ThreadedCalls::take_operation() {
  Launcher& launcher = state_.launcher;
  // On a device's memory, all idle operations are StreamOperations.
  if (auto idle = launcher.take_idle())
    return std::unique_ptr<StreamOperation>(static_cast<StreamOperation*>(idle.release()));
  return std::make_unique<StreamOperation>(state_.context, launcher.runs(), launcher.watch(),
                                           launcher.busy(), *this);
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
  std::optional<Error> wrong;
  try {
    device_->check_stream(stream);
  } catch (const Error& error) {
    wrong = error;
  }
  try {
    state_.prepare(*operation, call, call.choice, wrong ? &*wrong : nullptr);
  } catch (const Error& error) {
    if (error.code == ErrorCode::invalid_argument || error.code == ErrorCode::unsupported) {
      launcher.give_operation(std::move(operation));  // for peers, there has been no call
      throw;
    }
    launcher.enter(*operation, {.name = name(call.collective).data()});
    launcher.fail(*operation);
  }
  try {
    if (!wrong) operation->mark(*device_, stream);
    // Ranks share hardware queues: no stream is held before all ranks have enqueued their
    // collectives.
    if (meet_) meet();
    if (wrong) operation->start();
  } catch (...) {
    launcher.fail(*operation);
  }
  if (wrong) launcher.wait(*operation);  // no stream will start its comparison, which throws
  give(std::move(operation), stream, true);
  complete();
}

void ThreadedCalls::give(std::unique_ptr<StreamOperation> operation, Stream stream, bool ordered) {
  Launcher& launcher = state_.launcher;
  if (returns_ == Returns::at_once) {
    thread().began();
    try {
      operation->hold(stream);
    } catch (const Error& error) {
      thread().ended();
      launcher.break_off(error.what());
      operation->abandon();
      throw;
    }
  }
  operation->start_when_reached();
  StreamOperation* const given = operation.get();
  Request request = state_.request(std::move(operation));
  launcher.keep(*given, ordered);
  under_way_.push_back({given, std::move(request)});
}

std::unique_ptr<StreamOperation> ThreadedCalls::prepare(const StreamMessage& message) {
  Launcher& launcher = state_.launcher;
  const auto kind = message.send ? StepKind::send : StepKind::recv;
  int& sent = messages_[{kind, message.peer}];
  std::byte* const bases[] = {nullptr, static_cast<std::byte*>(message.data)};
  std::unique_ptr<StreamOperation> operation = take_operation();
  launcher.load(*operation,
                {&state_.planner.message(kind, message.peer, message.count, size_of(message.type)),
                 {},
                 bases});
  // Streams may reach their messages in another order on the other side: tags tell these apart.
  const int tag = std::exchange(sent, (sent + 1) % user_tags);
  operation->enter(name(kind).data(), 0, tag,
                   message_call(kind, message.peer, tag, message.count, message.type));
  if (message.count > 0)
    state_.recording.record_message(*operation->execution().run, kind, message.peer, tag,
                                    {message.data, message.count, message.type});
  return operation;
}

void ThreadedCalls::complete() {
  if (returns_ == Returns::complete) wait_for_all();
}

void ThreadedCalls::wait_until(const std::function<bool()>& others_came) {
  const auto timeout = state_.context.options.timeout;
  execute::Waiting waiting(*state_.context.transport, timeout, state_.context.can.spins);
  while (!others_came()) {
    state_.launcher.check_interrupted();
    state_.launcher.family().operations.advance(&state_.launcher.busy());
    if (!waiting.again())
      base::raise(ErrorCode::timeout,
                  fmt::format("expected the messages of other ranks of this process, found none "
                              "for {} s",
                              static_cast<double>(timeout.count()) / 1000),
                  {.rank = state_.context.rank});
  }
}

void ThreadedCalls::exchange(std::span<const StreamMessage> messages,
                             const std::function<bool()>& others_came) {
  Launcher& launcher = state_.launcher;
  const InUse in_use(launcher.busy());
  std::erase_if(under_way_, [](const UnderWay& one) { return one.request.done(); });
  tell_error();
  launcher.require_usable();
  for (const StreamMessage& message : messages) {
    const char* const call = message.send ? "send" : "recv";
    if (message.peer < 0 || message.peer >= state_.context.size)
      base::refuse("{}: expected a peer from 0 to {}, found {}", call, state_.context.size - 1,
                   message.peer);
    if (message.count < 0)
      base::refuse("{}: expected at least 0 elements, found {}", call, message.count);
    const std::size_t element_bytes = message_element_bytes(call, message.type);
    if (message.count > 0) check_residence(call, "buffer", message.data, element_bytes);
    device_->check_stream(message.stream);
  }
  // All marks come before the first hold, so that no message of a stream waits for another.
  std::vector<std::unique_ptr<StreamOperation>> prepared;
  try {
    for (const StreamMessage& message : messages) {
      prepared.push_back(prepare(message));
      prepared.back()->mark(*device_, message.stream);
    }
    if (others_came && returns_ == Returns::at_once) wait_until(others_came);
    for (std::size_t i = 0; i < prepared.size(); ++i)
      give(std::move(prepared[i]), messages[i].stream, false);
  } catch (const std::exception& error) {
    launcher.break_off(error.what());
    for (const auto& operation : prepared)
      if (operation) operation->abandon();
    throw;
  }
  complete();
}

void ThreadedCalls::abort() noexcept {
  for (const UnderWay& one : under_way_) one.operation->abandon();
  under_way_.clear();
  error_ = nullptr;
}

void ThreadedCalls::synchronize() {
  const InUse in_use(state_.launcher.busy());
  wait_for_all();
}

void ThreadedCalls::wait_for_all() {
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
