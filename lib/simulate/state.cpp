#include "state.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <unordered_map>

#include "baton/error.hpp"

namespace baton::simulating {
namespace {

bool has_packets(const Network& network) {
  return network.within.packet > 0 || network.across.packet > 0;
}

/// The least time until another domain hears of a rank's action.
std::int64_t lookahead_of(const NetworkLevel& level, bool own_wire) {
  if (!own_wire || level.packet > 0) return level.latency;
  const bool rendezvous = level.eager < std::numeric_limits<std::int64_t>::max();
  return level.latency +
         std::min(level.send.of(0), rendezvous ? level.handshake : level.send.of(0));
}

}  // namespace

State::State(const Program& program, const Network& network, const std::vector<int>& host_of,
             std::vector<StepTimes>* times)
    : host_of(host_of),
      host_ranks(1 + static_cast<std::size_t>(*std::max_element(host_of.begin(), host_of.end()))),
      ranks(program.ranks.size()),
      rank_wires(2 * ranks.size()),
      host_wires(2 * host_ranks.size()),
      host_bytes(host_ranks.size()) {
  for (const int host : host_of) ++host_ranks[static_cast<std::size_t>(host)];
  const bool one_host = host_ranks.size() == 1;
  const bool own_wire = one_host || *std::ranges::max_element(host_ranks) == 1;
  lookahead = lookahead_of(one_host ? network.within : network.across, own_wire);
  if (network.processors > 0 || lookahead == 0) {
    lookahead = never;
    domain_of.resize(ranks.size());
    queues.resize(1);
  } else if (one_host) {
    for (std::uint32_t r = 0; r < ranks.size(); ++r) domain_of.push_back(r);
    queues.resize(ranks.size());
  } else {
    domain_of.assign(host_of.begin(), host_of.end());
    queues.resize(host_ranks.size());
  }
  processors.shared = network.processors > 0;
  processors.free = network.processors;
  if (processors.shared) processors.line.resize(ranks.size(), none);
  steps.reserve(program.steps);
  channels.reserve(program.channels.size());
  if (has_packets(network)) {
    packets.resize(program.steps);
    on_wire.resize(program.channels.size());
  }
  for (int r = 0; r < program.size(); ++r) {
    const Program::Rank& flat = program.rank(r);
    RankState& own = rank(r);
    own.number = r;
    own.shape = flat.shape.get();
    own.steps = steps.data() + flat.first_step;
    own.channels = channels.data() + flat.first_channel;
    if (!packets.empty()) {
      own.packets = packets.data() + flat.first_step;
      own.on_wire = on_wire.data() + flat.first_channel;
    }
    if (times) own.times = times->data() + flat.first_step;
    for (std::uint32_t i = 0; i < own.shape->size(); ++i)
      steps.emplace_back(own.shape->steps[i].waits);
    const std::vector<scheduling::Channel>& fixed = own.shape->channels;
    const bool one_lane =
        std::ranges::all_of(fixed, [](const scheduling::Channel& its) { return its.lane == 0; });
    std::unordered_map<int, std::uint32_t> connections;  // of the ranks that are sent to
    for (std::uint32_t s = 0; s < fixed.size(); ++s) {
      const Program::Channel& channel = program.channel(r, s);
      ChannelState& made = channels.emplace_back();
      made.partners = channel.partners;
      made.peer = channel.peer;
      made.connection =
          one_lane || !fixed[s].sends ? s : connections.try_emplace(channel.peer, s).first->second;
      made.across = host(r) != host(channel.peer);
    }
  }
}

void check_finished(const Program& program, const State& state) {
  const auto unfinished = [](const RankState& rank) { return rank.left > 0; };
  const auto found = std::find_if(state.ranks.begin(), state.ranks.end(), unfinished);
  if (found == state.ranks.end()) return;
  const auto awaited = [](const RankState& rank) {  // the incomplete steps that it waits for
    for (std::uint32_t i = 0; i < rank.shape->size(); ++i) {
      const StepState& step = rank.steps[i];
      if (rank.shape->steps[i].message() && step.waits == 0 && step.at() != Stage::done) return i;
    }
    return none;
  };
  std::vector<bool> seen(state.ranks.size());
  int r = found->number;
  std::string text;
  constexpr int most = 8;
  for (int links = 0; links < most && !seen[static_cast<std::size_t>(r)]; ++links) {
    const std::uint32_t step = awaited(state.rank(r));
    if (step == none) break;
    const int peer = program.channel(r, state.rank(r).shape->steps[step].channel).peer;
    text += fmt::format("{} waits for rank {} in {}",
                        links == 0 ? fmt::format("rank {}", r) : ", which", peer,
                        program.phrase(r, step));
    seen[static_cast<std::size_t>(r)] = true;
    r = peer;
  }
  throw Error(ErrorCode::invalid_argument, "simulate: ranks wait for ever: " + text);
}

std::int64_t state_bytes(const Shape& shape, const Network& network) {
  std::size_t step = sizeof(StepState), channel = sizeof(ChannelState) + sizeof(Program::Channel);
  if (has_packets(network)) {
    step += sizeof(PacketState);
    channel += sizeof(Fifo);
  }
  return static_cast<std::int64_t>(shape.size() * step + shape.channels.size() * channel);
}

}  // namespace baton::simulating
