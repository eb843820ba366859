#include "program.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <span>
#include <utility>

#include "baton/error.hpp"

namespace baton::simulating {
namespace {

/// The most steps of a rank for which StepState::waits and Event have room.
constexpr std::size_t most_steps = 1u << 28;

[[noreturn]] void refuse(const std::string& sentence) {
  throw Error(ErrorCode::invalid_argument, sentence);
}

}  // namespace

std::int64_t Shape::bytes() const {
  return static_cast<std::int64_t>(steps.size() * sizeof(Step) +
                                   channels.size() * sizeof(channels[0]) +
                                   (dependents.size() + messages.size()) * sizeof(std::uint32_t));
}

FlatRank flattened(const Schedule& schedule, std::size_t element_bytes, int calls) {
  const auto list = schedule.steps();
  const std::size_t each = list.size(), all = each * static_cast<std::size_t>(calls);
  const std::size_t dependencies =
      schedule.dependencies().list.size() * static_cast<std::size_t>(calls);
  if (std::max(all, dependencies) >= most_steps) {
    throw Error(ErrorCode::unsupported,
                fmt::format("simulate: expected a rank of fewer than {} steps and as many "
                            "dependencies, found {} and {}",
                            most_steps, all, dependencies));
  }
  FlatRank rank;
  auto shape = std::make_shared<Shape>();
  shape->steps.resize(all + 1);
  shape->dependents.resize(dependencies);
  for (std::size_t i = 0; i < all; ++i) {
    const std::size_t own = i % each, call = i - own;
    Shape::Step& step = shape->steps[i];
    step.kind = list[own].kind;
    step.bytes = step.kind == StepKind::compute
                     ? schedule.computation(list[own]).ns
                     : schedule.length(list[own]) * static_cast<std::int64_t>(element_bytes);
    step.advances = step.kind == StepKind::compute && schedule.computation(list[own]).advances;
    for (const std::uint32_t d : schedule.dependencies(own))
      ++shape->steps[call + d + 1].first_dependent;
    step.waits = static_cast<std::uint32_t>(schedule.dependencies(own).size());
    if (step.waits == 0 && call > 0) {
      step.gated = true;
      step.waits = 1;
    }
  }
  for (std::size_t i = 1; i < shape->steps.size(); ++i) {
    shape->steps[i].first_dependent += shape->steps[i - 1].first_dependent;
  }
  std::vector<std::uint32_t> end(all);  // of each step's dependents so far
  for (std::size_t i = 0; i < all; ++i) end[i] = shape->steps[i].first_dependent;
  for (std::size_t i = 0; i < all; ++i) {
    const std::size_t own = i % each, call = i - own;
    for (const std::uint32_t d : schedule.dependencies(own))
      shape->dependents[end[call + d]++] = static_cast<std::uint32_t>(i);
  }

  scheduling::Channels channels = scheduling::channels_of(schedule);
  shape->channels = std::move(channels.list);
  shape->messages.reserve(channels.messages.size() * static_cast<std::size_t>(calls));
  for (std::uint32_t c = 0; c < shape->channels.size(); ++c) {
    scheduling::Channel& channel = shape->channels[c];
    const auto own = std::span(channels.messages).subspan(channel.first, channel.count());
    channel.first = static_cast<std::uint32_t>(shape->messages.size());
    for (std::size_t call = 0; call < all; call += each) {
      for (const std::uint32_t message : own) {
        Shape::Step& step = shape->steps[call + message];
        step.channel = c;
        step.place = static_cast<std::uint32_t>(shape->messages.size()) - channel.first;
        shape->messages.push_back(static_cast<std::uint32_t>(call + message));
      }
    }
    channel.last = static_cast<std::uint32_t>(shape->messages.size());
  }
  rank.peers = std::move(channels.peers);
  rank.shape = std::move(shape);
  return rank;
}

void Program::add(const FlatRank& rank) {
  ranks.push_back({rank.shape, steps, channels.size()});
  steps += rank.shape->size();
  messages += rank.shape->messages.size();
  for (const std::int32_t peer : rank.peers) channels.push_back({nullptr, peer});
}

void Program::match() {
  const auto steps_of = [&](const Rank& rank, std::uint32_t number) {
    if (number == none) return std::span<const std::uint32_t>();
    const scheduling::Channel& its = rank.shape->channels[number];
    return std::span(rank.shape->messages).subspan(its.first, its.count());
  };
  scheduling::pair_channels(
      size(), [&](int r) -> const auto& { return rank(r).shape->channels; },
      [&](int r, std::uint32_t c) { return channel(r, c).peer; },
      [&](const scheduling::ChannelPair& pair) {
        const Rank &from = rank(pair.from), &to = rank(pair.to);
        const auto sends = steps_of(from, pair.out), receives = steps_of(to, pair.in);
        if (sends.size() != receives.size()) {
          refuse(scheduling::unmatched(pair, static_cast<std::uint32_t>(sends.size()),
                                       static_cast<std::uint32_t>(receives.size())));
        }
        for (std::size_t k = 0; k < sends.size(); ++k) {
          const std::int64_t sent = from.shape->steps[sends[k]].bytes,
                             awaited = to.shape->steps[receives[k]].bytes;
          if (sent == awaited) continue;
          refuse(
              fmt::format("rank {}, {}: expected a message of {} B, found that rank {} sends {} B",
                          pair.to, phrase(pair.to, receives[k]), awaited, pair.from, sent));
        }
        channels[from.first_channel + pair.out].partners = receives.data();
        channels[to.first_channel + pair.in].partners = sends.data();
      });
}

std::string Program::phrase(int r, std::uint32_t number) const {
  const Shape::Step& step = rank(r).shape->steps[number];
  if (step.kind == StepKind::compute)
    return fmt::format("step {} (compute of {} ns)", number, step.bytes);
  if (!step.message())
    return fmt::format("step {} ({} of {} B)", number, name(step.kind), step.bytes);
  const scheduling::Channel& channel = rank(r).shape->channels[step.channel];
  return fmt::format("step {} ({} of {} B {} rank {}, lane {})", number, name(step.kind),
                     step.bytes, channel.sends ? "to" : "from", this->channel(r, step.channel).peer,
                     channel.lane);
}

}  // namespace baton::simulating
