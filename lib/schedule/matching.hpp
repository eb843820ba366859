#pragma once
/// Which message meets which: the k-th send from one rank to another in a lane meets the k-th
/// receive there. The verifier has a matching of its own, so that it does not rest on this one.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "baton/schedule/step.hpp"

namespace baton::scheduling {

/// No step, no channel.
inline constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();

/// The messages of one lane, peer and direction, in program order. Their peer stands elsewhere, so
/// that ranks which differ in their peers only can have this in common.
struct Channel {
  std::uint32_t first = 0, last = 0;  ///< in Channels::messages
  std::uint8_t lane = 0;
  bool sends = false;

  std::uint32_t count() const { return last - first; }
  bool operator==(const Channel&) const = default;
};

/// The channels of one rank, in the order of their first messages.
struct Channels {
  std::vector<Channel> list;
  std::vector<std::int32_t> peers;      ///< of each channel
  std::vector<std::uint32_t> messages;  ///< their steps, channel after channel
};
Channels channels_of(const Schedule& schedule);

/// Two ends of a channel: number `out` of rank `from`, which sends, and number `in` of rank `to`,
/// which receives; one of the two is `none` where the other rank has no such channel.
struct ChannelPair {
  std::int32_t from, to;
  std::uint8_t lane;
  std::uint32_t out, in;
};

/// Calls meet(ChannelPair) once for each channel of all ranks. `channels_of(r)` are rank r's, a
/// vector of Channel, `peer_of(r, c)` is the peer of its c-th. Takes 12 bytes for each channel that
/// receives.
template <class ChannelsOf, class PeerOf, class Meet>
void pair_channels(std::int32_t ranks, const ChannelsOf& channels_of, const PeerOf& peer_of,
                   const Meet& meet) {
  struct Receiving {
    std::int32_t from;
    std::uint32_t channel;
    std::uint8_t lane;
    bool met;
    bool operator<(const Receiving& other) const {
      return std::tuple(from, lane) < std::tuple(other.from, other.lane);
    }
  };
  std::vector<Receiving> receiving;
  std::vector<std::size_t> begin{0};  // of each rank's
  for (std::int32_t r = 0; r < ranks; ++r) {
    const auto& channels = channels_of(r);
    for (std::uint32_t c = 0; c < channels.size(); ++c) {
      if (!channels[c].sends) receiving.push_back({peer_of(r, c), c, channels[c].lane, false});
    }
    std::sort(receiving.begin() + static_cast<std::ptrdiff_t>(begin.back()), receiving.end());
    begin.push_back(receiving.size());
  }
  for (std::int32_t r = 0; r < ranks; ++r) {
    const auto& channels = channels_of(r);
    for (std::uint32_t c = 0; c < channels.size(); ++c) {
      if (!channels[c].sends) continue;
      const std::int32_t to = peer_of(r, c);
      ChannelPair pair{r, to, channels[c].lane, c, none};
      if (to < ranks) {
        const auto first = receiving.begin() + static_cast<std::ptrdiff_t>(begin[std::size_t(to)]);
        const auto last =
            receiving.begin() + static_cast<std::ptrdiff_t>(begin[std::size_t(to) + 1]);
        const auto found = std::lower_bound(first, last, Receiving{r, 0, pair.lane, false});
        if (found != last && found->from == r && found->lane == pair.lane) {
          found->met = true;
          pair.in = found->channel;
        }
      }
      meet(pair);
    }
  }
  for (std::int32_t r = 0; r < ranks; ++r) {
    for (std::size_t i = begin[std::size_t(r)]; i < begin[std::size_t(r) + 1]; ++i) {
      const Receiving& lonely = receiving[i];
      if (!lonely.met) meet(ChannelPair{lonely.from, r, lonely.lane, none, lonely.channel});
    }
  }
}

/// "expected as many receives as sends from rank 0 to rank 2 in lane 0, found 2 receives, 3 sends"
std::string unmatched(const ChannelPair& pair, std::uint32_t sends, std::uint32_t receives);

/// The steps of all ranks under one numbering, rank after rank in program order, and the other end
/// of each message.
class Matching {
 public:
  /// Appends the steps of the next rank, rank 0 first. Does not keep the schedule.
  void add(const Schedule& schedule);
  /// Finds the other ends, when all ranks are there. Says which channel has more messages at one
  /// end than at the other; nothing if none has. The messages that it has at both ends meet.
  std::optional<std::string> match();

  int ranks() const { return static_cast<int>(channels_.size()); }
  /// Steps of all ranks that were added.
  std::uint32_t count() const { return first_.back(); }
  /// Number of a rank's first step; of ranks(): count().
  std::uint32_t first(int rank) const { return first_[static_cast<std::size_t>(rank)]; }
  const Channels& channels(int rank) const { return channels_[static_cast<std::size_t>(rank)]; }
  /// The other end of a message; `none` if it has none, and of other steps.
  std::uint32_t partner(std::uint32_t step) const { return partner_[step]; }

 private:
  std::vector<std::uint32_t> first_{0};
  std::vector<Channels> channels_;
  std::vector<std::uint32_t> partner_;
};

}  // namespace baton::scheduling
