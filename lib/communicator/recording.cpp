#include "recording.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <numeric>

#include "../trace/file.hpp"
#include "../trace/merge.hpp"
#include "state.hpp"

namespace baton {
namespace {

constexpr int clock_rounds = 64;
constexpr std::chrono::milliseconds usual_patience{60000};
constexpr std::int64_t most_events = std::int64_t{1} << 30;

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

/// Bytes of the whole vector as one rank sees it; a rank without the larger buffer sees less.
std::int64_t whole_bytes(const Plan& plan) {
  return std::max(plan.header().input, plan.header().output) *
         static_cast<std::int64_t>(plan.element_bytes());
}

}  // namespace

void write_trace(const std::string& file, std::string_view bytes) {
  std::ofstream stream(file, std::ios::binary);
  stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  stream.close();
  if (stream) return;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("expected a file for a recording, found that {} cannot be written: {}",
                          file, std::strerror(errno)));
}

std::string next_trace_name(const std::string& file) {
  static std::mutex mutex;  // what files there are is the process's, not a communicator's
  static std::map<std::string, int> made;
  const std::lock_guard lock(mutex);
  const int number = ++made[file];
  return number == 1 ? file : fmt::format("{}-{}", file, number);
}

tracing::Patience Communicator::State::waiting() {
  return {options.timeout.count() > 0 ? options.timeout : usual_patience,
          [this] { family->operations.advance(busy); }};
}

/// all[r] is rank r's `own`.
std::vector<std::uint64_t> Communicator::State::gathered(std::uint64_t own) {
  std::vector<std::uint64_t> all(static_cast<std::size_t>(size));
  std::byte* const bases[] = {reinterpret_cast<std::byte*>(&own),
                              reinterpret_cast<std::byte*>(all.data())};
  blocking.execution() = internal(Collective::all_gather, "bruck", sizeof own, bases);
  const int tag = next_tag();
  blocking.begin("gathering of ranks for a recording", sequence, tag);
  run_blocking();
  return all;
}

void Communicator::State::start_recording(std::int64_t events) {
  if (recording && recording->active) {
    throw Error(ErrorCode::invalid_argument,
                "start_recording: expected a communicator that is not being recorded, found one "
                "that is");
  }
  if (events < 1 || events > most_events) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("start_recording: expected room for 1 to {} events, found {}",
                            most_events, events));
  }
  require_usable();
  auto made = std::make_shared<Recording>(static_cast<std::size_t>(events));
  made->rank = rank;
  made->ranks = size;
  made->host = can.hosts.empty() ? 0 : can.hosts[static_cast<std::size_t>(rank)];
  const auto identities = gathered(tracing::clock_identity(made->host));
  for (const std::uint64_t identity : identities) {
    const auto first = std::find(identities.begin(), identities.end(), identity);
    made->clocks.push_back(static_cast<int>(first - identities.begin()));
  }
  made->before = compare_clocks(*made);
  std::vector<int> all(static_cast<std::size_t>(size));
  std::iota(all.begin(), all.end(), 0);
  join(std::move(made), std::move(all));
  records = true;
}

void Communicator::State::join(std::shared_ptr<Recording> joined, std::vector<int> members) {
  const bool mine = static_cast<int>(members.size()) == size &&
                    members[static_cast<std::size_t>(rank)] == joined->rank;
  if (!mine) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("expected the members of a communicator of {} ranks with rank {} of "
                            "the recording in place {}, found another list of {}",
                            size, joined->rank, rank, members.size()));
  }
  group = joined->recorder->add_group(std::move(members));
  recording = std::move(joined);
}

std::optional<tracing::ClockSample> Communicator::State::compare_clocks(const Recording& of) {
  std::optional<tracing::ClockSample> sample;
  const int tag = next_tag();
  for (int r = 1; r < size; ++r) {
    if (of.clocks[static_cast<std::size_t>(r)] != r) continue;
    if (rank == 0) tracing::answer_clock(*transport, r, tag, clock_rounds, tracing::now, waiting());
    if (rank == r)
      sample = tracing::compare_clock(*transport, 0, tag, clock_rounds, tracing::now, waiting());
  }
  return sample;
}

std::string Communicator::State::own_part(const std::optional<tracing::ClockSample>& after) {
  recording->active = false;
  records = false;
  tracing::Part part = recording->recorder->take(recording->rank, recording->ranks);
  part.host = recording->host;
  part.host_name = host_name();
  part.clock = recording->clock();
  part.before = recording->before;
  part.after = after;
  return tracing::written(part);
}

std::string Communicator::State::gathered_parts(const std::string& own) {
  const int tag = next_tag();
  const tracing::Patience how = waiting();
  std::uint64_t length = own.size();
  if (rank > 0) {
    tracing::send_all(*transport, 0, tag, &length, sizeof length, how);
    tracing::send_all(*transport, 0, tag, own.data(), own.size(), how);
    tracing::recv_all(*transport, 0, tag, nullptr, 0, how);  // all have arrived
    return {};
  }
  std::string all = tracing::file_head() + own;
  for (int r = 1; r < size; ++r) {
    tracing::recv_all(*transport, r, tag, &length, sizeof length, how);
    const std::size_t begin = all.size();
    all.resize(begin + length);
    tracing::recv_all(*transport, r, tag, all.data() + begin, length, how);
  }
  for (int r = 1; r < size; ++r) tracing::send_all(*transport, r, tag, nullptr, 0, how);
  return all;
}

std::string Communicator::State::stop_recording() {
  require_usable();
  if (!records) {
    throw Error(ErrorCode::invalid_argument,
                "stop_recording: expected a communicator that start_recording() was called on, "
                "found one that was not, or was stopped");
  }
  try {
    const auto after = compare_clocks(*recording);
    return gathered_parts(own_part(after));
  } catch (const Error& error) {
    recording->active = records = false;
    break_off(error.what());
    throw;
  }
}

void Communicator::State::finish_trace() noexcept {
  if (!records || options.trace.empty()) return;
  try {
    std::string why = broken, own;
    if (why.empty() && !transport->alive()) why = "its messages have come to their end";
    if (why.empty()) {
      try {
        const auto after = compare_clocks(*recording);
        own = own_part(after);
        const std::string all = gathered_parts(own);
        if (rank == 0) write_trace(options.trace, all);
        return;
      } catch (const Error& error) {
        why = error.what();
      }
    }
    if (own.empty()) own = own_part({});
    const std::string file = fmt::format("{}.rank{}", options.trace, rank);
    write_trace(file, tracing::file_head() + own);
    std::fputs(fmt::format("baton: rank {} writes its part of the recording to {}, since {}\n",
                           rank, file, why)
                   .c_str(),
               stderr);
  } catch (const std::exception& error) {
    std::fputs(fmt::format("baton: rank {}: {}\n", rank, error.what()).c_str(), stderr);
  }
}

void Communicator::State::record_into(Run& run, CachedPlan& plan, Collective collective,
                                      Datatype type, OpKind op) {
  if (!recording->active) return;
  run.record(recording->recorder, recorded_plan(plan, collective, type, op),
             static_cast<std::uint32_t>(sequence));
}

std::uint32_t Communicator::State::recorded_plan(CachedPlan& cached, Collective collective,
                                                 Datatype type, OpKind op) {
  const auto& recorder = recording->recorder;
  for (const CachedPlan::Recorded& known : cached.recorded) {
    if (known.of(recorder) && known.type == type && known.op == op) return known.number;
  }
  TimedOperation what;
  what.name = name(collective);
  what.choice = {cached.algorithm, cached.segment};
  if (type != Datatype::user) what.type = name(type);
  if (reducing(collective)) what.op = name(op);
  what.bytes = whole_bytes(*cached.plan);
  what.element_bytes = cached.plan->element_bytes();
  const std::uint32_t plan = recorder->add_plan(
      group, std::move(what), cached.plan,
      [](const void* plan) { return static_cast<const Plan*>(plan)->schedule(); });
  cached.recorded.push_back({recorder, type, op, plan});
  return plan;
}

void Communicator::start_recording(std::int64_t events) {
  const InUse in_use(*state_->busy);
  state_->start_recording(events);
}

Timeline Communicator::stop_recording() {
  const InUse in_use(*state_->busy);
  const std::string bytes = state_->stop_recording();
  if (rank() > 0) return {};
  return tracing::merged(tracing::read_parts(bytes, "recording").parts, false);
}

void Communicator::stop_recording(const std::string& file) {
  const InUse in_use(*state_->busy);
  const std::string bytes = state_->stop_recording();
  state_->agreed([&] {
    write_trace(file, bytes);
    return std::string();
  });
}

bool Communicator::recording() const { return state_->records; }

}  // namespace baton
