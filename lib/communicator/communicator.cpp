#include "baton/communicator.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <tuple>

#include "state.hpp"

namespace baton {
namespace {

/// Marks a communicator (or its family) as in use for the length of a call.
class InUse {
 public:
  explicit InUse(UseFlag& flag) : flag_(flag) {
    if (!flag_.enter()) {
      throw Error(
          ErrorCode::invalid_argument,
          "expected one thread at a time to use a communicator, found two (a transport without "
          "Capabilities::concurrent serves one thread over all communicators)");
    }
  }
  ~InUse() { flag_.leave(); }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;

 private:
  UseFlag& flag_;
};

Call list_call(Collective collective, std::span<const Data> tensors) {
  Call call;
  call.collective = collective;
  call.outputs = tensors;
  return call;
}

}  // namespace

// --- state
// -------------------------------------------------------------------------------------------

Communicator::State::State(std::unique_ptr<Transport> made, Options given,
                           std::shared_ptr<Family> shared)
    : transport(std::move(made)),
      options(std::move(given)),
      registry(options.registry ? options.registry
                                : std::make_shared<const Registry>(Registry::builtin())),
      family(std::move(shared)),
      rank(transport->rank()),
      size(transport->size()),
      operation_tags((transport->capabilities().tags - user_tags) / lanes),
      busy(transport->capabilities().concurrent ? &own_busy : &family->busy),
      plans(static_cast<std::size_t>(options.plans)) {
  options.registry = registry;
}

Communicator::State::~State() = default;

void Communicator::State::require_usable() const {
  if (broken.empty()) return;
  Error error(
      ErrorCode::transport,
      fmt::format("expected a usable communicator, found one that failed earlier: {}", broken));
  error.rank = rank;
  throw error;
}

Selection Communicator::State::selection(const Problem& problem, const Choice& choice) const {
  Selection selected =
      select(*registry, problem, size_of(arguments.type), choice,
             options.choices[static_cast<std::size_t>(problem.collective)], network);
  if (options.explain && rank == 0) {
    std::fputs(fmt::format("baton: {} of {} {} on {} ranks: {}, segment {} B ({})\n",
                           name(problem.collective), problem.count, name(arguments.type), size,
                           selected.algorithm->name, selected.segment, selected.reason)
                   .c_str(),
               stderr);
  }
  return selected;
}

CachedPlan& Communicator::State::keep(std::unique_ptr<CachedPlan> plan) {
  if (plans.full()) repeated.forget();  // so that their plans may go
  return plans.insert(key, std::move(plan));
}

CachedPlan& Communicator::State::cached_plan(const Choice& choice) {
  key.clear();
  arguments.append_to(key);
  if (!choice.algorithm.empty()) key.add_all(choice.algorithm);
  if (choice.segment >= 0) key.add(choice.segment);
  if (CachedPlan* found = plans.find(key)) return *found;
  const Problem problem = arguments.problem(rank, size);
  const std::size_t bytes = size_of(arguments.type);
  const Selection selected = selection(problem, choice);
  auto plan = std::make_shared<const Plan>(scheduled(selected, problem, bytes), bytes,
                                           arguments.input_sizes, arguments.output_sizes);
  return keep(
      std::make_unique<CachedPlan>(std::move(plan), selected.algorithm->name, selected.segment));
}

Execution Communicator::State::execute(CachedPlan& plan, const Kernels& kernels,
                                       std::span<std::byte* const> bases) {
  Execution execution{&plan, plan.take(options.window), kernels};
  const auto places = execution.run->bases();
  if (!execution.run->has_scratch()) {
    places[scratch_base] = scratch.take(plan.plan->scratch_bytes());
    places[slot_base] = scratch.take(plan.plan->slot_bytes());
  }
  std::copy(bases.begin(), bases.end(), places.begin() + first_tensor_base);
  return execution;
}

void Communicator::State::give_back(Execution& execution) noexcept {
  if (!execution.run) return;
  if (!execution.run->has_scratch()) {
    const auto places = execution.run->bases();
    scratch.give(places[scratch_base], execution.plan->plan->scratch_bytes());
    scratch.give(places[slot_base], execution.plan->plan->slot_bytes());
  }
  execution.plan->give(std::move(execution.run));
}

void Communicator::State::give_up(Execution& execution) noexcept {
  if (transport->capabilities().cancels) return give_back(execution);
  static_cast<void>(execution.run.release());
}

Execution Communicator::State::internal(Collective collective, const char* algorithm,
                                        std::int64_t count, std::span<std::byte* const> bases) {
  key.clear();
  key.add(-100 - static_cast<std::int64_t>(collective));
  key.add(count);
  CachedPlan* found = plans.find(key);
  if (!found) {
    Problem problem;
    problem.collective = collective;
    problem.size = size;
    problem.rank = rank;
    problem.count = count;
    const Schedule schedule = Registry::builtin().find(collective, algorithm).generate(problem);
    const std::int64_t input[] = {problem.input_extent()}, output[] = {problem.output_extent()};
    auto plan = std::make_shared<const Plan>(schedule, 1, input, output);
    found = &keep(std::make_unique<CachedPlan>(std::move(plan), algorithm, 0));
  }
  return execute(*found, {}, bases);
}

Kernels Communicator::State::kernels(Collective collective, const Op& op, Datatype type) const {
  Kernels kernels;
  if (!reducing(collective)) return kernels;
  if (op.kind == OpKind::user) {
    kernels.user = op.function;
    kernels.context = op.context;
  } else {
    kernels.fold = host::fold(op.kind, type);
    if (op.kind == OpKind::avg) kernels.finish = host::finish(type);
  }
  return kernels;
}

void Communicator::State::run_again(RepeatedCalls::Entry& entry, std::byte* input,
                                    std::byte* output) {
  constexpr int attempts = 256;
  const int tag = next_tag();
  try {
    const auto bases = entry.run->bases();
    bases[first_tensor_base] = input;
    bases[first_tensor_base + 1] = output;
    entry.run->start(*transport, entry.kernels, tag);
    for (int i = 0; i < attempts; ++i) {
      if (entry.run->drive()) return;
    }
  } catch (...) {
    blocking.adopt({entry.plan, std::move(entry.run), entry.kernels},
                   name(entry.call.collective).data(), sequence, tag);
    fail(blocking);
  }
  // This takes longer: wait for it as for any other.
  blocking.adopt({entry.plan, std::move(entry.run), entry.kernels},
                 name(entry.call.collective).data(), sequence, tag);
  wait(blocking);
}

template <class MakeCall>
void Communicator::State::run_simple(const SimpleCall& simple, const void* input, void* output,
                                     const Op& op, const Choice& choice, const MakeCall& make) {
  const InUse in_use(*busy);
  const bool plain = op.kind != OpKind::user && choice.algorithm.empty() && choice.segment < 0 &&
                     !options.check && broken.empty();
  free_next_tag();
  RepeatedCalls::Entry& entry = repeated.at(simple);
  auto* in = static_cast<std::byte*>(const_cast<void*>(input));
  auto* out = static_cast<std::byte*>(output);
  if (plain && entry.plan && entry.call == simple && entry.fits(in, out)) {
    if (!entry.run) entry.run = entry.plan->take_small(options.window);
    if (entry.run) return run_again(entry, in, out);
    std::byte* const bases[] = {in, out};
    blocking.execution() = execute(*entry.plan, entry.kernels, bases);
    const int tag = next_tag();
    blocking.begin(name(simple.collective).data(), sequence, tag);
  } else {
    prepare(blocking, make(), choice);
    if (plain) {
      if (entry.run) entry.plan->give(std::move(entry.run));
      const Execution& execution = blocking.execution();
      const std::size_t bytes = size_of(arguments.type);
      entry.call = simple;
      entry.plan = execution.plan;
      entry.kernels = execution.kernels;
      entry.input_bytes = static_cast<std::size_t>(arguments.input_sizes[0]) * bytes;
      entry.output_bytes = static_cast<std::size_t>(arguments.output_sizes[0]) * bytes;
      entry.in_place_distance = arguments.in_place ? in - out : 0;
      entry.in_place = arguments.in_place;
    }
  }
  run_blocking();
}

void Communicator::State::prepare(Operation& operation, const Call& call, const Choice& choice) {
  require_usable();
  free_next_tag();
  const auto bind = [&] {
    arguments.bind(call, rank, size);
    CachedPlan& plan = cached_plan(choice);
    operation.execution() =
        execute(plan, kernels(call.collective, call.op, arguments.type), arguments.bases);
  };
  if (!options.check) {
    bind();
  } else {
    try {
      bind();
      prepare_check(operation, choice, nullptr);
    } catch (const Error& error) {
      prepare_check(operation, choice, &error);
    }
  }
  const int tag = next_tag();
  operation.begin(name(call.collective).data(), sequence, tag);
}

void Communicator::State::prepare_message(Operation& operation, StepKind kind, Data data, int peer,
                                          int tag) {
  require_usable();
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}", name(kind), what));
  };
  if (peer < 0 || peer >= size || peer == rank) {
    refuse(
        fmt::format("expected a peer from 0 to {} other than this rank, found {}", size - 1, peer));
  }
  if (tag < 0 || tag >= user_tags) {
    refuse(fmt::format("expected a tag from 0 to {}, found {}", user_tags - 1, tag));
  }
  if (data.count < 0 || (data.count > 0 && !data.data)) {
    refuse(fmt::format("expected a buffer of at least 0 elements, found {} at {}", data.count,
                       data.data ? "an address" : "a null pointer"));
  }
  key.clear();
  key.add(-200 - static_cast<std::int64_t>(kind));
  key.add(peer);
  key.add(data.count);
  key.add(static_cast<std::int64_t>(size_of(data.type)));
  CachedPlan* found = plans.find(key);
  if (!found) {
    Schedule::Header header;
    header.collective = Collective::broadcast;
    header.size = size;
    header.rank = rank;
    header.output = data.count;
    std::vector<Step> steps;
    std::vector<Region> regions;
    if (data.count > 0) {
      Step step;
      step.kind = kind;
      step.peer = peer;
      step.parts[0] = 1;
      steps.push_back(step);
      regions.push_back(contiguous(Buffer::output, 0, data.count));
    }
    const std::int64_t none[] = {0}, output[] = {data.count};
    auto plan = std::make_shared<const Plan>(Schedule(header, steps, regions), size_of(data.type),
                                             none, output);
    found = &keep(std::make_unique<CachedPlan>(std::move(plan), "message", 0));
  }
  std::byte* const bases[] = {nullptr, static_cast<std::byte*>(data.data)};
  operation.execution() = execute(*found, {}, bases);
  operation.begin(name(kind).data(), 0, tag);
}

void Communicator::State::prepare_schedule(Operation& operation, const Schedule& schedule,
                                           ConstData input, Data output, Op op) {
  require_usable();
  free_next_tag();
  const Schedule::Header& header = schedule.header();
  if (header.size != size || header.rank != rank) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("expected a schedule for rank {} of {}, found one for rank {} of {}",
                            rank, size, header.rank, header.size));
  }
  const Datatype type = header.output > 0 ? output.type : input.type;
  if (header.input > 0 && header.output > 0 && input.type != output.type) {
    throw Error(ErrorCode::invalid_argument, fmt::format("expected an input of {}, found {}",
                                                         name(output.type), name(input.type)));
  }
  for (const auto& [what, data, count] :
       {std::tuple("input", input.data, input.count),
        std::tuple("output", static_cast<const void*>(output.data), output.count)}) {
    if (count > 0 && !data) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("expected an {} of {} elements, found a null pointer", what, count));
    }
  }
  const auto *in = static_cast<const std::byte*>(input.data),
             *out = static_cast<const std::byte*>(output.data);
  const auto bytes = static_cast<std::int64_t>(size_of(type));
  if (header.input > 0 && header.output > 0 && in < out + header.output * bytes &&
      out < in + header.input * bytes) {
    throw Error(ErrorCode::invalid_argument,
                "expected input and output that are apart, as the schedule has both, found them "
                "overlapping");
  }
  const std::int64_t inputs[] = {input.count}, outputs[] = {output.count};
  auto plan = std::make_shared<const Plan>(schedule, size_of(type), inputs, outputs);
  Kernels kernels;
  kernels.user = op.function;
  kernels.context = op.context;
  kernels.fold = op.kind == OpKind::user ? nullptr : host::fold(op.kind, type);
  kernels.finish = host::finish(type);
  if (!kernels.user && !kernels.fold) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("expected an operation that is defined on {}, found {}", name(type),
                            name(op.kind)));
  }
  std::byte* const bases[] = {const_cast<std::byte*>(static_cast<const std::byte*>(input.data)),
                              static_cast<std::byte*>(output.data)};
  uncached = std::make_unique<CachedPlan>(std::move(plan), header.algorithm, 0);
  operation.execution() = execute(*uncached, kernels, bases);
  const int tag = next_tag();
  operation.begin(name(header.collective).data(), sequence, tag);
}

void Communicator::State::finish_oldest() {
  for (Operation* const operation : under_way) {
    if (operation->number() + static_cast<std::uint64_t>(operation_tags) > sequence + 1) return;
    Waiting waiting(*transport, options.timeout);
    std::size_t completed = operation->completed();
    while (!operation->finished() && !operation->failed()) {
      family->operations.advance(busy);
      if (const std::size_t now = operation->completed(); now != completed) {
        completed = now;
        waiting.progressed();
      } else if (!waiting.again()) {
        try {
          operation->fail_timeout();
        } catch (const Error& error) {
          const Error named = operation->named(error);
          broken = named.what();
          throw named;
        }
      }
    }
  }
}

void Communicator::State::wait(Operation& operation) {
  Waiting waiting(*transport, options.timeout);
  try {
    operation.rethrow();
    std::size_t completed = operation.completed();
    while (!operation.step()) {
      if (const std::size_t now = operation.completed(); now != completed) {
        completed = now;
        waiting.progressed();
        continue;
      }
      if (!waiting.spinning()) family->operations.advance(busy);
      operation.rethrow();
      if (!waiting.again()) operation.fail_timeout();
    }
  } catch (...) {
    fail(operation);
  }
}

void Communicator::State::run_blocking() {
  try {
    blocking.start();
  } catch (...) {
    fail(blocking);
  }
  wait(blocking);
}

void Communicator::State::fail(Operation& operation) {
  try {
    throw;
  } catch (const Error& error) {
    const Error named = operation.named(error);
    if (error.code != ErrorCode::mismatch && error.code != ErrorCode::invalid_argument) {
      broken = named.what();
    }
    operation.abandon();
    throw named;
  } catch (...) {
    broken = "an operation was interrupted by an exception";
    operation.abandon();
    throw;
  }
}

void Communicator::State::agree_options() {
  constexpr std::size_t bytes = 2048;
  std::vector<std::byte> record(bytes);
  if (rank == 0) {
    std::string text = options.check ? "1" : "0";
    for (const Choice& choice : options.choices)
      text += fmt::format("\n{}\n{}", choice.algorithm, choice.segment);
    if (text.size() >= bytes) {
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("expected choices of less than {} characters, found {}", bytes, text.size()));
    }
    std::memcpy(record.data(), text.data(), text.size());
  }
  std::byte* const bases[] = {nullptr, record.data()};
  blocking.execution() = internal(Collective::broadcast, "binomial", bytes, bases);
  const int tag = next_tag();
  blocking.begin("agreement on options", sequence, tag);
  run_blocking();
  const std::string text(reinterpret_cast<const char*>(record.data()));
  options.check = text[0] == '1';
  std::size_t at = 1;
  const auto line = [&] {
    const std::size_t begin = at + 1;
    at = std::min(text.find('\n', begin), text.size());
    return text.substr(begin, at - begin);
  };
  for (Choice& choice : options.choices) {
    choice.algorithm = line();
    choice.segment = std::stoll(line());
  }
}

// --- requests
// ----------------------------------------------------------------------------------------

Request::Request() = default;
Request::Request(std::unique_ptr<Operation, Release> operation)
    : operation_(std::move(operation)) {}
Request::Request(Request&&) noexcept = default;
Request& Request::operator=(Request&&) noexcept = default;
Request::~Request() = default;

bool Request::test() {
  if (!operation_) return true;
  Communicator::State& state = *operation_->keep_alive;
  {
    const InUse in_use(*state.busy);
    state.family->operations.advance(state.busy);
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
  operation->listed = false;
  if (!operation->finished()) {
    try {
      if (std::uncaught_exceptions() > 0 || !state->broken.empty()) {
        state->broken = "a request was destroyed before it was complete";
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

// --- persistent calls
// --------------------------------------------------------------------------------

struct PersistentCall::State {
  std::shared_ptr<Communicator::State> communicator;
  Call call;
  CachedPlan* plan = nullptr;
  Kernels kernels;
  std::vector<std::byte*> bases;

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
  communicator.run_blocking();
}
Request PersistentCall::start() { return Communicator(state_->communicator).start(state_->call); }

// --- communicator
// ------------------------------------------------------------------------------------

Communicator::Communicator(std::unique_ptr<Transport> transport, Options options)
    : state_(std::make_shared<State>(std::move(transport), std::move(options),
                                     std::make_shared<Family>())) {
  state_->agree_options();
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

Communicator Communicator::split(int color, int key) {
  const InUse in_use(*state_->busy);
  state_->require_usable();
  std::unique_ptr<Transport> transport = state_->transport->split(color, key);
  if (!transport) return Communicator(std::shared_ptr<State>());
  return Communicator(
      std::make_shared<State>(std::move(transport), state_->options, state_->family));
}

void Communicator::run(const Call& call) { state_->run(call, call.choice); }

void Communicator::State::run(const Call& call, const Choice& choice) {
  const InUse in_use(*busy);
  prepare(blocking, call, choice);
  run_blocking();
}

namespace {

std::unique_ptr<Operation> take_operation(auto& state) {
  if (state.idle_operations.empty()) {
    state.idle_operations.reserve(16);
    return std::make_unique<Operation>(state);
  }
  auto operation = std::move(state.idle_operations.back());
  state.idle_operations.pop_back();
  return operation;
}

}  // namespace

Request Communicator::start(const Call& call) { return state_->start(call, call.choice); }

Request Communicator::State::start(const Call& call, const Choice& choice) {
  const InUse in_use(*busy);
  std::unique_ptr<Operation> operation = take_operation(*this);
  prepare(*operation, call, choice);
  operation->keep_alive = shared_from_this();
  under_way.push_back(operation.get());
  family->operations.add(operation.get());
  Request request(std::unique_ptr<Operation, Request::Release>(operation.release()));
  request.operation_->start();
  return request;
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
  const Problem problem = state_->arguments.problem(state_->rank, state_->size);
  Selection selected = state_->selection(problem, call.choice);
  if (!selected.algorithm->pipelined) selected.segment = 0;
  return scheduled(selected, problem, size_of(state_->arguments.type));
}

Choice Communicator::chosen(const Call& call) {
  const InUse in_use(*state_->busy);
  state_->arguments.bind(call, state_->rank, state_->size);
  const CachedPlan& plan = state_->cached_plan(call.choice);
  return {plan.algorithm, plan.segment};
}

void Communicator::progress() {
  const InUse in_use(*state_->busy);
  state_->family->operations.advance(state_->busy);
}

void Communicator::send(ConstData data, int peer, int tag) { start_send(data, peer, tag).wait(); }
void Communicator::recv(Data data, int peer, int tag) { start_recv(data, peer, tag).wait(); }

Request Communicator::start_message(StepKind kind, Data data, int peer, int tag) {
  const InUse in_use(*state_->busy);
  std::unique_ptr<Operation> operation = take_operation(*state_);
  state_->prepare_message(*operation, kind, data, peer, tag);
  operation->keep_alive = state_;
  state_->family->operations.add(operation.get());
  Request request(std::unique_ptr<Operation, Request::Release>(operation.release()));
  request.operation_->start();
  return request;
}
Request Communicator::start_send(ConstData data, int peer, int tag) {
  return start_message(StepKind::send, {const_cast<void*>(data.data), data.count, data.type}, peer,
                       tag);
}
Request Communicator::start_recv(Data data, int peer, int tag) {
  return start_message(StepKind::recv, data, peer, tag);
}

// --- collectives, by name
// ----------------------------------------------------------------------------

namespace {
SimpleCall simple(Collective collective, const ConstData& in, const Data& out, const Op& op = {},
                  int root = 0) {
  return {collective, in.type, out.type, op.kind, root, in.count, out.count};
}
}  // namespace

void Communicator::broadcast(Data data, int root, const Choice& choice) {
  state_->run_simple(simple(Collective::broadcast, {}, data, {}, root), nullptr, data.data, {},
                     choice, [&] { return calls::broadcast(data, root); });
}
void Communicator::reduce(ConstData input, Data output, Op op, int root, const Choice& choice) {
  state_->run(calls::reduce(input, output, op, root), choice);
}
void Communicator::all_reduce(ConstData input, Data output, Op op, const Choice& choice) {
  state_->run_simple(simple(Collective::all_reduce, input, output, op), input.data, output.data, op,
                     choice, [&] { return calls::all_reduce(input, output, op); });
}
void Communicator::gather(ConstData input, Data output, int root, const Choice& choice) {
  state_->run(calls::gather(input, output, root), choice);
}
void Communicator::gather_v(ConstData input, Data output, std::span<const std::int64_t> counts,
                            int root, const Choice& choice) {
  Call call = calls::gather(input, output, root);
  call.recv_counts = counts;
  state_->run(call, choice);
}
void Communicator::scatter(ConstData input, Data output, int root, const Choice& choice) {
  state_->run(calls::scatter(input, output, root), choice);
}
void Communicator::scatter_v(ConstData input, Data output, std::span<const std::int64_t> counts,
                             int root, const Choice& choice) {
  Call call = calls::scatter(input, output, root);
  call.send_counts = counts;
  state_->run(call, choice);
}
void Communicator::all_gather(ConstData input, Data output, const Choice& choice) {
  state_->run_simple(simple(Collective::all_gather, input, output), input.data, output.data, {},
                     choice, [&] { return calls::all_gather(input, output); });
}
void Communicator::all_gather(const ConstTensor& input, const Tensor& output, int dim,
                              const Choice& choice) {
  state_->run(calls::all_gather(input, output, dim), choice);
}
void Communicator::all_gather_v(ConstData input, Data output, std::span<const std::int64_t> counts,
                                std::span<const std::int64_t> offsets, const Choice& choice) {
  Call call = calls::all_gather(input, output);
  call.recv_counts = counts;
  call.recv_offsets = offsets;
  state_->run(call, choice);
}
void Communicator::reduce_scatter(ConstData input, Data output, Op op, const Choice& choice) {
  state_->run_simple(simple(Collective::reduce_scatter, input, output, op), input.data, output.data,
                     op, choice, [&] { return calls::reduce_scatter(input, output, op); });
}
void Communicator::reduce_scatter_v(ConstData input, Data output,
                                    std::span<const std::int64_t> counts, Op op,
                                    const Choice& choice) {
  Call call = calls::reduce_scatter(input, output, op);
  call.send_counts = counts;
  state_->run(call, choice);
}
void Communicator::all_to_all(ConstData input, Data output, const Choice& choice) {
  state_->run_simple(simple(Collective::all_to_all, input, output), input.data, output.data, {},
                     choice, [&] { return calls::all_to_all(input, output); });
}
void Communicator::all_to_all(const ConstTensor& input, const Tensor& output, int scatter_dim,
                              int gather_dim, const Choice& choice) {
  state_->run(calls::all_to_all(input, output, scatter_dim, gather_dim), choice);
}
void Communicator::all_to_all_v(ConstData input, std::span<const std::int64_t> send_counts,
                                Data output, std::span<const std::int64_t> recv_counts,
                                std::span<const std::int64_t> send_offsets,
                                std::span<const std::int64_t> recv_offsets, const Choice& choice) {
  Call call = calls::all_to_all(input, output);
  call.send_counts = send_counts;
  call.recv_counts = recv_counts;
  call.send_offsets = send_offsets;
  call.recv_offsets = recv_offsets;
  state_->run(call, choice);
}
void Communicator::scan(ConstData input, Data output, Op op, const Choice& choice) {
  state_->run(calls::scan(input, output, op), choice);
}
void Communicator::exscan(ConstData input, Data output, Op op, const Choice& choice) {
  state_->run(calls::exscan(input, output, op), choice);
}
void Communicator::barrier(const Choice& choice) {
  state_->run_simple(simple(Collective::barrier, {}, {}), &state_->arguments.token, nullptr, {},
                     choice, [] { return calls::barrier(); });
}

void Communicator::broadcast(std::span<const Data> tensors, int root, const Choice& choice) {
  Call call = list_call(Collective::broadcast, tensors);
  call.root = root;
  state_->run(call, choice);
}
void Communicator::all_reduce(std::span<const Data> tensors, Op op, const Choice& choice) {
  start_all_reduce(tensors, op, choice).wait();
}
Request Communicator::start_all_reduce(std::span<const Data> tensors, Op op, const Choice& choice) {
  Call call = list_call(Collective::all_reduce, tensors);
  call.op = op;
  return state_->start(call, choice);
}

Request Communicator::start_broadcast(Data data, int root, const Choice& choice) {
  return state_->start(calls::broadcast(data, root), choice);
}
Request Communicator::start_reduce(ConstData input, Data output, Op op, int root,
                                   const Choice& choice) {
  return state_->start(calls::reduce(input, output, op, root), choice);
}
Request Communicator::start_all_reduce(ConstData input, Data output, Op op, const Choice& choice) {
  return state_->start(calls::all_reduce(input, output, op), choice);
}
Request Communicator::start_all_reduce(Data data, Op op, const Choice& choice) {
  return start_all_reduce(data, data, op, choice);
}
Request Communicator::start_gather(ConstData input, Data output, int root, const Choice& choice) {
  return state_->start(calls::gather(input, output, root), choice);
}
Request Communicator::start_scatter(ConstData input, Data output, int root, const Choice& choice) {
  return state_->start(calls::scatter(input, output, root), choice);
}
Request Communicator::start_all_gather(ConstData input, Data output, const Choice& choice) {
  return state_->start(calls::all_gather(input, output), choice);
}
Request Communicator::start_reduce_scatter(ConstData input, Data output, Op op,
                                           const Choice& choice) {
  return state_->start(calls::reduce_scatter(input, output, op), choice);
}
Request Communicator::start_all_to_all(ConstData input, Data output, const Choice& choice) {
  return state_->start(calls::all_to_all(input, output), choice);
}
Request Communicator::start_all_to_all(const ConstTensor& input, const Tensor& output,
                                       int scatter_dim, int gather_dim, const Choice& choice) {
  return state_->start(calls::all_to_all(input, output, scatter_dim, gather_dim), choice);
}
Request Communicator::start_scan(ConstData input, Data output, Op op, const Choice& choice) {
  return state_->start(calls::scan(input, output, op), choice);
}
Request Communicator::start_exscan(ConstData input, Data output, Op op, const Choice& choice) {
  return state_->start(calls::exscan(input, output, op), choice);
}
Request Communicator::start_barrier(const Choice& choice) {
  return state_->start(calls::barrier(), choice);
}

}  // namespace baton
