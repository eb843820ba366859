#include "algorithms.hpp"

namespace baton {

namespace {

using enum Collective;

enum Flags : unsigned { plain = 0, uneven = 1, ordered = 2, pipelined = 4 };

struct Row {
  Collective collective;
  const char* name;
  Schedule (*generate)(const Problem&);
  Cost (*cost)(const Problem&);
  unsigned flags;
  const char *rounds, *volume, *source;
  std::string (*refuses)(const Problem&) = nullptr;
};

// The first of each collective is its reference: the simplest.
constexpr Row rows[] = {
    {broadcast, "linear", broadcast_linear, broadcast_linear_cost, plain, "P-1",
     "(P-1)n by the root", "folklore"},
    {broadcast, "binomial", broadcast_binomial, broadcast_binomial_cost, plain, "ceil(log2 P)",
     "n ceil(log2 P) by the root", "Johnsson & Ho, IEEE Transactions on Computers 38(9), 1989"},
    {broadcast, "chain", broadcast_chain, broadcast_chain_cost, plain, "P-1", "n", "folklore"},
    {broadcast, "scatter_ring", broadcast_scatter_ring, broadcast_scatter_ring_cost, plain,
     "ceil(log2 P) + P-1", "2n(P-1)/P by the root",
     "Zhou, Marjanovic, Niethammer & Gracia, arXiv:1603.06809, 2016"},
    {broadcast, "scatter_doubling", broadcast_scatter_doubling, broadcast_scatter_doubling_cost,
     plain, "2 ceil(log2 P)", "2n(P-1)/P by the root",
     "Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005; Bruck et al., IEEE TPDS 8(11), 1997"},
    {broadcast, "circulant", broadcast_circulant, broadcast_circulant_cost, pipelined,
     "blocks-1 + ceil(log2 P)", "about n", "Träff, arXiv:2312.11236, 2023"},
    {reduce, "linear", reduce_linear, reduce_linear_cost, ordered, "P-1", "n", "folklore"},
    {reduce, "binomial", reduce_binomial, reduce_binomial_cost, ordered,
     "ceil(log2 P), +1 if forwarded", "n", "Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005"},
    {reduce, "chain", reduce_chain, reduce_chain_cost, ordered, "P-1, +1 if forwarded", "n",
     "folklore"},
    {reduce, "circulant", reduce_circulant, reduce_circulant_cost, plain, "2 ceil(log2 P)",
     "n to 3n/2", "Rabenseifner, ICCS 2004; Träff, arXiv:2410.14234, 2024"},
    {gather, "linear", gather_linear, gather_linear_cost, uneven, "P-1", "n", "folklore"},
    {gather, "binomial", gather_binomial, gather_binomial_cost, uneven, "ceil(log2 P)",
     "n times the subtree, up to nP/2", "Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005"},
    {scatter, "linear", scatter_linear, scatter_linear_cost, uneven, "P-1", "(P-1)n by the root",
     "folklore"},
    {scatter, "binomial", scatter_binomial, scatter_binomial_cost, uneven, "ceil(log2 P)",
     "(P-1)n by the root", "Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005"},
    {scan, "recursive_doubling", scan_recursive_doubling, scan_recursive_doubling_cost, ordered,
     "ceil(log2 P)", "n ceil(log2(P-r))", "Hillis & Steele, CACM 29(12), 1986"},
    {exscan, "recursive_doubling", exscan_recursive_doubling, exscan_recursive_doubling_cost,
     ordered, "ceil(log2 P)", "n ceil(log2(P-r))", "Hillis & Steele, CACM 29(12), 1986"},
    {barrier, "dissemination", barrier_dissemination, barrier_dissemination_cost, plain,
     "ceil(log2 P)", "ceil(log2 P)",
     "Hensgen, Finkel & Manber, International Journal of Parallel Programming 17(1), 1988"},
    {all_reduce, "gather_broadcast", all_reduce_gather_broadcast, all_reduce_gather_broadcast_cost,
     ordered, "2(P-1)", "(P-1)n by rank 0, n by others", "folklore"},
    {all_reduce, "recursive_doubling", all_reduce_recursive_doubling,
     all_reduce_recursive_doubling_cost, ordered,
     "log2 Q, +2 where Q < P (Q: largest power of two in P)", "n log2 Q, +n for pairs",
     "Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005"},
    {all_reduce, "ring", all_reduce_ring, all_reduce_ring_cost, plain, "2(P-1)", "2n(P-1)/P",
     "Patarasuk & Yuan, JPDC 69(2), 2009"},
    {all_reduce, "tree", all_reduce_tree, all_reduce_tree_cost, ordered, "2 ceil(log2 P)",
     "n ceil(log2 P) by rank 0", "Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005"},
    {all_reduce, "double_tree", all_reduce_double_tree, all_reduce_double_tree_cost, ordered,
     "at most 4 ceil(log2 P)", "at most 2n",
     "Sanders, Speck & Träff, Parallel Computing 35(12), 2009"},
    {all_reduce, "rabenseifner", all_reduce_rabenseifner, all_reduce_rabenseifner_cost, ordered,
     "2 log2 Q, +2 where Q < P (Q: largest power of two in P)", "2n(Q-1)/Q, +n for pairs",
     "Rabenseifner, ICCS 2004"},
    {all_reduce, "circulant", all_reduce_circulant, all_reduce_circulant_cost, plain,
     "2 ceil(log2 P)", "2n(P-1)/P", "Träff, arXiv:2410.14234, 2024"},
    {all_reduce, "in_order", all_reduce_in_order, all_reduce_in_order_cost, ordered,
     "P-1 + ceil(log2 P)", "2n(P-1)/P",
     "Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005; Träff, arXiv:2410.14234, 2024"},
    {reduce_scatter, "linear", reduce_scatter_linear, reduce_scatter_linear_cost, uneven | ordered,
     "P-1", "n(P-1)", "Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005"},
    {reduce_scatter, "ring", reduce_scatter_ring, reduce_scatter_ring_cost, uneven, "P-1", "n(P-1)",
     "Patarasuk & Yuan, JPDC 69(2), 2009"},
    {reduce_scatter, "recursive_halving", reduce_scatter_recursive_halving,
     reduce_scatter_recursive_halving_cost, uneven,
     "log2 Q, +2 where Q < P (Q: largest power of two in P)", "n(P-P/Q), up to nP for pairs",
     "Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005"},
    {reduce_scatter, "circulant", reduce_scatter_circulant, reduce_scatter_circulant_cost, uneven,
     "ceil(log2 P)", "n(P-1)", "Träff, arXiv:2410.14234, 2024"},
    {all_gather, "linear", all_gather_linear, all_gather_linear_cost, uneven, "P-1", "(P-1)n",
     "folklore"},
    {all_gather, "ring", all_gather_ring, all_gather_ring_cost, uneven, "P-1", "(P-1)n",
     "Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005"},
    {all_gather, "recursive_doubling", all_gather_recursive_doubling,
     all_gather_recursive_doubling_cost, uneven,
     "log2 Q, +2 where Q < P (Q: largest power of two in P)", "(P-1)n; else up to 2.4 P n",
     "Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005"},
    {all_gather, "bruck", all_gather_bruck, all_gather_bruck_cost, uneven, "ceil(log2 P)", "(P-1)n",
     "Bruck et al., IEEE TPDS 8(11), 1997"},
    {all_gather, "neighbor_exchange", all_gather_neighbor_exchange,
     all_gather_neighbor_exchange_cost, uneven, "P/2", "(P-1)n",
     "Chen, Zhang, Zhang & Yuan, HPC Asia 2005", all_gather_neighbor_exchange_refuses},
    {all_gather, "circulant", all_gather_circulant, all_gather_circulant_cost, uneven,
     "ceil(log2 P)", "(P-1)n", "Träff, arXiv:2410.14234, 2024"},
    {all_to_all, "spread_out", all_to_all_spread_out, all_to_all_spread_out_cost, uneven, "P-1",
     "(P-1)n", "Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005"},
    {all_to_all, "pairwise", all_to_all_pairwise, all_to_all_pairwise_cost, uneven,
     "P-1 for even P, P for odd P", "(P-1)n",
     "Thakur, Rabenseifner & Gropp, IJHPCA 19(1), 2005; Sanders & Träff, Euro-Par 2002"},
    {all_to_all, "bruck", all_to_all_bruck, all_to_all_bruck_cost, plain, "ceil(log2 P)",
     "about n P log2(P) / 2",
     "Bruck et al., IEEE TPDS 8(11), 1997; Träff, Rougier & Hunold, ICS 2014"},
};

}  // namespace

Registry Registry::builtin() {
  Registry table;
  for (const Row& row : rows) {
    table.add({.collective = row.collective,
               .name = row.name,
               .generate = row.generate,
               .cost = row.cost,
               .refuses = row.refuses,
               .uneven = (row.flags & uneven) != 0,
               .ordered = (row.flags & ordered) != 0,
               .pipelined = (row.flags & pipelined) != 0,
               .rounds = row.rounds,
               .volume = row.volume,
               .source = row.source});
  }
  return table;
}

}  // namespace baton
