#include "cost.hpp"

#include <algorithm>

namespace baton {

double estimate(const Algorithm& algorithm, const Problem& problem, std::size_t element_bytes,
                std::int64_t segment, const NetworkParameters& network) {
  const auto bytes = static_cast<double>(element_bytes);
  double worst = 0;
  for (const int rank : {0, problem.root, problem.size / 2, problem.size - 1}) {
    Problem sample = problem.at(rank);
    sample.in_place = false;  // may differ between ranks, and must not decide
    const Cost cost = algorithm.cost(sample);
    const auto rounds = static_cast<double>(cost.rounds);
    const double volume = static_cast<double>(std::max(cost.sent, cost.received)) * bytes;
    const double folded = static_cast<double>(cost.folded) * bytes;
    const double path = std::max(volume, static_cast<double>(cost.path) * bytes);
    double time = rounds * network.latency;
    if (segment > 0 && volume > static_cast<double>(segment)) {
      const auto piece = static_cast<double>(segment);
      time += (rounds * piece + volume) * network.per_byte + volume / piece * network.per_piece +
              (1 - network.hidden_folds) * folded * network.fold_per_byte;
    } else {
      time += path * network.per_byte + folded * network.fold_per_byte;
    }
    worst = std::max(worst, time);
  }
  return worst;
}

}  // namespace baton
