#include "recording.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <map>
#include <mutex>
#include <numeric>
#include <utility>

#include "../base/raise.hpp"
#include "../trace/part.hpp"
#include "baton/output_file.hpp"
#include "exchange.hpp"
#include "state.hpp"

namespace baton::communicator {
namespace {

constexpr int clock_rounds = 64;
constexpr std::chrono::milliseconds usual_patience{60000};
constexpr std::int64_t most_events = std::int64_t{1} << 30;

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

/// Bytes of the whole vector as far as this rank sees; less on a rank without the larger buffer.
std::int64_t whole_bytes(const execute::Plan& plan) {
  return std::max(plan.header().input, plan.header().output) *
         static_cast<std::int64_t>(plan.element_bytes());
}

/// An operation's name, with the program's behind it.
std::string with_recorded_name(std::string_view name) {
  const std::string& its = recorded_name();
  return its.empty() ? std::string(name) : fmt::format("{} ({})", name, its);
}

/// How to wait for the other ranks when a recording begins or ends.
tracing::Patience patience(State& state, Exchange& exchange) {
  const auto timeout = state.context.options.timeout;
  const auto at_most = timeout.count() > 0 ? timeout : usual_patience;
  return [&state, &exchange, at_most](int peer, std::chrono::milliseconds waited) {
    exchange.check(peer);
    if (waited > at_most) exchange.give_up(ErrorCode::timeout, peer);
    state.launcher.family().operations.advance(&state.launcher.busy());
  };
}

/// This rank's clock against rank 0's, if no lower rank has the same clock.
std::optional<tracing::ClockSample> compare_clocks(State& state, Exchange& exchange,
                                                   const RecordingSession& session) {
  const Context& context = state.context;
  std::optional<tracing::ClockSample> sample;
  state.launcher.free_next_tag();
  const int tag = state.launcher.next_tag();
  for (int r = 1; r < context.size; ++r) {
    if (session.clocks[static_cast<std::size_t>(r)] != r) continue;
    if (context.rank == 0)
      tracing::answer_clock(*context.transport, r, tag, clock_rounds, tracing::now,
                            patience(state, exchange));
    if (context.rank == r)
      sample = tracing::compare_clock(*context.transport, 0, tag, clock_rounds, tracing::now,
                                      patience(state, exchange));
  }
  return sample;
}

/// All ranks' parts as a trace file, on rank 0.
std::string gathered_parts(State& state, Exchange& exchange, const std::string& own) {
  Transport& transport = *state.context.transport;
  state.launcher.free_next_tag();
  const int tag = state.launcher.next_tag();
  const tracing::Patience how = patience(state, exchange);
  std::uint64_t length = own.size();
  if (state.context.rank > 0) {
    tracing::send_all(transport, 0, tag, &length, sizeof length, how);
    tracing::send_all(transport, 0, tag, own.data(), own.size(), how);
    tracing::recv_all(transport, 0, tag, nullptr, 0, how);  // all parts have arrived
    return {};
  }
  std::string all = tracing::file_head() + own;
  for (int r = 1; r < state.context.size; ++r) {
    tracing::recv_all(transport, r, tag, &length, sizeof length, how);
    const std::size_t begin = all.size();
    all.resize(begin + length);
    tracing::recv_all(transport, r, tag, all.data() + begin, length, how);
  }
  for (int r = 1; r < state.context.size; ++r)
    tracing::send_all(transport, r, tag, nullptr, 0, how);
  return all;
}

}  // namespace

void Recording::join(std::shared_ptr<RecordingSession> session, std::vector<int> members,
                     const Context& context) {
  const bool mine = static_cast<int>(members.size()) == context.size &&
                    members[static_cast<std::size_t>(context.rank)] == session->rank;
  if (!mine) {
    base::refuse(
        "expected the members of a communicator of {} ranks with rank {} of the recording in place "
        "{}, found another list of {}",
        context.size, session->rank, context.rank, members.size());
  }
  members_ = members;
  group_ = session->recorder->add_group(std::move(members));
  channels_.clear();
  session_ = std::move(session);
}

namespace {

/// A message as both ranks' program: 0 sends, 1 receives.
struct MessagePlan {
  StepKind kind;
  std::int64_t count;

  Schedule schedule() const {
    Schedule::Header header;
    header.collective = Collective::program;
    header.size = 2;
    header.rank = kind == StepKind::send ? 0 : 1;
    header.output = count;
    Step step;
    step.kind = kind;
    step.peer = 1 - header.rank;
    step.parts[0] = 1;
    return {std::move(header), {step}, {contiguous(Buffer::output, 0, count)}};
  }
};

}  // namespace

void Recording::record_message_into_session(execute::Run& run, StepKind kind, int peer, int tag,
                                            const Data& data) {
  const int own = session_->rank, other = members_[static_cast<std::size_t>(peer)];
  if (!session_->active || own == other) return;
  const auto& recorder = session_->recorder;
  Channel& channel = channels_[{kind, peer, tag}];
  if (!channel.group) {
    const bool sends = kind == StepKind::send;
    channel.group = recorder->add_channel(group_, sends ? own : other, sends ? other : own, tag);
  }
  Sent& sent = channel.plans[{data.count, data.type, recorded_name()}];
  if (!sent.plan) {
    TimedOperation operation;
    operation.name = with_recorded_name("message");
    if (data.type != Datatype::user) operation.type = name(data.type);
    operation.element_bytes = static_cast<std::int64_t>(size_of(data.type));
    operation.bytes = data.count * operation.element_bytes;
    sent.plan = std::make_shared<const MessagePlan>(MessagePlan{kind, data.count});
    sent.number = recorder->add_plan(
        *channel.group, std::move(operation), sent.plan,
        [](const void* its) { return static_cast<const MessagePlan*>(its)->schedule(); });
  }
  run.record(recorder, sent.number, channel.messages++);
}

void Recording::record_into_session(execute::Run& run, execute::CachedPlan& plan,
                                    const RecordedCall& call, std::uint64_t sequence) {
  if (!session_->active) return;
  run.record(session_->recorder, number_of(plan, call), static_cast<std::uint32_t>(sequence));
}

std::uint32_t Recording::number_of(execute::CachedPlan& cached, const RecordedCall& call) {
  const auto& recorder = session_->recorder;
  for (const execute::CachedPlan::Recorded& known : cached.recorded) {
    if (known.of(recorder) && known.type == call.type && known.op == call.op &&
        known.name == recorded_name())
      return known.number;
  }
  TimedOperation operation;
  operation.name = with_recorded_name(name(call.collective));
  operation.choice = {cached.algorithm, cached.segment};
  if (call.type != Datatype::user) operation.type = name(call.type);
  if (reducing(call.collective)) operation.op = name(call.op);
  operation.bytes = whole_bytes(*cached.plan);
  operation.element_bytes = cached.plan->element_bytes();
  const std::uint32_t number = recorder->add_plan(
      group_, std::move(operation), cached.plan,
      [](const void* plan) { return static_cast<const execute::Plan*>(plan)->schedule(); });
  cached.recorded.push_back({recorder, call.type, call.op, recorded_name(), number});
  return number;
}

void Recording::start(State& state, std::int64_t events) {
  if (active_session()) {
    base::refuse(
        "start_recording: expected a communicator that is not being recorded, found one that is");
  }
  if (events < 1 || events > most_events) {
    base::refuse("start_recording: expected room for 1 to {} events, found {}", most_events,
                 events);
  }
  state.launcher.require_usable();
  const Context& context = state.context;
  auto session = std::make_shared<RecordingSession>(static_cast<std::size_t>(events));
  session->rank = context.rank;
  session->ranks = context.size;
  const auto& host_of = context.can.hosts;
  session->host = host_of.empty() ? 0 : host_of[static_cast<std::size_t>(context.rank)];
  const auto identities =
      state.gathered(tracing::clock_identity(session->host), "start of a recording");
  for (const std::uint64_t identity : identities) {
    const auto first = std::find(identities.begin(), identities.end(), identity);
    session->clocks.push_back(static_cast<int>(first - identities.begin()));
  }
  Exchange exchange(state.launcher, context, "start of a recording", {});
  try {
    session->before = compare_clocks(state, exchange, *session);
  } catch (const Error& error) {
    const Error told = exchange.told(error);
    state.launcher.break_off(told.what());
    throw told;
  }
  std::vector<int> all(static_cast<std::size_t>(context.size));
  std::iota(all.begin(), all.end(), 0);
  join(std::move(session), std::move(all), context);
  begin_computations(session_);
  began_ = true;
}

std::string Recording::own_part(const std::optional<tracing::ClockSample>& after) {
  session_->active = began_ = false;
  tracing::Part part = session_->recorder->take(session_->rank, session_->ranks);
  part.host = session_->host;
  part.host_name = host_name();
  part.clock = session_->clock();
  part.before = session_->before;
  part.after = after;
  return tracing::written(part);
}

std::string Recording::stop(State& state) {
  state.launcher.require_usable();
  if (!began_) {
    base::refuse(
        "stop_recording: expected a communicator that start_recording() was called on, found one "
        "that was not, or was stopped");
  }
  Exchange exchange(state.launcher, state.context, "end of a recording", {});
  try {
    const auto after = compare_clocks(state, exchange, *session_);
    return gathered_parts(state, exchange, own_part(after));
  } catch (const Error& error) {
    session_->active = began_ = false;
    const Error told = exchange.told(error);
    state.launcher.break_off(told.what());
    throw told;
  }
}

void Recording::finish_trace(State& state) noexcept {
  const Context& context = state.context;
  if (!began_ || context.options.trace.empty()) return;
  try {
    std::string why = state.launcher.broken(), own;
    if (why.empty() && !context.transport->alive()) why = "its messages have come to their end";
    if (why.empty()) {
      try {
        Exchange exchange(state.launcher, context, "end of a recording", {});
        const auto after = compare_clocks(state, exchange, *session_);
        own = own_part(after);
        const std::string all = gathered_parts(state, exchange, own);
        if (context.rank == 0) write_file(context.options.trace, all);
        return;
      } catch (const Error& error) {
        why = error.what();
      }
    }
    if (own.empty()) own = own_part({});
    const std::string file = fmt::format("{}.rank{}", context.options.trace, context.rank);
    write_file(file, tracing::file_head() + own);
    std::fputs(fmt::format("baton: rank {} writes its part of the recording to {}, since {}\n",
                           context.rank, file, why)
                   .c_str(),
               stderr);
  } catch (const std::exception& error) {
    std::fputs(fmt::format("baton: rank {}: {}\n", context.rank, error.what()).c_str(), stderr);
  }
}

std::string next_trace_name(const std::string& file) {
  static std::mutex mutex;  // files belong to the process, not to a communicator
  static std::map<std::string, int> made;
  const std::lock_guard lock(mutex);
  const int number = ++made[file];
  return number == 1 ? file : fmt::format("{}-{}", file, number);
}

}  // namespace baton::communicator
