#pragma once
/// Optimizers.

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "baton/export.hpp"
#include "param.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// What an optimizer keeps of parameters from step to step under one name, "mean" for example.
template <class T>
struct Kept {
  std::string name;
  /// As many elements as the parameter has, shared with the optimizer.
  std::map<const Param<T>*, Array<Wide<T>>> of;
};

/// Changes the values of parameters by their gradients, which stay as they are. It is made for the
/// present placement of parameters; each rank steps its own parts. Elements are independent of each
/// other, so parts of a parameter change as the whole would. For bf16, the optimizer keeps a master
/// copy in f32: steps change the master, and values are rounded from it. Its other state is f32,
/// too.
template <class T>
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  /// The factor of the next step.
  double learning_rate() const { return learning_rate_; }
  /// Changes it, as schedules do between steps.
  void set_learning_rate(double learning_rate) { learning_rate_ = learning_rate; }
  /// Makes one step. Throws Error(invalid_argument) if the shape of a parameter has changed since
  /// the optimizer was made.
  virtual void step() = 0;
  /// The optimizer's name, "AdamW" for example.
  virtual std::string name() const = 0;
  /// All that it keeps, to be saved and restored; the same names on every rank.
  virtual std::vector<Kept<T>> kept() = 0;
  /// The steps that it has made.
  std::int64_t steps() const { return steps_; }
  /// Goes on as if it had made so many steps.
  void set_steps(std::int64_t steps) { steps_ = steps; }

 protected:
  /// The learning rate until it is set.
  explicit Optimizer(double learning_rate) : learning_rate_(learning_rate) {}
  std::int64_t steps_ = 0;

 private:
  double learning_rate_;
};

/// A learning rate that rises from `peak` / `warmup` in equal steps to `peak`, then falls along
/// half a period of the cosine to `least`, where it stays. Loshchilov, Hutter: SGDR, stochastic
/// gradient descent with warm restarts (2017), without restarts.
struct CosineSchedule {
  double peak = 1e-3, least = 0;
  std::int64_t warmup = 0;  ///< steps of the rise
  std::int64_t steps = 1;   ///< in all, rise and fall

  /// That of a step, from 0 on. Throws Error(invalid_argument) if the step is negative, or the rise
  /// is longer than all steps.
  double at(std::int64_t step) const;
};

/// Settings of Sgd.
struct SgdOptions {
  double learning_rate = 0.1;
  double momentum = 0;      ///< decay of the velocity; 0: there is none
  double weight_decay = 0;  ///< for parameters that decay (ParamInfo::decays)
};

/// velocity = momentum · velocity + gradient + weight_decay · value, from 0 on; value -=
/// learning_rate · velocity: as torch.optim.SGD. Polyak: Some methods of speeding up the
/// convergence of iteration methods (1964).
template <class T>
class Sgd final : public Optimizer<T> {
 public:
  /// The parameters must outlive it.
  Sgd(Params<T> params, const SgdOptions& options);
  /// Without momentum and decay.
  Sgd(Params<T> params, double learning_rate)
      : Sgd(std::move(params), SgdOptions{.learning_rate = learning_rate}) {}
  void step() override;
  std::string name() const override { return "Sgd"; }
  std::vector<Kept<T>> kept() override;

 private:
  struct BATON_HIDDEN State {
    Param<T>* param;
    Shape shape;
    Array<Wide<T>> velocity;  ///< empty without momentum
    Array<Wide<T>> master;    ///< of bf16
  };
  std::vector<State> states_;
  SgdOptions options_;
};

/// Settings of AdamW.
struct AdamWOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;  ///< decay of the mean gradient and of the mean square
  double epsilon = 1e-8;
  double weight_decay = 1e-2;  ///< for parameters that decay (ParamInfo::decays)
};

/// Adam with decoupled weight decay and bias correction, as torch.optim.AdamW. Loshchilov, Hutter:
/// Decoupled weight decay regularization (2019).
template <class T>
class AdamW final : public Optimizer<T> {
 public:
  /// The parameters must outlive it.
  explicit AdamW(Params<T> params, const AdamWOptions& options = {});
  void step() override;
  std::string name() const override { return "AdamW"; }
  std::vector<Kept<T>> kept() override;

 private:
  struct BATON_HIDDEN State {
    Param<T>* param;
    Array<Wide<T>> mean, square;  ///< running means of the gradient and of its square
    Array<Wide<T>> master;        ///< of bf16
  };
  std::vector<State> states_;
  AdamWOptions options_;
};

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
