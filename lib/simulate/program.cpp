#include "program.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <tuple>

#include "baton/error.hpp"

namespace baton::simulating {
namespace {

/// Steps of a rank, so that StepState::waits and Event have room for them.
constexpr std::size_t most_steps = 1u << 28;

[[noreturn]] void refuse(const std::string& sentence) {
  throw Error(ErrorCode::invalid_argument, sentence);
}

std::string counted_messages(std::uint32_t n) {
  return n == 1 ? "1 message" : fmt::format("{} messages", n);
}

}  // namespace

std::int64_t Shape::bytes() const {
  return static_cast<std::int64_t>(steps.size() * sizeof(Step) + streams.size() * sizeof(Stream) +
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
  const auto lanes = static_cast<std::size_t>(schedule.lanes());
  std::vector<std::uint32_t> stream_of(static_cast<std::size_t>(schedule.size()) * lanes * 2, none);
  for (std::size_t i = 0; i < all; ++i) {
    const std::size_t own = i % each, call = i - own;
    Shape::Step& step = shape->steps[i];
    step.kind = list[own].kind;
    step.bytes = schedule.length(list[own]) * static_cast<std::int64_t>(element_bytes);
    for (const std::uint32_t d : schedule.dependencies(own))
      ++shape->steps[call + d + 1].first_dependent;
    step.waits = static_cast<std::uint32_t>(schedule.dependencies(own).size());
    if (step.waits == 0 && call > 0) {
      step.gated = true;
      step.waits = 1;
    }
    if (!step.message()) continue;
    const bool sends = step.kind == StepKind::send;
    const std::size_t lane = static_cast<std::size_t>(list[own].peer) * lanes + list[own].lane;
    std::uint32_t& stream = stream_of[2 * lane + (sends ? 1 : 0)];
    if (stream == none) {
      stream = static_cast<std::uint32_t>(shape->streams.size());
      shape->streams.push_back({0, 0, list[own].lane, sends});
      rank.peers.push_back(list[own].peer);
    }
    step.stream = stream;
    step.place = shape->streams[stream].last++;
  }

  for (std::size_t i = 1; i < shape->steps.size(); ++i) {
    shape->steps[i].first_dependent += shape->steps[i - 1].first_dependent;
  }
  std::uint32_t messages = 0;
  for (Shape::Stream& stream : shape->streams) {
    stream.first = messages;
    messages += stream.last;
    stream.last = messages;
  }
  shape->messages.resize(messages);
  std::vector<std::uint32_t> end(all);  // of each step's dependents so far
  for (std::size_t i = 0; i < all; ++i) end[i] = shape->steps[i].first_dependent;
  for (std::size_t i = 0; i < all; ++i) {
    const std::size_t own = i % each, call = i - own;
    for (const std::uint32_t d : schedule.dependencies(own))
      shape->dependents[end[call + d]++] = static_cast<std::uint32_t>(i);
    const Shape::Step& step = shape->steps[i];
    if (step.message()) {
      shape->messages[shape->streams[step.stream].first + step.place] =
          static_cast<std::uint32_t>(i);
    }
  }
  rank.shape = std::move(shape);
  return rank;
}

void Program::add(const FlatRank& rank) {
  ranks.push_back({rank.shape, steps, streams.size()});
  steps += rank.shape->size();
  messages += rank.shape->messages.size();
  for (const std::int32_t peer : rank.peers) streams.push_back({nullptr, peer});
}

void Program::match() {
  using Key = std::tuple<std::int32_t, std::uint8_t>;  // sender and lane
  struct Receives {
    Key key;
    std::uint32_t stream;
    bool operator<(const Receives& other) const { return key < other.key; }
  };
  std::vector<Receives> receives;
  std::vector<std::size_t> begin;  // of each rank's
  for (const Rank& rank : ranks) {
    begin.push_back(receives.size());
    for (std::uint32_t s = 0; s < rank.shape->streams.size(); ++s) {
      if (rank.shape->streams[s].sends) continue;
      receives.push_back({{streams[rank.first_stream + s].peer, rank.shape->streams[s].lane}, s});
    }
    std::sort(receives.begin() + static_cast<std::ptrdiff_t>(begin.back()), receives.end());
  }
  begin.push_back(receives.size());

  std::size_t matched = 0;
  for (int r = 0; r < size(); ++r) {
    const Shape& shape = *rank(r).shape;
    for (std::uint32_t s = 0; s < shape.streams.size(); ++s) {
      const Shape::Stream& sends = shape.streams[s];
      if (!sends.sends) continue;
      Stream& out = streams[rank(r).first_stream + s];
      const auto to = static_cast<std::size_t>(out.peer);
      const Shape& peer = *ranks[to].shape;
      const Key key{r, sends.lane};
      const auto first = receives.begin() + static_cast<std::ptrdiff_t>(begin[to]);
      const auto last = receives.begin() + static_cast<std::ptrdiff_t>(begin[to + 1]);
      const auto found = std::lower_bound(first, last, Receives{key, 0});
      const bool there = found != last && found->key == key;
      const std::uint32_t expected = there ? peer.streams[found->stream].count() : 0;
      if (sends.count() != expected) {
        refuse(fmt::format("rank {} sends {} to rank {} in lane {}, which expects {}", r,
                           counted_messages(sends.count()), out.peer, sends.lane,
                           counted_messages(expected)));
      }
      ++matched;
      Stream& in = streams[ranks[to].first_stream + found->stream];
      out.partners = peer.messages.data() + peer.streams[found->stream].first;
      in.partners = shape.messages.data() + sends.first;
      for (std::uint32_t k = 0; k < expected; ++k) {
        const std::int64_t sent = shape.steps[in.partners[k]].bytes,
                           awaited = peer.steps[out.partners[k]].bytes;
        if (sent != awaited) {
          refuse(
              fmt::format("rank {}, {}: expected a message of {} B, found that rank {} sends {} B",
                          out.peer, phrase(out.peer, out.partners[k]), awaited, r, sent));
        }
      }
    }
  }
  if (matched == receives.size()) return;
  for (int r = 0; r < size(); ++r) {
    for (std::size_t i = begin[static_cast<std::size_t>(r)];
         i < begin[static_cast<std::size_t>(r) + 1]; ++i) {
      if (stream(r, receives[i].stream).partners) continue;
      const Shape::Stream& lonely = rank(r).shape->streams[receives[i].stream];
      refuse(fmt::format("rank {} expects {} from rank {} in lane {}, which sends 0 messages", r,
                         counted_messages(lonely.count()), stream(r, receives[i].stream).peer,
                         lonely.lane));
    }
  }
}

std::string Program::phrase(int r, std::uint32_t number) const {
  const Shape::Step& step = rank(r).shape->steps[number];
  if (!step.message())
    return fmt::format("step {} ({} of {} B)", number, name(step.kind), step.bytes);
  const Shape::Stream& stream = rank(r).shape->streams[step.stream];
  return fmt::format("step {} ({} of {} B {} rank {}, lane {})", number, name(step.kind),
                     step.bytes, stream.sends ? "to" : "from", this->stream(r, step.stream).peer,
                     stream.lane);
}

}  // namespace baton::simulating
