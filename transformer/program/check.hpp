#pragma once
/// How far a run is from the same run on one rank.

#include <string>

#include "options.hpp"
#include "task.hpp"

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

/// A task in the form in which it is trained.
template <class T>
struct Replicated {
  Task<T>& task;
  DataParallel<T>& replicas;
};

/// Adds the differences that `options` ask for, of outputs, gradients and weights, at the end of an
/// epoch. `reference` is the task alone, on rank 0, and null on others. Collective over the mesh.
template <class T>
void compare(const TrainOptions& options, const Mesh& mesh, const Replicated<T>& found,
             const Replicated<T>* reference, int epoch, Differences& differences);

}  // namespace baton::transformer::program
