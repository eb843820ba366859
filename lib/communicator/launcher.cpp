#include "launcher.hpp"

#include <fmt/core.h>

#include <exception>
#include <optional>

#include "../base/backoff.hpp"
#include "../base/raise.hpp"

namespace baton::communicator {

void InUse::refuse() {
  base::refuse(
      "expected one thread at a time to use a communicator, found two (a transport without "
      "Capabilities::concurrent serves one thread over all communicators)");
}

Launcher::Launcher(const Context& context, Planner& planner, Recording& recording,
                   std::shared_ptr<Family> family)
    : context_(context),
      planner_(planner),
      recording_(recording),
      family_(std::move(family)),
      busy_(context.can.concurrent ? &own_busy_ : &family_->busy),
      waits_(context.transport->blocking() && !context.can.concurrent),
      operation_tags_((context.can.tags - (context.can.subgroups ? 1 : 0) - user_tags) / lanes),
      runs_(context),
      watch_(context),
      blocking_(context, runs_, watch_, *busy_) {}

void Launcher::require_usable() const {
  if (broken_.empty() && !interrupted_) [[likely]]
    return;
  base::raise(ErrorCode::transport,
              fmt::format("expected a usable communicator, found one that failed earlier: {}",
                          broken_.empty() ? "an abort() has begun" : broken_),
              {.rank = context_.rank});
}

void Launcher::break_off(std::string why) {
  if (!broken_.empty()) return;
  broken_ = why.empty() ? "no reason was given" : std::move(why);
  watch_.fail(broken_);
  planner_.repeated().forget();
}

void Launcher::load(Operation& operation, const Work& work) {
  operation.execution() = runs_.take(*work.plan, work.kernels, work.bases);
}

void Launcher::enter(Operation& operation, const Work& work) {
  const int tag = next_tag();
  const bool of_user = work.shown.kind != status::Call::Kind::none;
  operation.enter(work.name, sequence_, tag, of_user ? work.shown : internal_call(work.name));
  if (work.recorded && operation.execution().run)
    recording_.record(*operation.execution().run, *work.plan, *work.recorded, sequence_);
}

void Launcher::run(const Work& work) {
  free_next_tag();
  load(blocking_, work);
  enter(blocking_, work);
  run_blocking();
}

void Launcher::run_blocking() {
  try {
    blocking_.start(context_.can.spins, blocked_view());
  } catch (...) {
    fail(blocking_);
  }
  if (!blocking_.finished()) wait(blocking_);
}

void Launcher::run_again(RepeatedCalls::Entry& entry, std::byte* input, std::byte* output) {
  const int tag = next_tag();
  const std::uint64_t place = watch_.begin(sequence_, entry.shown);
  const auto adopt = [&] {
    blocking_.adopt({entry.plan, std::move(entry.run), entry.kernels},
                    name(entry.call.collective()).data(), sequence_, tag, place);
  };
  const auto ended = [&](bool done) {
    const bool good = done && !watch_.told(sequence_);  // otherwise wait() says why not
    if (good) watch_.end(place);
    return good;
  };
  try {
    execute::Run& run = *entry.run;
    const auto bases = run.bases();
    bases[execute::first_tensor_base] = input;
    bases[execute::first_tensor_base + 1] = output;
    if (recording_.under_way()) [[unlikely]]
      recording_.record(run, *entry.plan,
                        {entry.call.collective(), entry.call.type(), entry.call.op()}, sequence_);
    if (ended(run.start(*context_.transport, entry.kernels, tag,
                        {context_.can.spins, blocked_view()})))
      return;
    execute::Spins spins(context_.can.spins);
    do {
      if (ended(run.drive())) return;
    } while (spins.again());
  } catch (...) {
    adopt();
    fail(blocking_);
  }
  // Not done after the first polls: wait as for any other operation.
  adopt();
  wait(blocking_);
}

std::unique_ptr<Operation> Launcher::take_idle() {
  if (idle_.empty()) return nullptr;
  std::unique_ptr<Operation> operation = std::move(idle_.back());
  idle_.pop_back();
  return operation;
}

std::unique_ptr<Operation> Launcher::take_operation() {
  if (auto idle = take_idle()) return idle;
  idle_.reserve(16);
  return std::make_unique<Operation>(context_, runs_, watch_, *busy_);
}

void Launcher::finish_oldest() {
  for (Operation* const operation : under_way_) {
    if (operation->number() + static_cast<std::uint64_t>(operation_tags_) > sequence_ + 1) return;
    execute::Waiting waiting(*context_.transport, context_.options.timeout, context_.can.spins);
    base::Backoff ahead;  // while the stream's earlier work runs
    std::size_t completed = operation->completed();
    while (!operation->finished() && !operation->failed()) {
      check_interrupted();
      family_->operations.advance(busy_);
      if (const std::size_t now = operation->completed(); now != completed || operation->ahead()) {
        completed = now;
        waiting.progressed();
        if (operation->ahead()) {
          ahead.wait();
        } else {
          ahead.reset();
        }
      } else if (!waiting.again()) {
        try {
          operation->fail_timeout();
        } catch (const Error& error) {
          const Error named = operation->named(error);
          break_off(named.what());
          throw named;
        }
      }
    }
  }
}

void Launcher::wait(Operation& operation) {
  execute::Waiting waiting(*context_.transport, context_.options.timeout, context_.can.spins);
  base::Backoff ahead;  // while the stream's earlier work runs
  try {
    operation.rethrow();
    std::size_t completed = operation.completed();
    while (!operation.step()) {
      if (const std::size_t now = operation.completed(); now != completed || operation.ahead()) {
        completed = now;
        waiting.progressed();
        operation.progressed();
        if (!operation.ahead()) {
          ahead.reset();
          continue;
        }
        ahead.wait();
        family_->operations.advance(busy_);
      }
      if (!waiting.spinning()) family_->operations.advance(busy_);
      if (operation.finished()) return;  // an operation in a stream keeps its error
      operation.rethrow();
      check_interrupted();
      if (!waiting.again()) operation.fail_timeout();
      if (!waiting.spinning()) operation.idled(true);
    }
  } catch (...) {
    fail(operation);
  }
}

namespace {

/// The exception being handled, of another kind than Error.
std::string interruption() {
  try {
    throw;
  } catch (const std::exception& exception) {
    return fmt::format("an operation was interrupted by an exception: {}", exception.what());
  } catch (...) {
    return "an operation was interrupted by an exception";
  }
}

constexpr const char* out_of_memory = "out of memory";  // as a string it allocates nothing

}  // namespace

void Launcher::fail(Operation& operation) {
  if (operation.refused()) {
    operation.end_refused();
    throw;
  }
  try {
    throw;
  } catch (const Error& thrown) {
    std::string why = out_of_memory;
    std::optional<Error> named;
    try {
      Error error = thrown;
      // A user's operation or the transport threw it: the call itself was right, and has begun.
      // An error that names an operation is one that all ranks were told.
      if (error.operation.empty() &&
          (error.code == ErrorCode::mismatch || error.code == ErrorCode::invalid_argument))
        error.code = ErrorCode::transport;
      why = named.emplace(operation.named(error)).what();
      why = named.emplace(operation.named(operation.told(error))).what();
    } catch (...) {  // others cannot be told, and the error may have no name
    }
    break_off(std::move(why));
    operation.abandon();
    if (named) throw *named;
    throw;
  } catch (...) {
    std::string why = out_of_memory;
    try {
      why = interruption();
      static_cast<void>(operation.told(Error(ErrorCode::transport, why)));
    } catch (...) {  // the first exception is thrown on
    }
    break_off(std::move(why));
    operation.abandon();
    throw;
  }
}

}  // namespace baton::communicator
