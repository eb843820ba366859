#pragma once
/// What makes a step along gradients.

#include <cstdint>
#include <vector>

#include "baton/export.hpp"
#include "param.hpp"

namespace BATON_API baton {
namespace transformer {

/// Changes the values of parameters by their gradients, which stay as they are. It is made for
/// parameters as they are placed now; each rank steps its own parts. Elements are independent of
/// each other, so parts of a parameter change as the whole would. Of bf16, steps change a master in
/// f32, made with the optimizer, which values are rounded from; all else that is kept is f32, too.
template <class T>
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  /// Throws Error(invalid_argument) where a parameter has another shape than when this was made.
  virtual void step() = 0;
};

/// value -= learning_rate · gradient.
template <class T>
class Sgd final : public Optimizer<T> {
 public:
  Sgd(Params<T> params, double learning_rate);
  void step() override;

 private:
  Params<T> params_;
  std::vector<Shape> shapes_;
  std::vector<Array<Wide<T>>> masters_;  ///< of bf16
  double learning_rate_;
};

struct AdamWOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;  ///< decay of the means of gradients and of their squares
  double epsilon = 1e-8;
  double weight_decay = 1e-2;  ///< of parameters that decay (ParamInfo::decays)
};

/// Adam with decoupled weight decay and bias correction, as torch.optim.AdamW. Loshchilov, Hutter:
/// Decoupled weight decay regularization (2019).
template <class T>
class AdamW final : public Optimizer<T> {
 public:
  explicit AdamW(Params<T> params, const AdamWOptions& options = {});
  void step() override;

 private:
  struct BATON_HIDDEN State {
    Param<T>* param;
    Array<Wide<T>> mean, square;  ///< running means of the gradient and of its square
    Array<Wide<T>> master;        ///< of bf16
  };
  std::vector<State> states_;
  AdamWOptions options_;
  std::int64_t steps_ = 0;
};

}  // namespace transformer
}  // namespace baton
