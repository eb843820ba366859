#pragma once
/// Models with explicit forward and backward.

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include "ops/ops.hpp"
#include "param.hpp"
#include "random.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// One micro-batch on its way through a model: the values that forward keeps for backward, last in
/// first out, and the place of this rank's piece in the batch. Any number may be under way.
class Context {
 public:
  /// Whether forward keeps the values that backward needs. Without them, memory stays small.
  bool keeps = true;
  /// Whether dropout happens.
  bool training = true;
  /// Whether backward leaves gradients of weights to compute_postponed().
  bool postpones = false;
  Random random;                  ///< for dropout; another one for each step and micro-batch
  std::int64_t first_sample = 0;  ///< index of this rank's first sample in the whole batch
  /// Called between pieces of long computations; advances operations that are under way.
  Meanwhile meanwhile;
  /// Called by backward when a parameter's gradient is complete on this rank.
  std::function<void(const ParamInfo&)> completed;
  /// Called before a model uses the parameters of a unit, its number in Model::units(), and when it
  /// has used them, by forward and by backward. A model of one unit need not call them.
  std::function<void(std::size_t unit, bool backward)> before, after;

  /// Keeps a value for the matching pop(), if `keeps`.
  template <class S>
  void push(S saved) {
    if (keeps) saved_.emplace_back(std::move(saved));
  }
  /// Reports that the gradient of `param` is complete on this rank.
  void complete(const ParamInfo& param) const {
    if (completed) completed(param);
  }
  /// Reports the use of a unit's parameters, which begins.
  void enter(std::size_t unit, bool backward) const {
    if (before) before(unit, backward);
  }
  /// The same use ends.
  void leave(std::size_t unit, bool backward) const {
    if (after) after(unit, backward);
  }
  /// The value that the matching push() kept. Throws Error(invalid_argument) if there is none, or
  /// it has another type.
  template <class S>
  S pop() {
    S saved = std::move(*static_cast<S*>(last(typeid(S))));
    saved_.pop_back();
    return saved;
  }
  /// The number of values that are kept.
  std::size_t kept() const { return saved_.size(); }

  /// A piece of backward that adds to gradients of weights, and that nothing else in backward waits
  /// for. It gets the context in which it runs, and calls `meanwhile` between its own pieces.
  using WeightPart = std::function<void(const Context& now, const Meanwhile& meanwhile)>;
  /// Runs `part`, with `beside`, or keeps it for compute_postponed(), with all that it has
  /// captured, if this context `postpones`.
  template <class Part>
  void weight_part(Part part, const Meanwhile& beside) {
    if (postpones) return postponed_.push_back(std::move(part));
    part(*this, beside);
  }
  /// The number of parts that are postponed.
  std::size_t postponed() const { return postponed_.size(); }
  /// Runs what has been postponed, in order, and gives up each part's values as soon as it has run.
  void compute_postponed();
  /// Takes over what another context of the same micro-batch has postponed.
  void take_postponed(Context& other);
  /// Throws Error(invalid_argument) unless backward has used all that forward kept, and nothing is
  /// postponed.
  void expect_finished() const;

 private:
  void* last(const std::type_info& type);
  struct Slot {
    template <class S>
    explicit Slot(S saved) : value(std::make_shared<S>(std::move(saved))), type(&typeid(S)) {}
    std::shared_ptr<void> value;
    const std::type_info* type;
  };
  std::vector<Slot> saved_;
  std::deque<WeightPart> postponed_;
};

/// Parameters that a model uses at the same time, those of a block for example.
template <class T>
struct Unit {
  std::string name;
  Params<T> params;
};

/// Parameters with gradients, as training sees them.
template <class T>
class Model {
 public:
  virtual ~Model() = default;
  /// All parameters, in the order in which backward completes their gradients.
  virtual Params<T> params() = 0;
  /// The same by units, in the order in which forward first uses them.
  virtual std::vector<Unit<T>> units() { return {{"model", params()}}; }
  /// Sets the gradients of all parameters to zero.
  void zero_grads() {
    for (Param<T>* param : params()) param->zero_grad();
  }
};

/// A differentiable function of activations, with parameters.
template <class T>
class Module : public Model<T> {
 public:
  /// The function of x. Keeps the values that backward() needs in `context`.
  virtual Array<T> forward(const Array<T>& x, Context& context) = 0;
  /// The gradient by x of the last forward() with this context that has had no backward(). Adds to
  /// the gradients of the parameters.
  virtual Array<T> backward(const Array<T>& dy, Context& context) = 0;
};

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
