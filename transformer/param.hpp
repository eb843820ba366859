#pragma once
/// Parameters of a model, and the reduction of their gradients.

#include <cstdint>
#include <string>
#include <vector>

#include "baton/export.hpp"
#include "mesh.hpp"
#include "tensor.hpp"

namespace BATON_API baton {
namespace transformer {

class Accelerator;

/// Which part of a whole parameter a rank has: all of it, or one of the equal parts along a
/// dimension, by its rank along an axis.
struct Placement {
  int dim = -1;  ///< -1: all of it
  Axis axis = Axis::tp;
};

/// What there is to say of a parameter, whatever its elements are.
struct ParamInfo {
  std::string name;
  Placement placement;
  /// Axes along which the gradient on this rank is only a summand of it. sync_grads() sums it over
  /// exactly these.
  Axes partial;
  bool decays = true;  ///< whether weight decay applies: to matrices, not to norms and biases
};

template <class T>
struct Param : ParamInfo {
  Array<T> value;
  Array<T> grad;  ///< of the same shape; backward adds to it

  Param() = default;
  Param(std::string name, Array<T> value, Placement placement = {})
      : ParamInfo{std::move(name), placement, {}, value.shape().rank() > 1},
        value(std::move(value)),
        grad(this->value.shape()) {}
  bool empty() const { return value.empty(); }
  void zero_grad();
};

template <class T>
using Params = std::vector<Param<T>*>;

/// Moves values and gradients from the host's memory to the accelerator's. What optimizers keep
/// lies where parameters lay when they were made.
template <class T>
void move_to(Accelerator& accelerator, const Params<T>& params);

/// Every gradient is its sum over the axes along which it is partial. Gradients that are summed
/// over the same axes travel together, in buckets of at most `bucket_bytes` (a larger one alone).
/// Collective over the mesh; on all ranks with the same parameters in the same order.
template <class T>
void sync_grads(const Params<T>& params, const Mesh& mesh, std::int64_t bucket_bytes = 4 << 20);

/// The same while backward goes on: a bucket's sum starts as soon as its last gradient is complete.
/// Every rank reports the same parameters in the same order, each once a step.
template <class T>
class GradientBuckets {
 public:
  GradientBuckets(const Params<T>& params, const Mesh& mesh, std::int64_t bucket_bytes = 4 << 20);
  /// The gradient of `param` is complete on this rank.
  void ready(const ParamInfo& param);
  /// Advances what is under way.
  void progress();
  /// What this rank sends in each step.
  Traffic traffic() const;
  /// Starts what has not been, and returns when all gradients are sums. Ready for the next step.
  void finish();

 private:
  struct Bucket {
    Group group;
    Params<T> params;
    std::vector<Data> data;
    std::vector<bool> complete;  ///< of each gradient
    Started request;
    bool started = false;
  };
  void start(Bucket& bucket);
  std::vector<Bucket> buckets_;
};

/// The whole of a parameter that is placed along an axis. Collective over that axis.
template <class T>
Array<T> whole_value(const Param<T>& param, const Mesh& mesh);
template <class T>
Array<T> whole_grad(const Param<T>& param, const Mesh& mesh);

/// This rank's part of a whole, as `placement` says.
template <class T>
Array<T> part_of(View<const std::type_identity_t<T>> whole, const Placement& placement,
                 const Mesh& mesh);

}  // namespace transformer
}  // namespace baton
