#pragma once

#include <string>
#include <vector>

#include "options.hpp"

namespace baton::transformer::program {

/// The largest difference between corresponding tensors, relative to the largest element; of
/// gradients, to the largest element of any.
struct Difference {
  double relative = 0;
  std::string where;  ///< the tensor's name and the epoch

  void add(double other, const std::string& at);
};

/// The differences of the parallel run from the run on one rank, at the end of each epoch.
struct Differences {
  Difference loss, output, gradients, weights;
  double largest() const;
};

struct Outcome {
  std::vector<double> losses;            ///< of each epoch: mean over its samples, before each step
  std::vector<double> reference_losses;  ///< on one rank; with --check, on rank 0
  Differences differences;               ///< likewise
  std::string stopped;                   ///< why training ended early
  double seconds = 0;                    ///< of steps, without the reference's
};

/// Hears how training goes, on rank 0.
class Listener {
 public:
  virtual ~Listener() = default;
  virtual void step(std::int64_t done, std::int64_t of, int epoch) = 0;
  virtual void epoch(const Outcome& outcome) = 0;
};

/// Trains as `options`, which are settled, say. Collective; `listener` may be null. Data and
/// weights depend on the seed only, not on the ranks. Ends early where a loss is no finite number.
template <class T>
Outcome train(Communicator& world, const TrainOptions& options, Listener* listener);

}  // namespace baton::transformer::program
