/// What a rank's thread adds to its recording: computations and names.

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "baton/record.hpp"
#include "recording.hpp"

namespace baton::communicator {
namespace {

thread_local std::weak_ptr<RecordingSession> current;
thread_local const std::string* name = nullptr;

std::shared_ptr<RecordingSession> computing_session() {
  auto session = current.lock();
  return session && session->active ? session : nullptr;
}

}  // namespace

const std::string& recorded_name() {
  static const std::string none;
  return name ? *name : none;
}

void begin_computations(const std::shared_ptr<RecordingSession>& session) { current = session; }

void RecordingSession::add(const Computation& what, std::int64_t begin, std::int64_t end) {
  if (!own_group) own_group = recorder->add_group({rank});
  auto& known = computed[{what.name, what.kind}];
  if (!known.plan) {
    auto plan = std::make_shared<const Computation>(Computation{what.name, what.kind, 0});
    TimedOperation operation;
    operation.name = what.name;
    known.number = recorder->add_plan(*own_group, std::move(operation), plan, [](const void* its) {
      return tracing::schedule_of(*static_cast<const Computation*>(its));
    });
    known.plan = std::move(plan);
  }
  const tracing::Moments moments{begin, begin, end};
  recorder->add_run(known.number, computations++, std::span(&moments, 1));
}

}  // namespace baton::communicator

namespace baton {

RecordedName::RecordedName(std::string name)
    : name_(std::move(name)), before_(std::exchange(communicator::name, &name_)) {}
RecordedName::~RecordedName() { communicator::name = before_; }

bool records_computations() { return communicator::computing_session() != nullptr; }

void record_computation(const Computation& what, std::int64_t begin, std::int64_t end) {
  if (const auto session = communicator::computing_session()) session->add(what, begin, end);
}

}  // namespace baton
