#pragma once

#include <functional>
#include <string>
#include <vector>

#include "baton/simulate.hpp"
#include "cli/common/world.hpp"

namespace baton::cli::calibrate {

/// A network's parameters by messages of two ranks, all others asleep, and of all at once. All
/// functions are collective; times are ns, the same on all ranks.
class Calibration {
 public:
  /// `seconds`: of a sample, at least. `says` is called before each part, on all ranks. Throws
  /// Error(unsupported) where the ranks have no plain messages.
  Calibration(World& world, double seconds, std::function<void(const std::string&)> says);

  /// `processors` as Network has it; negative: to be found out.
  Network measure(int processors);

 private:
  struct Pair {
    int first = -1, second = -1;
  };
  /// Measured times of messages of one size.
  struct Sample {
    std::int64_t bytes;
    double one_way;                ///< of a ping-pong
    double gap;                    ///< between messages, many of which are under way
    double send = 0, receive = 0;  ///< of the processors; eager messages only
  };

  NetworkLevel level(const Pair& pair, const std::string& what);
  void fit(NetworkLevel& level, const std::vector<Sample>& samples, bool processors_copy) const;
  void fit_burst(NetworkLevel& level, const std::vector<Sample>& samples) const;
  void share(const NetworkLevel& level, std::vector<Sample>& samples);

  double typical(const std::function<double()>& sample, double share = 0.25);
  double one_way(const Pair& pair, std::int64_t bytes);
  double gap(const Pair& pair, std::int64_t bytes);
  double sending(const Pair& pair, std::int64_t bytes, double one_way);
  double receiving(const Pair& pair, std::int64_t bytes, double one_way);
  double posting(const Pair& pair);
  bool waits_for_receiver(const Pair& pair, std::int64_t bytes);
  std::int64_t eager_limit(const Pair& pair);
  double exchanging(std::int64_t bytes);

  World& world_;
  double seconds_;
  std::function<void(const std::string&)> says_;
  std::unique_ptr<PlainMessages> messages_;
  Pair within_, across_;
  int processors_ = 0;
  TimeTable copy_;
};

}  // namespace baton::cli::calibrate
