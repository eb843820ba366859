#include "cost.hpp"

#include <algorithm>
#include <vector>

namespace baton::costs {
namespace {

/// The load of one kind of link: messages and bytes.
struct Load {
  double rounds = 0, depth = 0;
  double path = 0;     ///< of the longest path
  double volume = 0;   ///< of the busiest rank, or of the link that ranks share
  bool fills = false;  ///< the pipeline takes a piece each round to fill, on any path
};

bool cut(const Load& load, double piece) { return piece > 0 && load.volume > piece; }

double time_of(const Load& load, double piece, const LinkParameters& link) {
  const double messages = load.depth * link.latency + load.rounds * link.overhead;
  const auto per_byte = [&](double message) {
    return link.per_byte * (message > link.eager ? link.rendezvous : 1);
  };
  if (!cut(load, piece)) {
    const double bytes = std::max(load.path, load.volume);
    return messages + bytes * per_byte(load.rounds > 0 ? bytes / load.rounds : 0);
  }
  const double fill = load.rounds * piece;
  const double ahead = load.fills ? fill : std::min(fill, std::max(0.0, load.path - load.volume));
  return messages + (ahead + load.volume) * per_byte(piece) + load.volume / piece * link.per_piece;
}

/// The number of a host's ranks that use its link at once.
double sharing(const Algorithm& algorithm, const Hosts& hosts) {
  const bool one = algorithm.neighbors && std::is_sorted(hosts.of().begin(), hosts.of().end());
  return one ? 1 : hosts.largest();
}

double time_of(const Algorithm& algorithm, const Problem& problem, double element_bytes,
               double piece, const NetworkParameters& network, const Work& work) {
  const Cost cost = algorithm.cost(problem);
  const double own = static_cast<double>(std::max(cost.sent, cost.received)) * element_bytes;
  const double volume = std::max(own, work.moved * element_bytes);
  const double path = static_cast<double>(cost.path) * element_bytes;
  Load load{.rounds = static_cast<double>(cost.rounds),
            .depth = static_cast<double>(cost.depth > 0 ? cost.depth : cost.rounds),
            .path = path,
            .volume = volume,
            .fills = algorithm.pipelined};
  LinkParameters link = problem.hosts ? network.across : network.within;
  link.overhead *= work.ranks;
  double time = 0;
  if (algorithm.hierarchical) {
    const auto local_rounds = static_cast<double>(cost.local_rounds);
    const double local_path = static_cast<double>(cost.local_path) * element_bytes;
    load.rounds -= local_rounds;
    load.depth -= local_rounds;
    load.volume = path;
    const Load local{local_rounds, local_rounds, local_path, local_path, true};
    time = time_of(local, piece, network.within);
  } else if (problem.hosts) {
    const double ranks = sharing(algorithm, *problem.hosts);
    const double spread = ranks * (algorithm.neighbors ? 1 : link.congestion);
    load.path *= spread;
    load.volume *= spread;
  }
  const double hidden = cut(load, piece) ? link.hidden_folds : 0;
  double folded = std::max(static_cast<double>(cost.folded), work.folded) * element_bytes;
  const double message = cut(load, piece) ? piece : own / std::max(1.0, load.rounds);
  if (work.folded > 0 && message > link.cached) folded *= link.uncached;
  return time + time_of(load, piece, link) + (1 - hidden) * folded * link.fold_per_byte;
}

}  // namespace

namespace {

/// A few ranks that stand for all.
std::vector<Problem> samples(const Problem& problem) {
  std::vector<Problem> few;
  for (const int rank : {0, problem.root, problem.size / 2, problem.size - 1}) {
    few.push_back(problem.at(rank));
    few.back().in_place = false;  // in_place may differ between ranks, so it must not decide
  }
  return few;
}

}  // namespace

Work work_of(const Algorithm& algorithm, const Problem& problem, const NetworkParameters& network) {
  if (problem.hosts || network.cores == 0 || network.cores >= problem.size) return {};
  Work work{.ranks = static_cast<double>(problem.size) / network.cores};
  for (int rank = 0; rank < problem.size; ++rank) {
    Problem one = problem.at(rank);
    one.in_place = false;
    const Cost cost = algorithm.cost(one);
    work.moved += static_cast<double>(cost.sent) + static_cast<double>(cost.received);
    work.folded += static_cast<double>(cost.folded);
  }
  work.moved /= network.cores;
  work.folded /= network.cores;
  return work;
}

std::int64_t most_sent(const Algorithm& algorithm, const Problem& problem) {
  std::int64_t most = 0;
  for (const Problem& sample : samples(problem)) most = std::max(most, algorithm.cost(sample).sent);
  return most;
}

double estimate(const Algorithm& algorithm, const Problem& problem, std::size_t element_bytes,
                std::int64_t segment, const NetworkParameters& network, const Work& work) {
  double worst = 0;
  for (const Problem& sample : samples(problem)) {
    worst = std::max(worst, time_of(algorithm, sample, static_cast<double>(element_bytes),
                                    static_cast<double>(segment), network, work));
  }
  return worst;
}

}  // namespace baton::costs
