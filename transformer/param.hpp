#pragma once
/// Parameters of a model, and the reduction of their gradients.

#include <cstdint>
#include <string>
#include <vector>

#include "held.hpp"
#include "mesh.hpp"
#include "tensor.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

class Accelerator;

/// The part of a whole parameter that a rank has: all of it, or one of equal parts along a
/// dimension, chosen by its rank along an axis.
struct Placement {
  int dim = -1;  ///< -1: all of it
  Axis axis = Axis::tp;
};

/// Properties of a parameter that do not depend on its type.
struct ParamInfo {
  std::string name;
  Placement placement;
  /// Axes along which this rank's gradient is only a summand of the whole gradient. sync_grads()
  /// sums over exactly these.
  Axes partial;
  bool decays = true;  ///< whether weight decay applies: to matrices, not to norms and biases
  /// Axes along which the elements themselves are divided, as sharding does it. Then the parameter
  /// is this rank's elements, in one row.
  Axes sharded = {};
  /// Whether two stages of a pipeline have the parameter. It is divided by itself, so that both
  /// have the same parts of it.
  bool shared = false;
  /// Whether this is the second one, which does not count in the norm of all gradients.
  bool copy = false;
};

/// The name of a parameter, the same whether this rank has all of it or a part.
std::string whole_name(const ParamInfo& param);

/// A parameter of a model, or this rank's part of it, with its gradient.
template <class T>
struct Param : ParamInfo {
  Array<T> value;
  Array<T> grad;  ///< has the same shape; backward adds to it

  /// None.
  Param() = default;
  /// The gradient is zero. Weight decay applies if `value` has two dimensions or more.
  Param(std::string name, Array<T> value, Placement placement = {})
      : ParamInfo{std::move(name), placement, {}, value.shape().rank() > 1},
        value(std::move(value)),
        grad(this->value.shape()) {
    count_as(Purpose::parameters, this->value);
    count_as(Purpose::gradients, grad);
  }
  /// Whether there is none, a bias that a layer does not have for example.
  bool empty() const { return value.shape().rank() == 0; }
  /// Sets the gradient to zero.
  void zero_grad();
};

/// Some parameters of a model, which owns them.
template <class T>
using Params = std::vector<Param<T>*>;

/// Moves values and gradients from the host's memory to the accelerator's. An optimizer's state
/// lies where parameters lay when the optimizer was made.
template <class T>
void move_to(Accelerator& accelerator, const Params<T>& params);

/// Replaces every gradient by its sum over the axes along which it is partial. Gradients that are
/// summed over the same axes are sent together, in buckets of at most `bucket_bytes`; a larger one
/// is sent alone. Collective over the mesh: all ranks pass the same parameters in the same order.
template <class T>
void sync_grads(const Params<T>& params, const Mesh& mesh, std::int64_t bucket_bytes = 4 << 20);

/// After sync_grads(), for losses that are means over each rank's own samples: gradients that are
/// partial along axis dp become means over its ranks. No messages.
template <class T>
void average_sums(const Params<T>& params, const Mesh& mesh);

/// Gives every parameter the values of the first rank along the axes over which its gradient is
/// partial: ranks along these have the same values. Collective likewise.
template <class T>
void broadcast_params(const Params<T>& params, const Mesh& mesh);

/// The largest norm that gradients may have together. Returns the norm of all gradients, those of
/// the whole parameters of all ranks, as one vector, copies on other stages left out; if it is
/// larger than `most`, every gradient is scaled by most / norm. Gradients are complete
/// (sync_grads()). Collective likewise; the same norm on all ranks. Pascanu, Mikolov, Bengio: On
/// the difficulty of training recurrent neural networks (2013).
template <class T>
double clip_gradients(const Params<T>& params, const Mesh& mesh, double most);

/// Whether this rank's gradients are finite numbers. Only those on the host are looked at, unless
/// computations are emulated. No messages.
template <class T>
bool finite_gradients(const Params<T>& params);
/// The same of values.
template <class T>
bool finite_values(const Params<T>& params);

/// sync_grads() while backward goes on: a bucket's sum starts as soon as its last gradient is
/// complete. Every rank reports the same parameters in the same order, each once a step.
template <class T>
class GradientBuckets {
 public:
  /// Parameters and mesh must outlive it.
  GradientBuckets(const Params<T>& params, const Mesh& mesh, std::int64_t bucket_bytes = 4 << 20);
  /// The gradient of `param` is complete on this rank.
  void ready(const ParamInfo& param);
  /// Advances the sums that are under way.
  void progress();
  /// The messages and bytes that this rank sends in each step.
  Traffic traffic() const;
  /// Starts the sums that have not been started, and returns when all gradients are complete. Then
  /// it is ready for the next step.
  void finish();
  /// Returns when the sums that have been started are complete. Then it is ready for the next step.
  void forget();

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
  Call reduction(const Bucket& bucket) const;
  std::vector<Bucket> buckets_;
};

/// The whole of a parameter that is placed along an axis. Collective over that axis.
template <class T>
Array<T> whole_value(const Param<T>& param, const Mesh& mesh);
/// The whole of its gradient. Collective over that axis.
template <class T>
Array<T> whole_grad(const Param<T>& param, const Mesh& mesh);

/// This rank's part of a whole, as `placement` says.
template <class T>
Array<T> part_of(View<const std::type_identity_t<T>> whole, const Placement& placement,
                 const Mesh& mesh);

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
