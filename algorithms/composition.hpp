#pragma once
/// Parts that composed algorithms share.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "baton/schedule.hpp"

namespace baton::algorithms {

/// The ranks that have `local` lower ranks on their host, one of each host.
std::vector<int> ranks_at(const Hosts& hosts, int local);

/// The ranks of the host of `p.rank`, the leader first: the root, if it is one of them and the
/// collective has one, else the lowest.
std::vector<int> mates_of(const Problem& p);
/// The leader of each host.
std::vector<int> leaders_of(const Problem& p);
/// Where `rank` is in the list, which it is in.
int place_in(std::span<const int> ranks, int rank);

/// The collective in which a group of `size` ranks, this being number `rank`, does a part of the
/// whole: in place, with even counts.
Problem part_of(const Problem& whole, Collective collective, int size, int rank,
                std::int64_t count);

/// The same with a block for each rank of the group.
Problem part_of(const Problem& whole, Collective collective, std::span<const std::int64_t> counts,
                int rank);

/// Elements of the blocks of these ranks; of all blocks of each host.
std::vector<std::int64_t> counts_of(const Problem& p, std::span<const int> ranks);
std::vector<std::int64_t> host_counts(const Problem& p);
/// The blocks of these ranks, one after the other.
Regions blocks_of(const Chunks& blocks, std::span<const int> ranks);

/// Adds a part among ranks of one host, which takes at most `rounds` on any host. What a rank
/// sends, receives, folds and needs adds up, and so do rounds: the last to begin is the last to
/// end.
void add_local(Cost& cost, const Cost& part, std::int64_t rounds);
/// Adds a part across hosts, which so many ranks of a host have at once.
void add_across(Cost& cost, const Cost& part, std::int64_t ranks_of_host);
/// Adds a part across hosts that is other ranks' work: its rounds only.
void add_rounds_across(Cost& cost, const Cost& part);

/// Row::refuses of algorithms that need equal numbers of ranks on all hosts.
std::string uneven_hosts(const Problem& p);

}  // namespace baton::algorithms
