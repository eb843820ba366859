#pragma once
/// What algorithms that are put together from others share.

#include <cstdint>
#include <span>
#include <vector>

#include "algorithms.hpp"

namespace baton {

/// The ranks that have `local` lower ranks on their host, one of each host.
std::vector<int> ranks_at(const Hosts& hosts, int local);

/// The first rank of each host, but `root` for its own; `root` -1: of each.
std::vector<int> leaders_of(const Hosts& hosts, int root = -1);

/// The collective that a group of `size` ranks, of which this is number `rank`, has a part in: even
/// blocks of `count`, in place.
Problem part_of(const Problem& whole, Collective collective, int size, int rank, std::int64_t count);

/// The same with a block for each rank of the group.
Problem part_of(const Problem& whole, Collective collective, int rank,
                std::span<const std::int64_t> counts);

/// Elements of each host's blocks, and of the blocks of these ranks.
std::vector<std::int64_t> host_counts(const Problem& p);
std::vector<std::int64_t> counts_of(const Problem& p, std::span<const int> ranks);

/// One after the other: what a rank sends, receives, folds and needs adds up, and so do rounds
/// where nobody waits longer than the slowest.
Cost& operator+=(Cost& cost, const Cost& part);
/// The same of a part among ranks of one host, which takes at most `rounds` on any host.
void add_local(Cost& cost, const Cost& part, std::int64_t rounds);

/// Why the problem's hosts do not serve an algorithm that needs as many ranks on each.
std::string uneven_hosts(const Problem& p);

}  // namespace baton
