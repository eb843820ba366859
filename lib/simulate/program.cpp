#include "program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "baton/error.hpp"

namespace baton::simulating {
namespace {

[[noreturn]] void refuse(const std::string& sentence) {
  throw Error(ErrorCode::invalid_argument, sentence);
}

std::uint32_t size_of(const auto& list) {
  if (list.size() >= none) {
    throw Error(ErrorCode::unsupported,
                fmt::format("simulate: expected schedules of fewer than {} steps and dependencies "
                            "together, found more",
                            none));
  }
  return static_cast<std::uint32_t>(list.size());
}

std::string counted_messages(std::uint32_t n) {
  return n == 1 ? "1 message" : fmt::format("{} messages", n);
}

}  // namespace

void FlatRank::load(const Schedule& schedule, std::size_t element_bytes, int calls) {
  const auto list = schedule.steps();
  const std::size_t each = list.size(), all = each * static_cast<std::size_t>(calls);
  steps_.assign(all + 1, {});
  dependents_.resize(schedule.dependencies().list.size() * static_cast<std::size_t>(calls));
  messages_.clear();
  streams_.clear();
  const auto lanes = static_cast<std::size_t>(schedule.lanes());
  stream_of_.resize(static_cast<std::size_t>(schedule.size()) * lanes * 2, none);

  const auto place = [&](const Step& step) -> std::uint32_t& {
    const std::size_t lane = static_cast<std::size_t>(step.peer) * lanes + step.lane;
    return stream_of_[2 * lane + (step.kind == StepKind::send ? 1 : 0)];
  };
  for (std::size_t i = 0; i < all; ++i) {
    const std::size_t own = i % each, call = i - own;
    FlatStep& step = steps_[i];
    step.kind = list[own].kind;
    step.bytes = schedule.length(list[own]) * static_cast<std::int64_t>(element_bytes);
    for (const std::uint32_t d : schedule.dependencies(own)) ++steps_[call + d + 1].first_dependent;
    step.waits = static_cast<std::uint32_t>(schedule.dependencies(own).size());
    if (step.waits == 0 && call > 0) {
      step.gated = true;
      step.waits = 1;
    }
    if (!step.message()) continue;
    std::uint32_t& stream = place(list[own]);
    if (stream == none) {
      stream = static_cast<std::uint32_t>(streams_.size());
      Stream made;
      made.rank = schedule.rank();
      made.peer = list[own].peer;
      made.lane = list[own].lane;
      made.sends = step.kind == StepKind::send;
      streams_.push_back(made);
    }
    step.stream = stream;
    ++streams_[stream].last;
  }

  for (std::size_t i = 1; i < steps_.size(); ++i) {
    steps_[i].first_dependent += steps_[i - 1].first_dependent;
  }
  // Each list grows from its beginning; its steps' `next` is free to count meanwhile.
  for (FlatStep& step : steps_) step.next = step.first_dependent;
  std::uint32_t messages = 0;
  for (Stream& stream : streams_) {
    stream.first = stream.next = messages;
    messages += stream.last;
    stream.last = stream.first;
  }
  messages_.resize(messages);
  for (std::uint32_t i = 0; i < all; ++i) {
    const std::size_t own = i % each, call = i - own;
    for (const std::uint32_t d : schedule.dependencies(own))
      dependents_[steps_[call + d].next++] = i;
    if (!steps_[i].message()) continue;
    messages_[streams_[steps_[i].stream].last++] = i;
    place(list[own]) = none;
  }
  for (FlatStep& step : steps_) step.next = none;
}

std::int64_t FlatRank::bytes() const {
  return static_cast<std::int64_t>(steps_.size() * sizeof(FlatStep) +
                                   streams_.size() * (sizeof(Stream) + sizeof(std::uint32_t)) +
                                   (dependents_.size() + messages_.size()) * sizeof(std::uint32_t));
}

void ProgramBuilder::reserve(const FlatRank& sample, int ranks) {
  const auto n = static_cast<std::size_t>(ranks);
  program_.steps.reserve(n * sample.steps_.size() + 1);
  program_.dependents.reserve(n * sample.dependents_.size());
  program_.messages.reserve(n * sample.messages_.size());
  program_.streams.reserve(n * sample.streams_.size());
}

void ProgramBuilder::add(const FlatRank& rank) {
  const std::uint32_t step = size_of(program_.steps), stream = size_of(program_.streams),
                      message = size_of(program_.messages),
                      dependent = size_of(program_.dependents);
  program_.first_step.push_back(step);
  program_.first_stream.push_back(stream);
  for (std::size_t i = 0; i + 1 < rank.steps_.size(); ++i) {
    FlatStep& own = program_.steps.emplace_back(rank.steps_[i]);
    own.first_dependent += dependent;
    if (own.stream != none) own.stream += stream;
  }
  for (const std::uint32_t i : rank.dependents_) program_.dependents.push_back(step + i);
  for (const std::uint32_t i : rank.messages_) program_.messages.push_back(step + i);
  for (const Stream& from : rank.streams_) {
    Stream& own = program_.streams.emplace_back(from);
    own.first += message;
    own.next += message;
    own.last += message;
  }
}

Program ProgramBuilder::finish() {
  program_.first_step.push_back(size_of(program_.steps));
  program_.first_stream.push_back(size_of(program_.streams));
  FlatStep end;
  end.first_dependent = size_of(program_.dependents);
  program_.steps.push_back(end);
  size_of(program_.messages);
  match();
  return std::move(program_);
}

void ProgramBuilder::match() {
  const auto& streams = program_.streams;
  const auto key = [](std::int32_t from, const Stream& stream) {
    return std::tuple(from, stream.lane);
  };
  std::vector<std::uint32_t> receives;  // of one rank, by sender and lane
  std::vector<std::uint32_t> begin;     // of each rank's
  for (std::size_t r = 0; r + 1 < program_.first_stream.size(); ++r) {
    begin.push_back(size_of(receives));
    for (std::uint32_t s = program_.first_stream[r]; s < program_.first_stream[r + 1]; ++s) {
      if (!streams[s].sends) receives.push_back(s);
    }
    std::sort(receives.begin() + begin.back(), receives.end(),
              [&](std::uint32_t a, std::uint32_t b) {
                return key(streams[a].peer, streams[a]) < key(streams[b].peer, streams[b]);
              });
  }
  begin.push_back(size_of(receives));

  std::size_t matched = 0;
  for (const Stream& sends : streams) {
    if (!sends.sends) continue;
    const auto peer = static_cast<std::size_t>(sends.peer);
    const auto last = receives.begin() + begin[peer + 1];
    const auto found = std::lower_bound(
        receives.begin() + begin[peer], last, key(sends.rank, sends),
        [&](std::uint32_t s, const auto& k) { return key(streams[s].peer, streams[s]) < k; });
    const bool there =
        found != last && key(streams[*found].peer, streams[*found]) == key(sends.rank, sends);
    const std::uint32_t count = sends.last - sends.first;
    const std::uint32_t expected = there ? streams[*found].last - streams[*found].first : 0;
    if (count != expected) {
      refuse(fmt::format("rank {} sends {} to rank {} in lane {}, which expects {}", sends.rank,
                         counted_messages(count), sends.peer, sends.lane,
                         counted_messages(expected)));
    }
    ++matched;
    for (std::uint32_t k = 0; k < count; ++k) {
      const std::uint32_t send = program_.messages[sends.first + k];
      const std::uint32_t recv = program_.messages[streams[*found].first + k];
      program_.steps[send].partner = recv;
      program_.steps[recv].partner = send;
      if (program_.steps[send].bytes != program_.steps[recv].bytes) {
        refuse(fmt::format("rank {}, {}: expected a message of {} B, found that rank {} sends {} B",
                           sends.peer, program_.phrase(recv), program_.steps[recv].bytes,
                           sends.rank, program_.steps[send].bytes));
      }
    }
  }
  if (matched == receives.size()) return;
  const auto lonely = std::find_if(receives.begin(), receives.end(), [&](std::uint32_t s) {
    return program_.steps[program_.messages[streams[s].first]].partner == none;
  });
  const Stream& stream = streams[*lonely];
  refuse(fmt::format("rank {} expects {} from rank {} in lane {}, which sends 0 messages",
                     stream.rank, counted_messages(stream.last - stream.first), stream.peer,
                     stream.lane));
}

int Program::rank_of(std::uint32_t step) const {
  const auto after = std::upper_bound(first_step.begin(), first_step.end(), step);
  return static_cast<int>(after - first_step.begin()) - 1;
}

std::string Program::phrase(std::uint32_t step) const {
  const FlatStep& s = steps[step];
  const std::uint32_t own = step - first_step[static_cast<std::size_t>(rank_of(step))];
  if (!s.message()) return fmt::format("step {} ({} of {} B)", own, name(s.kind), s.bytes);
  const Stream& stream = streams[s.stream];
  return fmt::format("step {} ({} of {} B {} rank {}, lane {})", own, name(s.kind), s.bytes,
                     stream.sends ? "to" : "from", stream.peer, stream.lane);
}

}  // namespace baton::simulating
