#include "baton/communicator.hpp"

#include "state.hpp"

namespace baton {

struct PersistentCall::State {
  std::shared_ptr<Communicator::State> communicator;
  Call call;
  CachedPlan* plan = nullptr;
  Kernels kernels;
  std::vector<std::byte*> bases;
  Datatype type = Datatype::u8;

  ~State() {
    if (plan) plan->unpin();
  }
};

PersistentCall::PersistentCall() = default;
PersistentCall::PersistentCall(PersistentCall&&) noexcept = default;
PersistentCall& PersistentCall::operator=(PersistentCall&&) noexcept = default;
PersistentCall::~PersistentCall() = default;

void PersistentCall::run() {
  Communicator::State& communicator = *state_->communicator;
  if (communicator.options.check) return Communicator(state_->communicator).run(state_->call);
  const InUse in_use(*communicator.busy);
  communicator.require_usable();
  communicator.free_next_tag();
  communicator.blocking.execution() =
      communicator.execute(*state_->plan, state_->kernels, state_->bases);
  const int tag = communicator.next_tag();
  communicator.blocking.begin(name(state_->call.collective).data(), communicator.sequence, tag);
  communicator.record(*communicator.blocking.execution().run, *state_->plan,
                      state_->call.collective, state_->type, state_->call.op.kind);
  communicator.run_blocking();
}
Request PersistentCall::start() { return Communicator(state_->communicator).start(state_->call); }

Communicator::Communicator(std::unique_ptr<Transport> transport, Options options)
    : state_(std::make_shared<State>(std::move(transport), std::move(options),
                                     std::make_shared<Family>())) {
  state_->agree_options();
  if (!state_->options.trace.empty()) state_->start_recording(state_->options.trace_events);
}
Communicator::Communicator(std::unique_ptr<Transport> transport, const Communicator& like,
                           std::vector<int> members)
    : state_(std::make_shared<State>(std::move(transport), *like.state_)) {
  const auto& recording = like.state_->recording;
  if (!members.empty() && recording && recording->active)
    state_->join(recording, std::move(members));
}
Communicator::Communicator(std::shared_ptr<State> state) : state_(std::move(state)) {}
Communicator::Communicator(Communicator&&) noexcept = default;
Communicator& Communicator::operator=(Communicator&&) noexcept = default;
Communicator::~Communicator() = default;

int Communicator::rank() const { return state_->rank; }
int Communicator::size() const { return state_->size; }
const Options& Communicator::options() const { return state_->options; }
const Registry& Communicator::registry() const { return *state_->registry; }
Transport& Communicator::transport() const { return *state_->transport; }
const std::shared_ptr<const Hosts>& Communicator::hosts() const { return state_->hosts; }

Communicator Communicator::split(int color, int key) {
  const InUse in_use(*state_->busy);
  state_->require_usable();
  std::unique_ptr<Transport> transport = state_->transport->split(color, key);
  if (!transport) return Communicator(std::shared_ptr<State>());
  auto made = std::make_shared<State>(std::move(transport), *state_);
  if (state_->recording && state_->recording->active) {
    const auto members = made->gathered(static_cast<std::uint64_t>(state_->recording->rank));
    made->join(state_->recording, {members.begin(), members.end()});
  }
  return Communicator(std::move(made));
}

void Communicator::run(const Call& call) { state_->run(call, call.choice); }

void Communicator::State::run(const Call& call, const Choice& choice) {
  const InUse in_use(*busy);
  prepare(blocking, call, choice);
  run_blocking();
}

std::unique_ptr<Operation> Communicator::State::take_operation() {
  if (idle_operations.empty()) {
    idle_operations.reserve(16);
    return std::make_unique<Operation>(*this);
  }
  auto operation = std::move(idle_operations.back());
  idle_operations.pop_back();
  return operation;
}

Request Communicator::State::start(std::unique_ptr<Operation> operation) {
  operation->keep_alive = shared_from_this();
  family->operations.add(operation.get());
  Request request(std::unique_ptr<Operation, Request::Release>(operation.release()));
  request.operation_->start();
  return request;
}

Request Communicator::start(const Call& call) { return state_->start(call, call.choice); }

Request Communicator::State::start(const Call& call, const Choice& choice) {
  const InUse in_use(*busy);
  std::unique_ptr<Operation> operation = take_operation();
  prepare(*operation, call, choice);
  under_way.push_back(operation.get());
  return start(std::move(operation));
}

PersistentCall Communicator::plan(const Call& call) {
  const InUse in_use(*state_->busy);
  state_->require_usable();
  state_->arguments.bind(call, state_->rank, state_->size);
  PersistentCall persistent;
  persistent.state_ = std::make_unique<PersistentCall::State>();
  PersistentCall::State& state = *persistent.state_;
  state.communicator = state_;
  state.call = call;
  state.kernels = state_->kernels(call.collective, call.op, state_->arguments.type);
  state.bases = state_->arguments.bases;
  state.type = state_->arguments.type;
  state.plan = &state_->cached_plan(call.choice);
  state.plan->pin();
  return persistent;
}

void Communicator::run(const Schedule& schedule, ConstData input, Data output, Op op) {
  const InUse in_use(*state_->busy);
  state_->prepare_schedule(state_->blocking, schedule, input, output, op);
  state_->run_blocking();
}

Schedule Communicator::schedule(const Call& call) {
  const InUse in_use(*state_->busy);
  state_->arguments.bind(call, state_->rank, state_->size);
  const Problem problem = state_->problem();
  Selection selected = state_->selection(problem, call.choice);
  if (!selected.algorithm->pipelined) selected.segment = 0;
  return scheduled(selected, problem, state_->arguments.element_bytes);
}

Choice Communicator::chosen(const Call& call) { return state_->chosen(call); }

Traffic Communicator::traffic(const Call& call) {
  const InUse in_use(*state_->busy);
  state_->arguments.bind(call, state_->rank, state_->size);
  const Plan& plan = *state_->cached_plan(call.choice).plan;
  const Schedule schedule = plan.schedule();
  Traffic traffic;
  for (const Step& step : schedule.steps()) {
    if (step.kind != StepKind::send) continue;
    traffic += {1, schedule.length(step) * static_cast<std::int64_t>(plan.element_bytes())};
  }
  return traffic;
}

void Communicator::progress() {
  const InUse in_use(*state_->busy);
  state_->family->operations.advance(state_->busy);
}

void Communicator::send(ConstData data, int peer, int tag) { start_send(data, peer, tag).wait(); }
void Communicator::recv(Data data, int peer, int tag) { start_recv(data, peer, tag).wait(); }

Request Communicator::start_message(StepKind kind, Data data, int peer, int tag) {
  const InUse in_use(*state_->busy);
  std::unique_ptr<Operation> operation = state_->take_operation();
  state_->prepare_message(*operation, kind, data, peer, tag);
  return state_->start(std::move(operation));
}
Request Communicator::start_send(ConstData data, int peer, int tag) {
  return start_message(StepKind::send, {const_cast<void*>(data.data), data.count, data.type}, peer,
                       tag);
}
Request Communicator::start_recv(Data data, int peer, int tag) {
  return start_message(StepKind::recv, data, peer, tag);
}

}  // namespace baton
