#pragma once
/// Composition by leaders: one rank of each host takes part across hosts, and deals with the other
/// ranks of its host.

#include <functional>

#include "composition.hpp"
#include "row.hpp"

namespace baton::algorithms {

/// Broadcasts by `part` from the root to a leader of each other host, then by `part` within hosts.
Schedule broadcast_by_leaders(const Problem& p, const Row& part, const char* name);
/// Its cost. `done(v)` is the round in which the leader at distance v from the root's host has
/// passed the data on, `within(L)` the rounds of a host of L ranks.
Cost broadcast_by_leaders_cost(const Problem& p, const Row& part,
                               const std::function<int(int)>& done,
                               const std::function<int(int)>& within);

/// Reduces to a leader within each host and broadcasts from it, by binomial trees; in between the
/// leaders all-reduce by `across`.
Schedule all_reduce_by_leaders(const Problem& p, const Row& across, const char* name);
Cost all_reduce_by_leaders_cost(const Problem& p, const Row& across);

}  // namespace baton::algorithms
