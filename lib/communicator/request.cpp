#include <exception>
#include <utility>

#include "baton/communicator.hpp"
#include "baton/wait.hpp"
#include "state.hpp"

namespace baton {

using communicator::InUse;
using communicator::Launcher;
using communicator::Operation;

Request::Request() = default;
Request::Request(std::unique_ptr<Operation, Release> operation)
    : operation_(std::move(operation)) {}
Request::Request(Request&&) noexcept = default;
Request& Request::operator=(Request&&) noexcept = default;
Request::~Request() = default;

bool Request::done() const { return !operation_ || operation_->finished() || operation_->failed(); }

namespace {

/// Uses a request's operation, which keeps its failure and tells it each time.
template <class Use>
auto asked(Operation& operation, const Use& use) {
  const InUse in_use(operation.keep_alive->launcher.busy());
  operation.tell_failure();
  try {
    return use();
  } catch (...) {
    if (operation.finished()) operation.failed_with(std::current_exception());
    throw;
  }
}

}  // namespace

bool Request::test() {
  if (!operation_) return true;
  Operation& operation = *operation_;
  Launcher& launcher = operation.keep_alive->launcher;
  const bool complete = asked(operation, [&] {
    if (!done()) launcher.family().operations.advance(&launcher.busy());
    if (operation.finished()) return true;
    try {
      operation.rethrow();
    } catch (...) {
      launcher.fail(operation);
    }
    return false;
  });
  if (complete) operation_.reset();
  return complete;
}

void Request::wait() {
  if (!operation_) return;
  asked(*operation_, [&] { operation_->keep_alive->launcher.wait(*operation_); });
  operation_.reset();
}

std::string Request::waits_for() const {
  if (done()) return {};
  const InUse in_use(operation_->keep_alive->launcher.busy());
  return done() ? std::string() : operation_->waits_for();
}

std::string Request::cause(std::chrono::milliseconds waited) const {
  if (done()) return {};
  const InUse in_use(operation_->keep_alive->launcher.busy());
  return done() ? std::string() : operation_->cause(waited);
}

void Request::abandon(const std::string& why) {
  if (!operation_) return;
  if (!operation_->finished()) {
    Launcher& launcher = operation_->keep_alive->launcher;
    const InUse in_use(launcher.busy());
    if (!operation_->finished()) {
      launcher.break_off(why);
      operation_->abandon();
    }
  }
  operation_.reset();
}

namespace communicator {

void State::wait(Request& request, const std::function<void()>& meanwhile) {
  Operation* const operation = request.operation_.get();
  if (!operation) return;
  Launcher& launcher = operation->keep_alive->launcher;
  const auto in_use = [&](const auto& use) {
    return asked(*operation, [&] {
      try {
        return use();
      } catch (...) {
        launcher.fail(*operation);
      }
    });
  };
  const Context& context = operation->keep_alive->context;
  execute::Waiting waiting(*context.transport, context.options.timeout, context.can.spins);
  enum class Found { end, progress, nothing };
  std::size_t completed = in_use([&] { return operation->completed(); });
  const auto look = [&] {
    operation->rethrow();
    if (operation->step()) return Found::end;
    if (!waiting.spinning()) launcher.family().operations.advance(&launcher.busy());
    operation->rethrow();
    if (operation->finished()) return Found::end;
    const std::size_t now = operation->completed();
    if (now == completed) return Found::nothing;
    completed = now;
    operation->progressed();
    return Found::progress;
  };
  for (;;) {
    Found found = in_use(look);
    if (found == Found::nothing && !waiting.spinning()) {
      meanwhile();
      found = in_use(look);  // it may have taken longer than the timeout
    }
    if (found == Found::end) break;
    if (found == Found::progress) {
      waiting.progressed();
      continue;
    }
    in_use([&] {
      const bool expired = !waiting.again();  // idles in the transport
      if (waiting.spinning()) return;
      operation->rethrow();
      if (expired && !operation->finished()) operation->fail_timeout();
      operation->idled(true);
    });
  }
  request.operation_.reset();
}

}  // namespace communicator

void wait(Request& request, const std::function<void()>& meanwhile) {
  communicator::State::wait(request, meanwhile);
}

void Request::Release::operator()(Operation* operation) const {
  // Keeps the communicator alive until the operation is back in its pool.
  const std::shared_ptr<communicator::State> state = std::move(operation->keep_alive);
  Launcher& launcher = state->launcher;
  launcher.forget(*operation);
  if (!operation->finished()) {
    execute::UseFlag& busy = launcher.busy();
    // Another thread may be advancing this communicator's other operations. False: a call of this
    // thread holds the flag, and a user's operation in it destroys the request.
    const bool entered = busy.enter();
    try {
      if (!entered) {
        operation->abandon();
      } else if (std::uncaught_exceptions() > 0 || !launcher.broken().empty()) {
        launcher.break_off("a request was destroyed before it was complete");
        operation->abandon();
      } else {
        launcher.wait(*operation);
      }
    } catch (...) {
      operation->abandon();  // a destructor cannot report its failure
    }
    if (entered) busy.leave();
  }
  launcher.give_operation(std::unique_ptr<Operation>(operation));
}

}  // namespace baton
