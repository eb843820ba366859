#include "sample.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "clock.hpp"

namespace baton::cli {

int repeats_for(World& world, const std::function<void()>& run, double seconds) {
  return repeats_for([&](int runs) { return timed(world, run, runs); }, seconds);
}

int repeats_for(const std::function<double(int)>& timed_runs, double seconds) {
  timed_runs(1);  // first calls plan and connect
  constexpr double most = 1e7;
  double runs = 1;
  for (;;) {
    const double took = std::max(timed_runs(static_cast<int>(runs)), 1e-9);
    const double wanted = std::clamp(std::ceil(runs * seconds / took), 1.0, most);
    // Few runs tell little: the clock and the start together are part of what they took.
    if (took >= seconds / 4 || wanted <= runs) return static_cast<int>(wanted);
    runs = std::min(wanted, 16 * runs);
  }
}

std::vector<std::size_t> order_of_round(int round, std::size_t sides) {
  std::vector<std::size_t> order(sides);
  std::iota(order.begin(), order.end(), 0);
  if (round % 2 == 1) std::reverse(order.begin(), order.end());
  return order;
}

std::vector<std::vector<double>> alternate(std::size_t sides, int rounds,
                                           const std::function<double(std::size_t)>& sample) {
  std::vector<std::vector<double>> samples(sides);
  for (int round = 0; round < rounds; ++round) {
    for (const std::size_t side : order_of_round(round, sides)) {
      samples[side].push_back(sample(side));
    }
  }
  return samples;
}

Json samples_json(const std::vector<double>& seconds) {
  std::vector<Json> values;
  for (const double s : seconds) values.emplace_back(s * 1e6);
  return Json::array(values);
}

}  // namespace baton::cli
