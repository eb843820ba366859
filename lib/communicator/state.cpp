#include "state.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <tuple>
#include <utility>

#include "../base/raise.hpp"
#include "../base/supervision.hpp"
#include "baton/checked.hpp"
#include "baton/memory.hpp"
#include "device_calls.hpp"
#include "exchange.hpp"
#include "survivors.hpp"

namespace baton::communicator {

State::State(std::unique_ptr<Transport> transport, Options options)
    : context(std::move(transport), std::move(options)),
      planner(context),
      launcher(context, planner, recording, std::make_shared<Family>()) {}

State::State(std::unique_ptr<Transport> transport, const State& like)
    : context(std::move(transport), like.context),
      planner(context),
      launcher(context, planner, recording, like.launcher.shared_family()) {}

State::State(std::unique_ptr<Transport> transport, Options options, const State& relative)
    : context(std::move(transport), std::move(options)),
      planner(context),
      launcher(context, planner, recording, relative.launcher.shared_family()) {}

State::~State() {
  recording.finish_trace(*this);
  if (!launcher.broken().empty() && context.transport) context.transport->expect_strays();
}

namespace {

/// Throws the sentence of all ranks about a communicator that was not made in time. Pages are not
/// known yet, so ranks ask each other by messages. A rank that came later than this one, but before
/// this one's timeout, asks within a further timeout.
[[noreturn]] void fail_unmade(const Error& own, Transport& transport, const Options& options) {
  constexpr std::uint32_t turn = 0;  // shrink() counts from 1
  const std::vector<int> absent = Survivors(transport, transport.capabilities().tags - 1, turn,
                                            {options.timeout, [](int) { return false; }})
                                      .absent();
  const std::string who =
      absent.empty()
          ? "though all ranks answer"
          : fmt::format("{} {} {}: not come yet, stopped, ended, or waiting with a longer timeout",
                        absent.size() == 1 ? "rank" : "ranks", fmt::join(absent, ", "),
                        absent.size() == 1 ? "does not answer" : "do not answer");
  Error unmade(ErrorCode::timeout,
               fmt::format("communicator '{}' of {} ranks cannot be made: no progress for {} s: {}",
                           options.name.empty() ? "world" : options.name, transport.size(),
                           static_cast<double>(options.timeout.count()) / 1000, who));
  unmade.rank = transport.rank();
  unmade.peer = own.peer;
  unmade.operation = own.operation;
  unmade.step = own.step;
  throw unmade;
}

}  // namespace

std::shared_ptr<State> State::first(std::unique_ptr<Transport> transport, const Options& options,
                                    bool checksums) {
  Transport& messages = *transport;  // without checksums, which not all ranks may know of yet
  auto state = std::make_shared<State>(std::move(transport), options);
  try {
    state->agree_options();
    if (checksums && state->context.options.check > 1) state = with_checksums(std::move(state));
    state->open_watch();
  } catch (const Error& error) {
    if (error.code != ErrorCode::timeout) throw;
    fail_unmade(error, messages, options);
  }
  return state;
}

std::shared_ptr<State> State::with_checksums(std::shared_ptr<State> state) {
  auto checked =
      std::make_shared<State>(checked_transport(std::move(state->context.transport)), *state);
  checked->context.options.trace = state->context.options.trace;
  return checked;
}

void State::join_recording(const State& whole) {
  auto session = whole.recording.active_session();
  if (!session) return;
  const auto members = gathered(static_cast<std::uint64_t>(session->rank));
  recording.join(std::move(session), {members.begin(), members.end()}, context);
}

void State::bind(const Call& call, const Choice& choice, Work& work) {
  arguments.bind(call, context.rank, context.size);
  if (device) device->check_data(arguments);
  work.plan = &planner.plan(arguments, choice);
  choose_kernels(call.collective, call.op, arguments.type, work.kernels);
  work.bases = arguments.bases;
  work.recorded = RecordedCall{call.collective, arguments.type, call.op.kind};
  work.shown = arguments.shown();
  work.shown.text = work.plan->label;
}

void State::set_name(std::string_view name) {
  const InUse in_use(launcher.busy());
  if (name.empty())
    throw Error(ErrorCode::invalid_argument, "set_name: expected a name, found an empty one");
  launcher.watch().rename(name);
}

void State::prepare(Operation& operation, const Call& call, const Choice& choice,
                    const Error* wrong) {
  launcher.require_usable();
  launcher.free_next_tag();
  Work work{.name = name(call.collective).data()};
  work.shown.kind = status::Call::Kind::collective;
  work.shown.collective = static_cast<std::uint8_t>(call.collective);
  const auto load = [&] {
    if (wrong) throw *wrong;
    bind(call, choice, work);
    launcher.load(operation, work);
  };
  if (!context.options.check) {
    load();
  } else {
    const auto compare = [&](const Error* wrong) {
      operation.compare_first(std::make_unique<Comparison>(context, planner, launcher.runs(),
                                                           arguments, choice, wrong));
    };
    try {
      load();
      compare(nullptr);
    } catch (const Error& error) {
      compare(&error);
    }
  }
  launcher.enter(operation, work);
}

void State::run(const Call& call, const Choice& choice) {
  const InUse in_use(launcher.busy());
  prepare(launcher.blocking(), call, choice);
  launcher.run_blocking();
}

Request State::start(const Call& call, const Choice& choice) {
  const InUse in_use(launcher.busy());
  std::unique_ptr<Operation> operation = launcher.take_operation();
  prepare(*operation, call, choice);
  return start(std::move(operation), true);
}

Request State::request(std::unique_ptr<Operation> operation) {
  operation->keep_alive = shared_from_this();
  return Request(std::unique_ptr<Operation, Request::Release>(operation.release()));
}

Request State::start(std::unique_ptr<Operation> operation, bool ordered) {
  Operation& started = *operation;
  Request request = this->request(std::move(operation));
  try {
    launcher.keep(started, ordered);
    started.start();
  } catch (...) {
    launcher.fail(started);
  }
  return request;
}

std::function<void()> State::missing(std::vector<int> ranks, std::string what) {
  using Clock = std::chrono::steady_clock;
  return [this, absence = Absence(), ranks = std::move(ranks), what = std::move(what),
          begin = Clock::now()]() mutable {
    for (const int rank : ranks)
      if (absence.lasts(rank, launcher.watch().gone(rank)))
        base::raise(ErrorCode::transport,
                    fmt::format("{} cannot complete: rank {}: {}", what, rank,
                                status::describe(launcher.watch().condition(rank))),
                    {.rank = context.rank, .peer = rank});
    const auto timeout = context.options.timeout;
    if (timeout.count() <= 0 || Clock::now() - begin <= timeout) return;
    std::string standings;
    for (const int rank : ranks) {
      const status::Condition where = launcher.watch().condition(rank);
      if (where.life == status::Life::stopped || where.life == status::Life::ended)
        standings += fmt::format("; rank {}: {}", rank, status::describe(where));
    }
    base::raise(ErrorCode::timeout,
                fmt::format("{} cannot complete within {} s{}", what,
                            static_cast<double>(timeout.count()) / 1000, standings),
                {.rank = context.rank});
  };
}

namespace {

/// What a rank tells the others about its split.
std::uint64_t place(int color, int key) {
  return std::uint64_t{static_cast<std::uint32_t>(color)} << 32 | static_cast<std::uint32_t>(key);
}

/// The ranks with this color, as split() orders them.
std::vector<int> members_of(int color, std::span<const std::uint64_t> places) {
  std::vector<int> members;
  for (std::size_t r = 0; r < places.size(); ++r)
    if (static_cast<int>(places[r] >> 32) == color) members.push_back(static_cast<int>(r));
  std::ranges::stable_sort(members, {}, [&](int rank) {
    return static_cast<int>(places[static_cast<std::size_t>(rank)]);
  });
  return members;
}

}  // namespace

std::shared_ptr<State> State::making(std::uint64_t communicator,
                                     const std::function<std::shared_ptr<State>()>& make) {
  try {
    std::shared_ptr<State> made = make();
    if (made) made->launcher.watch().made();
    return made;
  } catch (const Error& error) {
    launcher.watch().give_up_making(communicator, error.what(), error.code);
    throw;
  } catch (const std::exception& error) {
    launcher.watch().give_up_making(communicator, error.what(), ErrorCode::transport);
    throw;
  }
}

std::shared_ptr<State> State::split(int color, int key, std::optional<Options> own) {
  launcher.require_usable();
  const std::uint64_t number = ++splits_;
  return making(name_of_part(number, color),
                [&] { return make_part(number, color, key, std::move(own)); });
}

// The transport's split() waits without limit, so all ranks must have come.
std::unique_ptr<Transport> State::split_transport(int color, int key) {
  Exchange exchange(launcher, context, "split", context.options.timeout);
  try {
    const base::Supervision supervision([&] { exchange.check(); });
    return context.transport->split(color, key);
  } catch (const Error& error) {
    const Error told = exchange.told(error);
    launcher.break_off(told.what());
    throw told;
  }
}

std::shared_ptr<State> State::make_part(std::uint64_t number, int color, int key,
                                        std::optional<Options> own) {
  const std::vector<std::uint64_t> places = gathered(place(color, key), "split");
  std::unique_ptr<Transport> transport = split_transport(color, key);
  if (!transport) return nullptr;
  const std::vector<int> members = members_of(color, places);
  if (!own) {
    auto made = std::make_shared<State>(std::move(transport), *this);
    made->open_watch(*this, number, color, members);
    made->join_recording(*this);
    return made;
  }
  auto made = std::make_shared<State>(std::move(transport), *std::move(own), *this);
  made->open_watch(*this, number, color, members);
  made->agree_options();
  if (made->context.options.check > 1 && context.options.check < 2) {
    made = with_checksums(std::move(made));
    made->open_watch(*this, number, color, members);
  }
  if (made->context.options.trace.empty())
    made->join_recording(*this);
  else
    made->recording.start(*made, made->context.options.trace_events);
  return made;
}

namespace {

/// Shows that this rank is in shrink(), and so makes no further call of a communicator that is
/// broken: of that one for good.
class InShrink {
 public:
  explicit InShrink(Launcher& launcher) : launcher_(launcher) {
    launcher.watch().show_shrink(true);
  }
  ~InShrink() {
    if (launcher_.broken().empty()) launcher_.watch().show_shrink(false);
  }
  InShrink(const InShrink&) = delete;
  InShrink& operator=(const InShrink&) = delete;

 private:
  Launcher& launcher_;
};

}  // namespace

std::vector<int> State::agree_on_survivors(std::chrono::milliseconds patience) {
  Watch& watch = launcher.watch();
  const InShrink in_shrink(launcher);
  std::vector<int> members =
      Survivors(*context.transport, context.can.tags - 1, shrunk_,
                {patience, [&](int rank) { return watch.gone(rank); },
                 [&](int rank) { return watch.shrinks(rank) && watch.runs(rank); },
                 [&] { return watch.left_out(shrunk_); }})
          .agree();
  for (int r = 0; r < context.size; ++r)
    if (std::ranges::find(members, r) == members.end()) watch.leave_out(r, shrunk_);
  return members;
}

std::shared_ptr<State> State::shrink(std::chrono::milliseconds patience) {
  if (!context.can.subgroups)
    base::raise(ErrorCode::unsupported,
                fmt::format("shrink: expected a transport that makes subgroups, found \"{}\"",
                            context.can.name),
                {.rank = context.rank});
  if (patience.count() <= 0)
    base::refuse("shrink: expected a patience of more than 0 ms, found {}", patience.count());
  patience = limited(patience);
  ++shrunk_;
  Watch& watch = launcher.watch();
  const Shown shown(watch, internal_call("shrink"));
  const std::vector<int> members = agree_on_survivors(patience);
  const base::Supervision supervision(
      missing(members, fmt::format("shrink of communicator '{}'", launcher.watch().label())));
  return making(name_of_survivors(shrunk_), [&] {
    auto made = std::make_shared<State>(
        context.transport->subgroup(members, static_cast<int>(shrunk_ % 32768)), *this);
    made->open_watch(*this, shrunk_, members);
    return made;
  });
}

Choice State::chosen(const Call& call) {
  const InUse in_use(launcher.busy());
  arguments.bind(call, context.rank, context.size);
  if (device) device->check_data(arguments);
  const execute::CachedPlan& plan = planner.plan(arguments, call.choice, Planner::Purpose::ask);
  return {plan.algorithm, plan.segment};
}

namespace {

void check_tag(std::string_view what, int tag) {
  if (tag < 0 || tag >= user_tags)
    base::refuse("{}: expected a tag from 0 to {}, found {}", what, user_tags - 1, tag);
}

}  // namespace

int State::probe(int tag) {
  launcher.require_usable();
  check_tag("probe", tag);
  if (!context.can.probes)
    base::raise(
        ErrorCode::unsupported,
        fmt::format("probe: expected a transport that probes, found \"{}\"", context.can.name),
        {.rank = context.rank});
  return context.transport->probe(tag);
}

Request State::start_message(StepKind kind, Data data, int peer, int tag) {
  const InUse in_use(launcher.busy());
  launcher.require_usable();
  const auto refuse = [&](const std::string& sentence) {
    base::refuse("{}: {}", name(kind), sentence);
  };
  if (peer < 0 || peer >= context.size)
    refuse(fmt::format("expected a peer from 0 to {}, found {}", context.size - 1, peer));
  check_tag(name(kind), tag);
  const std::size_t element_bytes = message_element_bytes(name(kind), data.type);
  if (data.count < 0 || (data.count > 0 && !data.data)) {
    refuse(fmt::format("expected a buffer of at least 0 elements, found {} at {}", data.count,
                       data.data ? "an address" : "a null pointer"));
  }
  std::byte* const bases[] = {nullptr, static_cast<std::byte*>(data.data)};
  std::unique_ptr<Operation> operation = launcher.take_operation();
  launcher.load(*operation, {&planner.message(kind, peer, data.count, element_bytes), {}, bases});
  operation->enter(name(kind).data(), 0, tag, message_call(kind, peer, tag, data.count, data.type));
  if (kind == StepKind::recv) operation->receive_from(peer);
  if (data.count > 0) recording.record_message(*operation->execution().run, kind, peer, tag, data);
  return start(std::move(operation), false);
}

namespace {

/// Throws Error(invalid_argument) unless the schedule is this rank's and fits the buffers.
void check_schedule(const Schedule& schedule, const Context& context, ConstData input, Data output,
                    std::size_t element_bytes) {
  using base::refuse;
  const Schedule::Header& header = schedule.header();
  if (header.size != context.size || header.rank != context.rank) {
    refuse("expected a schedule for rank {} of {}, found one for rank {} of {}", context.rank,
           context.size, header.rank, header.size);
  }
  check_lanes(schedule);
  if (header.input > 0 && header.output > 0 && input.type != output.type) {
    refuse("expected an input of {}, found {}", name(output.type), name(input.type));
  }
  for (const auto& [what, data, count] :
       {std::tuple("input", input.data, input.count),
        std::tuple("output", static_cast<const void*>(output.data), output.count)}) {
    if (count > 0 && !data)
      refuse("expected an {} of {} elements, found a null pointer", what, count);
  }
  const auto *in = static_cast<const std::byte*>(input.data),
             *out = static_cast<const std::byte*>(output.data);
  const auto bytes = static_cast<std::int64_t>(element_bytes);
  if (header.input > 0 && header.output > 0 && in < out + header.output * bytes &&
      out < in + header.input * bytes) {
    refuse(
        "expected input and output that are apart, as the schedule has both, found them "
        "overlapping");
  }
}

}  // namespace

void State::run_schedule(const Schedule& schedule, ConstData input, Data output, Op op) {
  const InUse in_use(launcher.busy());
  launcher.require_usable();
  const Schedule::Header& header = schedule.header();
  const Datatype type = header.output > 0 ? output.type : input.type;
  const std::size_t element_bytes = element_bytes_of(name(header.collective), type, &op);
  check_schedule(schedule, context, input, output, element_bytes);
  execute::CachedPlan& plan =
      planner.unregistered(schedule, element_bytes, input.count, output.count);
  // A user's schedule may fold and divide in any collective.
  execute::Kernels applied;
  choose_kernels(Collective::all_reduce, op, type, applied);
  applied.divide = host::divide(type);
  if (!applied.user && !applied.fold) {
    base::refuse("expected an operation that is defined on {}, found {}", name(type),
                 name(op.kind));
  }
  if (!applied.divide && std::ranges::count(schedule.steps(), StepKind::divide, &Step::kind) > 0)
    base::refuse("expected a schedule that does not divide {}, found one that does", name(type));
  std::byte* const bases[] = {const_cast<std::byte*>(static_cast<const std::byte*>(input.data)),
                              static_cast<std::byte*>(output.data)};
  status::Call shown;
  shown.kind = status::Call::Kind::collective;
  shown.collective = static_cast<std::uint8_t>(header.collective);
  shown.type = static_cast<std::uint8_t>(type);
  shown.text = plan.label;
  launcher.run({&plan, applied, bases, name(header.collective).data(),
                RecordedCall{header.collective, type, op.kind}, shown});
}

}  // namespace baton::communicator
