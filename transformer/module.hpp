#pragma once
/// Models with explicit forward and backward.

#include <cstdint>
#include <functional>
#include <memory>
#include <typeinfo>
#include <utility>
#include <vector>

#include "baton/export.hpp"
#include "param.hpp"
#include "random.hpp"

namespace BATON_API baton {
namespace transformer {

/// One micro-batch on its way through a model: what forward keeps for backward, last in first out,
/// and where this rank's piece of the batch lies. Any number may be under way.
class Context {
 public:
  /// Whether forward keeps what backward needs. Without it, memory stays small.
  bool keeps = true;
  /// Whether dropout happens.
  bool training = true;
  Random random;                  ///< of dropout; another one for each step and micro-batch
  std::int64_t first_sample = 0;  ///< of this rank's samples, in the whole batch
  /// Called between pieces of long computations; advances what is under way.
  std::function<void()> meanwhile;
  /// Called by backward when a parameter's gradient is complete on this rank.
  std::function<void(const ParamInfo&)> completed;

  template <class S>
  void push(S saved) {
    if (keeps) saved_.emplace_back(std::move(saved));
  }
  void complete(const ParamInfo& param) const {
    if (completed) completed(param);
  }
  /// What the matching push() kept. Throws Error(invalid_argument) where there is none, or it is
  /// another's.
  template <class S>
  S pop() {
    S saved = std::move(*static_cast<S*>(last(typeid(S))));
    saved_.pop_back();
    return saved;
  }
  std::size_t kept() const { return saved_.size(); }

 private:
  void* last(const std::type_info& type);
  struct Slot {
    template <class S>
    explicit Slot(S saved) : value(std::make_shared<S>(std::move(saved))), type(&typeid(S)) {}
    std::shared_ptr<void> value;
    const std::type_info* type;
  };
  std::vector<Slot> saved_;
};

/// A differentiable function of activations, with parameters.
template <class T>
class Module {
 public:
  virtual ~Module() = default;
  virtual Array<T> forward(const Array<T>& x, Context& context) = 0;
  /// The gradient by x of what forward() was given last and backward() was not; adds to the
  /// gradients of the parameters.
  virtual Array<T> backward(const Array<T>& dy, Context& context) = 0;
  /// In the order in which backward completes their gradients.
  virtual Params<T> params() = 0;
  void zero_grads() {
    for (Param<T>* param : params()) param->zero_grad();
  }
};

}  // namespace transformer
}  // namespace baton
