#pragma once
/// All algorithms, for the registry and for those that are put together from others.

#include "baton/schedule.hpp"

namespace baton {

// Each algorithm's file defines its generator and its cost; its head comment says what they are.

Schedule broadcast_linear(const Problem& problem);
Cost broadcast_linear_cost(const Problem& problem);
Schedule broadcast_binomial(const Problem& problem);
Cost broadcast_binomial_cost(const Problem& problem);
Schedule broadcast_chain(const Problem& problem);
Cost broadcast_chain_cost(const Problem& problem);
Schedule broadcast_scatter_ring(const Problem& problem);
Cost broadcast_scatter_ring_cost(const Problem& problem);
Schedule broadcast_scatter_doubling(const Problem& problem);
Cost broadcast_scatter_doubling_cost(const Problem& problem);
Schedule broadcast_circulant(const Problem& problem);
Cost broadcast_circulant_cost(const Problem& problem);
Schedule reduce_linear(const Problem& problem);
Cost reduce_linear_cost(const Problem& problem);
Schedule reduce_binomial(const Problem& problem);
Cost reduce_binomial_cost(const Problem& problem);
Schedule reduce_chain(const Problem& problem);
Cost reduce_chain_cost(const Problem& problem);
Schedule reduce_circulant(const Problem& problem);
Cost reduce_circulant_cost(const Problem& problem);
Schedule gather_linear(const Problem& problem);
Cost gather_linear_cost(const Problem& problem);
Schedule gather_binomial(const Problem& problem);
Cost gather_binomial_cost(const Problem& problem);
Schedule scatter_linear(const Problem& problem);
Cost scatter_linear_cost(const Problem& problem);
Schedule scatter_binomial(const Problem& problem);
Cost scatter_binomial_cost(const Problem& problem);
Schedule scan_recursive_doubling(const Problem& problem);
Cost scan_recursive_doubling_cost(const Problem& problem);
Schedule exscan_recursive_doubling(const Problem& problem);
Cost exscan_recursive_doubling_cost(const Problem& problem);
Schedule barrier_dissemination(const Problem& problem);
Cost barrier_dissemination_cost(const Problem& problem);
Schedule all_reduce_gather_broadcast(const Problem& problem);
Cost all_reduce_gather_broadcast_cost(const Problem& problem);
Schedule all_reduce_recursive_doubling(const Problem& problem);
Cost all_reduce_recursive_doubling_cost(const Problem& problem);
Schedule all_reduce_ring(const Problem& problem);
Cost all_reduce_ring_cost(const Problem& problem);
Schedule all_reduce_tree(const Problem& problem);
Cost all_reduce_tree_cost(const Problem& problem);
Schedule all_reduce_double_tree(const Problem& problem);
Cost all_reduce_double_tree_cost(const Problem& problem);
Schedule all_reduce_rabenseifner(const Problem& problem);
Cost all_reduce_rabenseifner_cost(const Problem& problem);
Schedule all_reduce_circulant(const Problem& problem);
Cost all_reduce_circulant_cost(const Problem& problem);
Schedule all_reduce_in_order(const Problem& problem);
Cost all_reduce_in_order_cost(const Problem& problem);
Schedule reduce_scatter_linear(const Problem& problem);
Cost reduce_scatter_linear_cost(const Problem& problem);
Schedule reduce_scatter_ring(const Problem& problem);
Cost reduce_scatter_ring_cost(const Problem& problem);
Schedule reduce_scatter_recursive_halving(const Problem& problem);
Cost reduce_scatter_recursive_halving_cost(const Problem& problem);
Schedule reduce_scatter_circulant(const Problem& problem);
Cost reduce_scatter_circulant_cost(const Problem& problem);
Schedule all_gather_linear(const Problem& problem);
Cost all_gather_linear_cost(const Problem& problem);
Schedule all_gather_ring(const Problem& problem);
Cost all_gather_ring_cost(const Problem& problem);
Schedule all_gather_recursive_doubling(const Problem& problem);
Cost all_gather_recursive_doubling_cost(const Problem& problem);
Schedule all_gather_bruck(const Problem& problem);
Cost all_gather_bruck_cost(const Problem& problem);
Schedule all_gather_neighbor_exchange(const Problem& problem);
Cost all_gather_neighbor_exchange_cost(const Problem& problem);
std::string all_gather_neighbor_exchange_refuses(const Problem& problem);
Schedule all_gather_circulant(const Problem& problem);
Cost all_gather_circulant_cost(const Problem& problem);
Schedule all_to_all_spread_out(const Problem& problem);
Cost all_to_all_spread_out_cost(const Problem& problem);
Schedule all_to_all_pairwise(const Problem& problem);
Cost all_to_all_pairwise_cost(const Problem& problem);
Schedule all_to_all_bruck(const Problem& problem);
Cost all_to_all_bruck_cost(const Problem& problem);
Schedule all_gather_hierarchical(const Problem& problem);
Cost all_gather_hierarchical_cost(const Problem& problem);
Schedule all_gather_leaders(const Problem& problem);
Cost all_gather_leaders_cost(const Problem& problem);
Schedule all_reduce_hierarchical(const Problem& problem);
Cost all_reduce_hierarchical_cost(const Problem& problem);
Schedule all_reduce_leaders(const Problem& problem);
Cost all_reduce_leaders_cost(const Problem& problem);
Schedule all_reduce_leaders_circulant(const Problem& problem);
Cost all_reduce_leaders_circulant_cost(const Problem& problem);
Schedule all_reduce_one_shot(const Problem& problem);
Cost all_reduce_one_shot_cost(const Problem& problem);
Schedule all_reduce_recursive_multiplying(const Problem& problem);
Cost all_reduce_recursive_multiplying_cost(const Problem& problem);
Schedule all_to_all_hierarchical(const Problem& problem);
Cost all_to_all_hierarchical_cost(const Problem& problem);
Schedule barrier_leaders(const Problem& problem);
Cost barrier_leaders_cost(const Problem& problem);
Schedule broadcast_knomial(const Problem& problem);
Cost broadcast_knomial_cost(const Problem& problem);
Schedule broadcast_leaders(const Problem& problem);
Cost broadcast_leaders_cost(const Problem& problem);
Schedule broadcast_leaders_chain(const Problem& problem);
Cost broadcast_leaders_chain_cost(const Problem& problem);
Schedule reduce_scatter_hierarchical(const Problem& problem);
Cost reduce_scatter_hierarchical_cost(const Problem& problem);
Schedule reduce_scatter_leaders(const Problem& problem);
Cost reduce_scatter_leaders_cost(const Problem& problem);
/// Why the hosts do not serve an algorithm that needs as many ranks on each.
std::string uneven_hosts(const Problem& problem);

}  // namespace baton
