#include "baton/communicator.hpp"

#include <utility>
#include <vector>

#include "../select/select.hpp"
#include "../trace/part.hpp"
#include "baton/output_file.hpp"
#include "baton/timeline.hpp"
#include "state.hpp"

namespace baton {

using communicator::InUse;
using communicator::State;

Communicator::Communicator(std::unique_ptr<Transport> transport, Options options)
    : state_(State::first(std::move(transport), options, true)) {
  const Options& agreed = state_->context.options;
  if (!agreed.trace.empty()) state_->recording.start(*state_, agreed.trace_events);
}
Communicator::Communicator(std::unique_ptr<Transport> transport, const Communicator& like,
                           std::vector<int> members)
    : state_(std::make_shared<State>(std::move(transport), *like.state_)) {
  auto session = like.state_->recording.active_session();
  if (!members.empty() && session)
    state_->recording.join(std::move(session), members, state_->context);
  state_->open_watch(members);
}
Communicator::Communicator(std::shared_ptr<State> state) : state_(std::move(state)) {}
Communicator::Communicator(Communicator&&) noexcept = default;
Communicator& Communicator::operator=(Communicator&&) noexcept = default;
Communicator::~Communicator() = default;

int Communicator::rank() const { return state_->context.rank; }
int Communicator::size() const { return state_->context.size; }
const Options& Communicator::options() const { return state_->context.options; }
const Registry& Communicator::registry() const { return *state_->context.registry; }
Transport& Communicator::transport() const { return *state_->context.transport; }
const std::shared_ptr<const Hosts>& Communicator::hosts() const { return state_->context.hosts; }

const std::string& Communicator::name() const { return state_->launcher.watch().label(); }
void Communicator::set_name(std::string_view name) { state_->set_name(name); }

Communicator Communicator::split(int color, int key) {
  const InUse in_use(state_->launcher.busy());
  return Communicator(state_->split(color, key));
}

Communicator Communicator::split(int color, int key, Options options) {
  const InUse in_use(state_->launcher.busy());
  return Communicator(state_->split(color, key, std::move(options)));
}

Communicator Communicator::shrink(std::chrono::milliseconds patience) {
  const InUse in_use(state_->launcher.busy());
  return Communicator(state_->shrink(patience));
}

void Communicator::run(const Call& call) { state_->run(call, call.choice); }
Request Communicator::start(const Call& call) { return state_->start(call, call.choice); }
void Communicator::run(const Schedule& schedule, ConstData input, Data output, Op op) {
  state_->run_schedule(schedule, input, output, op);
}

Schedule Communicator::schedule(const Call& call) {
  const InUse in_use(state_->launcher.busy());
  state_->arguments.bind(call, rank(), size());
  return state_->planner.schedule(state_->arguments, call.choice);
}

Choice Communicator::chosen(const Call& call) { return state_->chosen(call); }

Traffic Communicator::traffic(const Call& call) {
  const InUse in_use(state_->launcher.busy());
  state_->arguments.bind(call, rank(), size());
  const execute::Plan& plan =
      *state_->planner.plan(state_->arguments, call.choice, communicator::Planner::Purpose::ask)
           .plan;
  Traffic traffic;
  for (const execute::Plan::Item& item : plan.items())
    if (item.kind == StepKind::send) traffic += {1, item.bytes};
  return traffic;
}

bool Communicator::progress() {
  const InUse in_use(state_->launcher.busy());
  return state_->launcher.family().operations.advance(&state_->launcher.busy());
}

int Communicator::probe(int tag) {
  const InUse in_use(state_->launcher.busy());
  return state_->probe(tag);
}

void Communicator::send(ConstData data, int peer, int tag) { start_send(data, peer, tag).wait(); }
void Communicator::recv(Data data, int peer, int tag) { start_recv(data, peer, tag).wait(); }
Request Communicator::start_send(ConstData data, int peer, int tag) {
  return state_->start_message(StepKind::send,
                               {const_cast<void*>(data.data), data.count, data.type}, peer, tag);
}
Request Communicator::start_recv(Data data, int peer, int tag) {
  return state_->start_message(StepKind::recv, data, peer, tag);
}

void Communicator::start_recording(std::int64_t events) {
  const InUse in_use(state_->launcher.busy());
  state_->recording.start(*state_, events);
}

Timeline Communicator::stop_recording() {
  const InUse in_use(state_->launcher.busy());
  const std::string bytes = state_->recording.stop(*state_);
  if (rank() > 0) return {};
  return tracing::merged(tracing::read_parts(bytes, "recording").parts, false);
}

void Communicator::stop_recording(const std::string& file) {
  const InUse in_use(state_->launcher.busy());
  const std::string bytes = state_->recording.stop(*state_);
  state_->agreed([&] {
    write_file(file, bytes);
    return std::string();
  });
}

void Communicator::report(std::string_view sentence) const {
  state_->launcher.watch().report(sentence);
}

bool Communicator::recording() const { return state_->recording.began(); }

}  // namespace baton
