#include "composition.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace baton::algorithms {
namespace {

std::int64_t path_of(const Cost& part) { return std::max({part.path, part.sent, part.received}); }

/// The steps of a rank of the part, over any links.
void add_work(Cost& cost, const Cost& part) {
  cost.sent += part.sent;
  cost.received += part.received;
  cost.scratch += part.scratch;
  cost.folded += part.folded;
}

}  // namespace

std::vector<int> ranks_at(const Hosts& hosts, int local) {
  std::vector<int> ranks;
  for (int h = 0; h < hosts.count(); ++h) {
    ranks.push_back(hosts.ranks(h)[static_cast<std::size_t>(local)]);
  }
  return ranks;
}

std::vector<int> mates_of(const Problem& p) {
  const auto ranks = p.hosts->ranks(p.hosts->of(p.rank));
  std::vector<int> mates(ranks.begin(), ranks.end());
  if (!rooted(p.collective)) return mates;
  const auto root = std::find(mates.begin(), mates.end(), p.root);
  if (root != mates.end()) std::rotate(mates.begin(), root, root + 1);
  return mates;
}

std::vector<int> leaders_of(const Problem& p) {
  std::vector<int> leaders = ranks_at(*p.hosts, 0);
  if (rooted(p.collective)) leaders[static_cast<std::size_t>(p.hosts->of(p.root))] = p.root;
  return leaders;
}

int place_in(std::span<const int> ranks, int rank) {
  return static_cast<int>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
}

Problem part_of(const Problem& whole, Collective collective, int size, int rank,
                std::int64_t count) {
  Problem part;
  part.collective = collective;
  part.size = size;
  part.rank = rank;
  part.count = count;
  part.in_place = true;
  part.commutative = whole.commutative;
  return part;
}

Problem part_of(const Problem& whole, Collective collective, std::span<const std::int64_t> counts,
                int rank) {
  Problem part = part_of(whole, collective, static_cast<int>(counts.size()), rank,
                         counts[static_cast<std::size_t>(rank)]);
  if (std::adjacent_find(counts.begin(), counts.end(), std::not_equal_to<>()) != counts.end()) {
    part.input_blocks = part.output_blocks = Blocks::packed(counts);
  }
  return part;
}

std::vector<std::int64_t> counts_of(const Problem& p, std::span<const int> ranks) {
  std::vector<std::int64_t> counts;
  for (const int rank : ranks) counts.push_back(p.block_count(rank));
  return counts;
}

std::vector<std::int64_t> host_counts(const Problem& p) {
  std::vector<std::int64_t> totals;
  for (int h = 0; h < p.hosts->count(); ++h) {
    const auto counts = counts_of(p, p.hosts->ranks(h));
    totals.push_back(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}));
  }
  return totals;
}

Regions blocks_of(const Chunks& blocks, std::span<const int> ranks) {
  Regions regions;
  for (const int rank : ranks) regions.push_back(blocks[rank]);
  return regions;
}

void add_local(Cost& cost, const Cost& part, std::int64_t rounds) {
  add_work(cost, part);
  cost.rounds += rounds;
  cost.depth += rounds;
  cost.local_rounds += rounds;
  cost.local_path += path_of(part);
}

void add_across(Cost& cost, const Cost& part, std::int64_t ranks_of_host) {
  add_work(cost, part);
  cost.path += ranks_of_host * path_of(part);
  add_rounds_across(cost, part);
}

void add_rounds_across(Cost& cost, const Cost& part) {
  cost.rounds += part.rounds;
  cost.depth += part.depth > 0 ? part.depth : part.rounds;
}

std::string uneven_hosts(const Problem& p) {
  return p.hosts->even() ? "" : "needs as many ranks on each host, found " + print(*p.hosts);
}

}  // namespace baton::algorithms
