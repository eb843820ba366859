#include "state.hpp"
#include "../memory/residence.hpp"

#include <fmt/core.h>

#include <cstdio>
#include <thread>
#include <utility>

namespace baton {

Communicator::State::State(std::unique_ptr<Transport> made, Options given,
                           std::shared_ptr<Family> shared)
    : transport(std::move(made)),
      options(std::move(given)),
      registry(options.registry ? options.registry
                                : std::make_shared<const Registry>(Registry::builtin())),
      family(std::move(shared)),
      can(transport->capabilities()),
      rank(transport->rank()),
      size(transport->size()),
      hosts(host_grouping(can.hosts)),
      waits(transport->blocking() != nullptr && !can.concurrent),
      operation_tags((can.tags - user_tags) / lanes),
      busy(can.concurrent ? &own_busy : &family->busy),
      plans(static_cast<std::size_t>(options.plans)) {
  options.registry = registry;
}

Communicator::State::State(std::unique_ptr<Transport> made, const State& like,
                           std::unique_ptr<FusedTransport> fused)
    : State(std::move(made), like.options, like.family) {
  if (like.on_device)
    on_device = std::make_unique<DevicePart>(like.on_device->device, std::move(fused));
  table = like.table;
  options.trace.clear();  // it is the one that records which writes
  if (table) section = table->find(scope_of(*transport, hosts.get()));
}

Communicator::State::~State() { finish_trace(); }

void Communicator::State::require_usable() const {
  if (broken.empty()) return;
  Error error(
      ErrorCode::transport,
      fmt::format("expected a usable communicator, found one that failed earlier: {}", broken));
  error.rank = rank;
  throw error;
}

Problem Communicator::State::problem() const {
  Problem problem = arguments.problem(rank, size);
  problem.hosts = hosts;
  return problem;
}

Selection Communicator::State::selection(const Problem& problem, const Choice& choice) const {
  // Where counts are not known, they must not decide.
  Selection selected =
      arguments.counts_at_root
          ? Selection{registry->of(problem.collective).front(), 0,
                      "the root alone knows the counts"}
          : select(*registry, problem, arguments.element_bytes, choice,
                   options.choices[static_cast<std::size_t>(problem.collective)], section, network);
  if (options.explain && rank == 0) {
    std::fputs(fmt::format("baton: {} of {} {} on {} ranks: {}, segment {} B ({})\n",
                           name(problem.collective), problem.count, name(arguments.type), size,
                           selected.algorithm->name, selected.segment, selected.reason)
                   .c_str(),
               stderr);
  }
  return selected;
}

void Communicator::State::check_reach() const {
  for (const std::byte* const data : arguments.bases) {
    if (data && in_device_memory(data))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: expected buffers that the host can reach, found one in a CUDA "
                              "device's memory (those are for StreamCommunicator)",
                              name(arguments.collective)));
  }
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
  if (!on_device) check_reach();
  const Problem problem = this->problem();
  const std::size_t bytes = arguments.element_bytes;
  const Selection selected = selection(problem, choice);
  const bool fused = on_device && on_device->fused;
  auto plan = std::make_shared<const Plan>(
      fused ? fused_schedule(selected, problem) : scheduled(selected, problem, bytes), bytes,
      arguments.input_sizes, arguments.output_sizes);
  if (fused)
    return keep(std::make_unique<CachedPlan>(std::move(plan), selected.algorithm->name,
                                             selected.segment, fused_groups_of(*plan)));
  const bool of_device = on_device && problem.collective != Collective::barrier;
  return keep(std::make_unique<CachedPlan>(std::move(plan), selected.algorithm->name,
                                           selected.segment,
                                           of_device ? &on_device->queue : nullptr));
}

Choice Communicator::State::chosen(const Call& call) {
  const InUse in_use(*busy);
  arguments.bind(call, rank, size);
  const CachedPlan& plan = cached_plan(call.choice);
  return {plan.algorithm, plan.segment};
}

Execution Communicator::State::execute(CachedPlan& plan, const Kernels& kernels,
                                       std::span<std::byte* const> bases) {
  Execution execution{&plan, plan.take(options.window), kernels};
  const auto places = execution.run->bases();
  if (!execution.run->has_scratch()) {
    ScratchPool& pool = scratch_of(*execution.run);
    try {
      places[scratch_base] = pool.take(plan.plan->scratch_bytes());
      places[slot_base] = pool.take(plan.plan->slot_bytes());
    } catch (...) {
      pool.give(places[scratch_base], plan.plan->scratch_bytes());
      plan.give(std::move(execution.run));
      throw;
    }
  }
  std::copy(bases.begin(), bases.end(), places.begin() + first_tensor_base);
  return execution;
}

void Communicator::State::give_back(Execution& execution) noexcept {
  if (!execution.run) return;
  if (!execution.run->has_scratch()) {
    const auto places = execution.run->bases();
    ScratchPool& pool = scratch_of(*execution.run);
    pool.give(std::exchange(places[scratch_base], nullptr), execution.plan->plan->scratch_bytes());
    pool.give(std::exchange(places[slot_base], nullptr), execution.plan->plan->slot_bytes());
  }
  execution.plan->give(std::move(execution.run));
}

void Communicator::State::give_up(Execution& execution) noexcept {
  if (can.cancels) return give_back(execution);
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
  kernels.op = op.kind;
  kernels.type = type;
  if (op.kind == OpKind::user) {
    kernels.user = op.function;
    kernels.context = op.context;
  } else {
    kernels.fold = host::fold(op.kind, type);
    if (op.kind == OpKind::avg) kernels.divide = host::divide(type);
  }
  return kernels;
}

void Communicator::State::run_again(RepeatedCalls::Entry& entry, std::byte* input,
                                    std::byte* output) {
  const int tag = next_tag();
  try {
    const auto bases = entry.run->bases();
    bases[first_tensor_base] = input;
    bases[first_tensor_base + 1] = output;
    record(*entry.run, *entry.plan, entry.call);
    if (entry.run->scripted()) {
      if (entry.run->start_scripted(*transport, entry.kernels, tag, can.spins, may_wait())) return;
    } else {
      entry.run->start(*transport, entry.kernels, tag);
    }
    for (int i = 0; i < can.spins; ++i) {
      if (entry.run->drive()) return;
    }
  } catch (...) {
    blocking.adopt({entry.plan, std::move(entry.run), entry.kernels},
                   name(entry.call.collective()).data(), sequence, tag);
    fail(blocking);
  }
  // This takes longer: wait for it as for any other.
  blocking.adopt({entry.plan, std::move(entry.run), entry.kernels},
                 name(entry.call.collective()).data(), sequence, tag);
  wait(blocking);
}

void Communicator::State::prepare(Operation& operation, const Call& call, const Choice& choice) {
  require_usable();
  free_next_tag();
  const auto bind = [&] {
    arguments.bind(call, rank, size);
    if (on_device) check_residence();
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
  if (Execution& execution = operation.execution(); execution.run)
    record(*execution.run, *execution.plan, call.collective, arguments.type, call.op.kind);
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
  if (schedule.lanes() > lanes) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("expected a schedule of at most {} lanes, found {}", lanes, schedule.lanes()));
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
  kernels.divide = host::divide(type);
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
  record(*operation.execution().run, *uncached, header.collective, type, op.kind);
}

void Communicator::State::finish_oldest() {
  for (Operation* const operation : under_way) {
    if (operation->number() + static_cast<std::uint64_t>(operation_tags) > sequence + 1) return;
    Waiting waiting(*transport, options.timeout);
    std::size_t completed = operation->completed();
    while (!operation->finished() && !operation->failed()) {
      family->operations.advance(busy);
      if (const std::size_t now = operation->completed(); now != completed || operation->ahead()) {
        completed = now;
        waiting.progressed();
        if (operation->ahead()) std::this_thread::yield();
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

void Communicator::State::wait(Operation& operation) {
  Waiting waiting(*transport, options.timeout);
  try {
    operation.rethrow();
    std::size_t completed = operation.completed();
    while (!operation.step()) {
      if (const std::size_t now = operation.completed(); now != completed || operation.ahead()) {
        completed = now;
        waiting.progressed();
        if (!operation.ahead()) continue;
        std::this_thread::yield();
        family->operations.advance(busy);
      }
      if (!waiting.spinning()) family->operations.advance(busy);
      if (operation.finished()) return;  // of one in a stream, an error is kept
      operation.rethrow();
      if (!waiting.again()) operation.fail_timeout();
    }
  } catch (...) {
    fail(operation);
  }
}

void Communicator::State::run_blocking() {
  try {
    blocking.start(can.spins, may_wait());
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
      break_off(named.what());
    }
    operation.abandon();
    throw named;
  } catch (...) {
    break_off("an operation was interrupted by an exception");
    operation.abandon();
    throw;
  }
}

}  // namespace baton
