#include "state.hpp"

namespace baton {

Request::Request() = default;
Request::Request(std::unique_ptr<Operation, Release> operation)
    : operation_(std::move(operation)) {}
Request::Request(Request&&) noexcept = default;
Request& Request::operator=(Request&&) noexcept = default;
Request::~Request() = default;

bool Request::done() const { return !operation_ || operation_->finished() || operation_->failed(); }

bool Request::test() {
  if (!operation_) return true;
  Communicator::State& state = *operation_->keep_alive;
  {
    const InUse in_use(*state.busy);
    if (!done()) state.family->operations.advance(state.busy);
    if (!operation_->finished()) {
      try {
        operation_->rethrow();
      } catch (...) {
        state.fail(*operation_);
      }
      return false;
    }
  }
  operation_.reset();
  return true;
}

void Request::wait() {
  if (!operation_) return;
  {
    Communicator::State& state = *operation_->keep_alive;
    const InUse in_use(*state.busy);
    state.wait(*operation_);
  }
  operation_.reset();
}

void Request::Release::operator()(Operation* operation) const {
  // Keeps the communicator until the operation is back in its pool.
  const std::shared_ptr<Communicator::State> state = std::move(operation->keep_alive);
  state->family->operations.remove(operation);
  std::erase(state->under_way, operation);
  if (!operation->finished()) {
    try {
      if (std::uncaught_exceptions() > 0 || !state->broken.empty()) {
        state->break_off("a request was destroyed before it was complete");
        operation->abandon();
      } else {
        const InUse in_use(*state->busy);
        state->wait(*operation);
      }
    } catch (...) {
      operation->abandon();  // nobody is left to be told
    }
  }
  state->idle_operations.emplace_back(operation);
}

}  // namespace baton
