#include "run.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>

#include "../optimizer.hpp"
#include "../training/compare.hpp"
#include "../training/finite.hpp"
#include "../training/step.hpp"
#include "model.hpp"

namespace baton::transformer::program {

void Difference::add(double other, const std::string& at) {
  // A NaN is larger than any number, and stays.
  if (std::isnan(relative) || other <= relative) return;
  relative = other;
  where = at;
}

double Differences::largest() const {
  Difference all;
  for (const Difference& d : {loss, output, gradients, weights}) all.add(d.relative, d.where);
  return all.relative;
}

namespace {

template <class T>
std::unique_ptr<Optimizer<T>> make_optimizer(const TrainOptions& options, Params<T> params) {
  if (options.optimizer == OptimizerKind::sgd)
    return std::make_unique<Sgd<T>>(std::move(params), options.rate());
  const AdamWOptions adamw{.learning_rate = options.rate(), .weight_decay = options.weight_decay};
  return std::make_unique<AdamW<T>>(std::move(params), adamw);
}

/// A model, its optimizer, and the sum of its losses in this epoch.
template <class T>
struct Trained {
  Trained(const TrainOptions& options, std::unique_ptr<Sequential<T>> its_model)
      : model(std::move(its_model)), optimizer(make_optimizer<T>(options, model->params())) {}
  std::unique_ptr<Sequential<T>> model;
  std::unique_ptr<Optimizer<T>> optimizer;
  StepResult<T> last;
  double sum = 0;
};

template <class T>
class Training {
 public:
  Training(Communicator& world, const TrainOptions& options, Listener* listener)
      : world_(world),
        options_(options),
        listener_(listener),
        mesh_(world, options.axes()),
        data_(make_data<T>(options)),
        trained_(options, make_model<T>(options, mesh_)) {
    if (options.check && world.rank() == 0)
      reference_ = std::make_unique<Trained<T>>(options, make_model<T>(options));
  }

  Outcome run() {
    const std::int64_t samples = options_.samples, size = std::min(options_.batch(), samples);
    const std::int64_t each = (samples + size - 1) / size;  // steps of an epoch
    for (int epoch = 1; epoch <= options_.epochs; ++epoch) {
      trained_.sum = 0;
      if (reference_) reference_->sum = 0;
      for (std::int64_t begin = 0; begin < samples; begin += size) {
        step(samples_of(data_, {begin, std::min(begin + size, samples)}));
        if (!outcome_.stopped.empty()) return std::move(outcome_);
        if (listener_) listener_->step(steps_, each * options_.epochs, epoch);
      }
      outcome_.losses.push_back(trained_.sum / static_cast<double>(samples));
      if (options_.check) compare(epoch);
      if (listener_) listener_->epoch(outcome_);
    }
    return std::move(outcome_);
  }

 private:
  void step(const Batch<T>& batch) {
    const auto begin = std::chrono::steady_clock::now();
    StepOptions how;
    how.micro_batches = options_.micro_batches;
    how.random = Random{options_.seed}.of("dropout").of(static_cast<std::uint64_t>(steps_));
    ++steps_;
    const Share<T> share = share_of(batch, mesh_, options_.sequence_parallel);
    batch_ = batch.target.shape();
    others_ = share.others;
    trained_.last = train_step(*trained_.model, share, *trained_.optimizer, mesh_, how);
    trained_.sum += trained_.last.loss * static_cast<double>(batch.samples());
    outcome_.seconds +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (!std::isfinite(trained_.last.loss)) return stop(share, how);
    if (!reference_) return;
    how.micro_batches = 1;
    reference_->last =
        train_step(*reference_->model, whole_of(batch), *reference_->optimizer, Mesh(), how);
    reference_->sum += reference_->last.loss * static_cast<double>(batch.samples());
  }

  void stop(const Share<T>& share, const StepOptions& how) {
    Context context;
    context.random = how.random;
    context.first_sample = share.first_sample;
    outcome_.stopped = fmt::format(
        "step {}: expected a loss that is a finite number, found {}; the first that is not one is "
        "{}",
        steps_, trained_.last.loss,
        first_not_finite(*trained_.model, share.batch.x, context, world_));
  }

  void compare(int epoch) {
    const auto at = [&](const std::string& what) {
      return fmt::format("{}, epoch {}", what, epoch);
    };
    Differences& differences = outcome_.differences;
    const auto add = [&](Difference& difference, const std::string& what, const Array<T>& found,
                         const Array<T>& expected) {
      difference.add(compare_tensors<T>(found, expected, 0).relative(), at(what));
    };
    const Array<T> output = whole_of_shares(trained_.last.output, batch_, others_, mesh_);
    if (reference_) {
      const double loss = reference_->sum / static_cast<double>(options_.samples);
      outcome_.reference_losses.push_back(loss);
      const double difference = std::abs(outcome_.losses.back() - loss);
      differences.loss.add(difference == 0 ? 0 : difference / std::abs(loss), at("loss"));
      add(differences.output, "output", output, reference_->last.output);
    }
    const Params<T> params = trained_.model->params();
    const Params<T> references = reference_ ? reference_->model->params() : Params<T>();
    double steepest = 0;  // of any parameter: what is small beside it may be nothing but rounding
    for (const Param<T>* param : references)
      for (const T g : param->grad.span()) steepest = std::fmax(steepest, std::abs(double(g)));
    for (std::size_t p = 0; p < params.size(); ++p) {
      const Array<T> grad = whole_grad(*params[p], mesh_), value = whole_value(*params[p], mesh_);
      if (!reference_) continue;
      const double difference = compare_tensors<T>(grad, references[p]->grad, 0).max_difference;
      differences.gradients.add(difference == 0 ? 0 : difference / steepest, at(params[p]->name));
      add(differences.weights, params[p]->name, value, references[p]->value);
    }
  }

  Communicator& world_;
  const TrainOptions& options_;
  Listener* listener_;
  Mesh mesh_;
  Batch<T> data_;
  Trained<T> trained_;
  std::unique_ptr<Trained<T>> reference_;
  Shape batch_;  // of the last step's target
  Axes others_;  // of its shares
  std::int64_t steps_ = 0;
  Outcome outcome_;
};

}  // namespace

template <class T>
Outcome train(Communicator& world, const TrainOptions& options, Listener* listener) {
  return Training<T>(world, options, listener).run();
}

template Outcome train<float>(Communicator&, const TrainOptions&, Listener*);
template Outcome train<double>(Communicator&, const TrainOptions&, Listener*);

}  // namespace baton::transformer::program
