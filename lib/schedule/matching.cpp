#include "matching.hpp"

#include <fmt/core.h>

#include <unordered_map>

namespace baton::scheduling {
namespace {

/// Numbers of channels by what tells them apart.
class Numbers {
 public:
  /// The channel's number, which is `next` if it is new.
  std::uint32_t of(const Step& step, std::uint32_t next) {
    const bool sends = step.kind == StepKind::send;
    Known& last = last_[sends ? 1 : 0];  // most ranks have long runs of one channel
    const std::uint64_t key = std::uint64_t{static_cast<std::uint32_t>(step.peer)} << 9 |
                              std::uint64_t{step.lane} << 1 | (sends ? 1 : 0);
    if (last.number == none || last.key != key)
      last = {key, numbers_.try_emplace(key, next).first->second};
    return last.number;
  }

 private:
  struct Known {
    std::uint64_t key = 0;
    std::uint32_t number = none;
  };
  Known last_[2];
  std::unordered_map<std::uint64_t, std::uint32_t> numbers_;
};

std::string counted(std::uint32_t n, const char* what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

}  // namespace

Channels channels_of(const Schedule& schedule) {
  const auto steps = schedule.steps();
  Channels channels;
  Numbers numbers;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> messages;  // channel, step
  for (std::uint32_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    if (!step.message()) continue;
    const auto next = static_cast<std::uint32_t>(channels.list.size());
    const std::uint32_t channel = numbers.of(step, next);
    if (channel == next) {
      channels.list.push_back({0, 0, step.lane, step.kind == StepKind::send});
      channels.peers.push_back(step.peer);
    }
    ++channels.list[channel].last;
    messages.emplace_back(channel, i);
  }
  std::uint32_t end = 0;
  for (Channel& channel : channels.list) {
    channel.first = end;
    end += channel.last;
    channel.last = channel.first;
  }
  channels.messages.resize(end);
  for (const auto& [channel, step] : messages)
    channels.messages[channels.list[channel].last++] = step;
  return channels;
}

std::string unmatched(const ChannelPair& pair, std::uint32_t sends, std::uint32_t receives) {
  return fmt::format(
      "expected as many receives as sends from rank {} to rank {} in lane {}, found {}, {}",
      pair.from, pair.to, pair.lane, counted(receives, "receive"), counted(sends, "send"));
}

void Matching::add(const Schedule& schedule) {
  first_.push_back(count() + static_cast<std::uint32_t>(schedule.steps().size()));
  channels_.push_back(channels_of(schedule));
}

std::optional<std::string> Matching::match() {
  std::optional<std::string> wrong;
  partner_.assign(count(), none);
  const auto steps_of = [&](int rank, std::uint32_t channel) {
    if (channel == none) return std::span<const std::uint32_t>();
    const Channels& its = channels(rank);
    const Channel& one = its.list[channel];
    return std::span(its.messages).subspan(one.first, one.count());
  };
  pair_channels(
      ranks(), [&](int r) -> const auto& { return channels(r).list; },
      [&](int r, std::uint32_t c) { return channels(r).peers[c]; },
      [&](const ChannelPair& pair) {
        const auto sends = steps_of(pair.from, pair.out), receives = steps_of(pair.to, pair.in);
        for (std::size_t k = 0; k < std::min(sends.size(), receives.size()); ++k) {
          const std::uint32_t send = first(pair.from) + sends[k],
                              recv = first(pair.to) + receives[k];
          partner_[send] = recv;
          partner_[recv] = send;
        }
        if (sends.size() != receives.size() && !wrong) {
          wrong = unmatched(pair, static_cast<std::uint32_t>(sends.size()),
                            static_cast<std::uint32_t>(receives.size()));
        }
      });
  return wrong;
}

}  // namespace baton::scheduling
