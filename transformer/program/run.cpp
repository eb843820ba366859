#include "run.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>

#include "../emulated.hpp"
#include "../exchange.hpp"
#include "../optimizer.hpp"
#include "../state/checkpoint.hpp"
#include "task.hpp"

namespace baton::transformer::program {

double Outcome::seconds() const {
  double all = 0;
  for (const EpochSeconds& epoch : epochs) all += epoch.all;
  return all;
}

double Outcome::items_per_second() const {
  if (epochs.empty()) return 0;
  const std::size_t dropped = epochs.size() > 1 ? 1 : 0;
  double all = 0;
  std::int64_t counted = 0;
  for (std::size_t e = dropped; e < epochs.size(); ++e) {
    all += epochs[e].all;
    counted += items[e];
  }
  return static_cast<double>(counted) / all;
}

namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

template <class T>
std::unique_ptr<Optimizer<T>> make_optimizer(const TrainOptions& options, Params<T> params) {
  if (options.optimizer == OptimizerKind::sgd)
    return std::make_unique<Sgd<T>>(std::move(params), options.rate());
  if (options.optimizer == OptimizerKind::momentum) {
    return std::make_unique<Sgd<T>>(std::move(params),
                                    SgdOptions{.learning_rate = options.rate(),
                                               .momentum = 0.9,
                                               .weight_decay = options.weight_decay});
  }
  const AdamWOptions adamw{.learning_rate = options.rate(), .weight_decay = options.weight_decay};
  return std::make_unique<AdamW<T>>(std::move(params), adamw);
}

template <class T>
std::unique_ptr<DataParallel<T>> make_replicas(const TrainOptions& options, Model<T>& model,
                                               const Mesh& mesh) {
  if (options.parallel == Parallel::fsdp)
    return std::make_unique<FullyShardedDataParallel<T>>(model, mesh, options.sharding);
  const ReplicationOptions how{.overlap = options.overlap};
  return std::make_unique<DistributedDataParallel<T>>(model, mesh, how);
}

/// A task with its optimizer, and the sum of its losses in this epoch.
template <class T>
struct Trained {
  /// On the mesh, or alone if `world` is null.
  Trained(Communicator* world, const TrainOptions& options, const Mesh& its_mesh)
      : mesh(its_mesh),
        task(made(world, options, mesh)),
        replicas(world ? make_replicas<T>(options, task->model(), mesh)
                       : std::make_unique<DistributedDataParallel<T>>(task->model(), mesh)),
        optimizer(make_optimizer<T>(options, replicas->params())) {}

  static std::unique_ptr<Task<T>> made(Communicator* world, const TrainOptions& options,
                                       const Mesh& mesh) {
    const auto make = [&] {
      auto task = make_task<T>(world, options, mesh);
      if (!options.load.empty()) task->load(options.load);
      return task;
    };
    return world ? agreed(make) : make();  // alone, while others go on
  }
  StepLoss step(std::int64_t number, const StepOptions& how, double rate) {
    optimizer->set_learning_rate(rate);
    const StepLoss result = task->step(number, *replicas, *optimizer, how);
    sum += result.loss * static_cast<double>(task->items(number));
    return result;
  }

  const Mesh& mesh;
  std::unique_ptr<Task<T>> task;
  std::unique_ptr<DataParallel<T>> replicas;
  std::unique_ptr<Optimizer<T>> optimizer;
  double sum = 0;
};

template <class T>
class Training {
 public:
  Training(Communicator& world, const Traffic& sent, const TrainOptions& options,
           Listener* listener)
      : world_(world),
        sent_(sent),
        options_(options),
        listener_(listener),
        mesh_(world, options.axes()),
        counting_(std::make_unique<CountingScope>(memory_)),
        trained_(&world, options, mesh_) {
    counting_.reset();
    if (!options.resume.empty()) agreed([&] { resume(trained_); });
    memory_.forget_most();  // a model is whole before it is divided
    if (options.checks() && world.rank() == 0)
      reference_ = std::make_unique<Trained<T>>(nullptr, options, alone_);
    if (!options.resume.empty() && reference_) resume(*reference_);
  }

  Outcome run() {
    outcome_.stages = trained_.task->stages();
    outcome_.first_epoch = static_cast<int>(steps_ / trained_.task->steps()) + 1;
    for (int epoch = outcome_.first_epoch; epoch <= options_.epochs && !ended(); ++epoch) {
      if (!run_epoch(epoch)) return std::move(outcome_);
    }
    hold();
    count_sent();
    if (!options_.save.empty()) save();
    if (!emulated()) outcome_.written = trained_.task->writes(*trained_.replicas);
    return std::move(outcome_);
  }

 private:
  void save() {
    agreed([&] { trained_.task->save(*trained_.replicas, options_.save); });
  }
  /// Settings that decide which steps are made, but for the model's sizes and the learning rate.
  Metadata settings() const {
    return {{"model", std::string(name(options_.model))},
            {"seed", std::to_string(options_.seed)},
            {"batch_size", std::to_string(options_.batch())},
            {"steps_of_an_epoch", std::to_string(trained_.task->steps())}};
  }
  /// Ends training instead where a weight is no finite number.
  void save_checkpoint() {
    std::int32_t others = finite_values(trained_.replicas->params()) ? 0 : 1;
    world_.all_reduce(std::span(&others, 1), max);
    if (others > 0) {
      outcome_.stopped = fmt::format(
          "step {}: expected weights that are finite numbers afterwards, found others; {} is not "
          "written",
          steps_, options_.checkpoint);
      return;
    }
    TrainingPosition position;
    position.step = steps_;
    position.random = Random{options_.seed};
    position.notes = settings();
    agreed([&] {
      transformer::save_checkpoint(options_.checkpoint, trained_.task->model(), *trained_.replicas,
                                   *trained_.optimizer, mesh_, position);
    });
  }
  void resume(Trained<T>& trained) {
    const TrainingPosition position =
        load_checkpoint(options_.resume, trained.task->model(), *trained.replicas,
                        *trained.optimizer, trained.mesh);
    const auto refuse = [&](const std::string& expected, const std::string& found) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: expected {}, found {}", options_.resume, expected, found));
    };
    for (const auto& [key, value] : settings()) {
      const auto found = position.notes.find(key);
      const std::string its = found == position.notes.end() ? "none" : found->second;
      if (its != value) refuse(fmt::format("{} {}", key, value), its);
    }
    steps_ = position.step;
    if (ended()) refuse(fmt::format("a step before {}", all_steps()), std::to_string(steps_));
  }
  std::int64_t all_steps() const {
    const std::int64_t all = trained_.task->steps() * options_.epochs;
    return options_.steps > 0 ? std::min(options_.steps, all) : all;
  }
  bool ended() const { return steps_ >= all_steps(); }
  bool emulated() const { return options_.emulated_gflops > 0; }

  /// Returns whether all numbers were finite.
  bool run_epoch(int epoch) {
    trained_.sum = 0;
    trained_.task->start_epoch(epoch);
    if (reference_) {
      reference_->sum = 0;
      reference_->task->start_epoch(epoch);
    }
    EpochSeconds seconds;
    std::int64_t items = 0;
    const std::int64_t each = trained_.task->steps();
    for (std::int64_t number = steps_ % each; number < each && !ended(); ++number) {
      const StepLoss result = step(number, seconds);
      if (!outcome_.stopped.empty()) return false;
      items += trained_.task->items(number);
      seconds_ += seconds.all - epoch_seconds_;
      epoch_seconds_ = seconds.all;
      items_ += trained_.task->items(number);
      ++steps_here_;
      if (listener_) listener_->step(progress(epoch, result.loss));
      if (options_.checkpoint_steps > 0 && steps_ % options_.checkpoint_steps == 0)
        save_checkpoint();
      if (!outcome_.stopped.empty()) return false;
    }
    epoch_seconds_ = 0;
    average(seconds);
    outcome_.items.push_back(items);
    outcome_.losses.push_back(trained_.sum / static_cast<double>(items));
    if (options_.checks()) compare(epoch, static_cast<double>(items));
    if (const auto found =
            emulated() ? std::nullopt : trained_.task->validation(*trained_.replicas)) {
      outcome_.validation.push_back(found->loss);
      if (found->accuracy) outcome_.accuracy.push_back(*found->accuracy);
    }
    if (!options_.checkpoint.empty()) save_checkpoint();
    if (!outcome_.stopped.empty()) return false;
    if (listener_) listener_->epoch(outcome_);
    return true;
  }

  StepLoss step(std::int64_t number, EpochSeconds& seconds) {
    StepOptions how;
    how.micro_batches = options_.micro_batches;
    how.largest_norm = options_.clip;
    how.random = Random{options_.seed}.of("dropout").of(static_cast<std::uint64_t>(steps_));
    const double rate = learning_rate();
    ++steps_;
    const auto begin = Clock::now();
    const double exchanged = seconds_in_exchanges();
    const Traffic before = sent_;
    const StepLoss result = [&] {
      const CountingScope counting(memory_);
      std::optional<EmulationScope> emulation;
      if (emulated()) {
        emulation.emplace(EmulatedSpeed{options_.emulated_gflops, options_.emulated_optimizer_ns});
      }
      return trained_.step(number, how, rate);
    }();
    outcome_.step_seconds.push_back(seconds_since(begin));
    seconds.all += outcome_.step_seconds.back();
    in_step_ = {sent_.messages - before.messages, sent_.bytes - before.bytes};
    seconds.communication += seconds_in_exchanges() - exchanged;
    seconds.optimizer += result.optimizer_seconds;
    if (!std::isfinite(result.loss)) {
      outcome_.stopped = fmt::format(
          "step {}: expected a loss that is a finite number, found {}; the first that is not one "
          "is {}",
          steps_, result.loss, not_finite(how));
      return result;
    }
    if (!result.stepped) {
      outcome_.stopped = fmt::format(
          "step {}: expected gradients that are finite numbers, found others, at a loss of {}; "
          "weights are those before it",
          steps_, result.loss);
      return result;
    }
    if (!reference_) return result;
    how.micro_batches = 1;
    reference_->step(number, how, rate);
    return result;
  }
  std::string not_finite(const StepOptions& how) {
    std::string first;
    trained_.replicas->with_values([&] { first = trained_.task->not_finite(world_, how); });
    return first;
  }

  double learning_rate() const {
    if (options_.warmup == 0 && options_.least_rate < 0) return options_.rate();
    const std::int64_t all = all_steps();
    const CosineSchedule schedule{options_.rate(),
                                  options_.least_rate < 0 ? options_.rate() : options_.least_rate,
                                  std::min(options_.warmup, all), all};
    return schedule.at(steps_);
  }

  Progress progress(int epoch, double loss) const {
    const std::int64_t all = all_steps();
    return {steps_,
            all,
            epoch,
            loss,
            static_cast<double>(items_) / seconds_,
            seconds_ * static_cast<double>(all - steps_) / static_cast<double>(steps_here_)};
  }

  void average(EpochSeconds seconds) {
    double all[] = {seconds.all, seconds.communication, seconds.optimizer};
    world_.all_reduce(std::span(all), sum);
    const double ranks = world_.size();
    outcome_.epochs.push_back({all[0] / ranks, all[1] / ranks, all[2] / ranks});
  }

  /// The messages of the rank that sent the most bytes.
  void count_sent() {
    std::vector<std::int64_t> all(2 * static_cast<std::size_t>(world_.size()));
    const std::int64_t own[] = {in_step_.bytes, in_step_.messages};
    world_.all_gather(std::span(own), std::span(all));
    for (std::size_t at = 0; at < all.size(); at += 2)
      if (all[at] >= outcome_.sent.bytes) outcome_.sent = {all[at + 1], all[at]};
  }

  /// The memory of the rank that held the most.
  void hold() {
    if (Pipeline<T>* const pipeline = trained_.task->pipeline()) {
      double seconds[] = {pipeline->seconds().all, pipeline->seconds().computing};
      world_.all_reduce(std::span(seconds), sum);
      outcome_.bubble = seconds[0] > 0 ? 1 - seconds[1] / seconds[0] : 0;
    }
    for (int purpose = 0; purpose <= purpose_count; ++purpose) {
      const Held held =
          purpose < purpose_count ? memory_.held(static_cast<Purpose>(purpose)) : memory_.held();
      std::int64_t both[] = {held.now, held.most};
      world_.all_reduce(std::span(both), max);
      outcome_.held[static_cast<std::size_t>(purpose)] = {both[0], both[1]};
    }
  }

  void compare(int epoch, double items) {
    Differences& differences = outcome_.differences;
    std::optional<Replicated<T>> reference;
    if (reference_) {
      reference.emplace(Replicated<T>{*reference_->task, *reference_->replicas});
      const double loss = reference_->sum / items;
      outcome_.reference_losses.push_back(loss);
      const double apart = std::abs(outcome_.losses.back() - loss);
      if (options_.check_output)
        differences.loss.add(apart == 0 ? 0 : apart / std::abs(loss),
                             fmt::format("loss, epoch {}", epoch));
    }
    program::compare<T>(options_, mesh_, {*trained_.task, *trained_.replicas},
                        reference ? &*reference : nullptr, epoch, differences);
  }

  Communicator& world_;
  const Traffic& sent_;
  Traffic in_step_;  // the last
  const TrainOptions& options_;
  Listener* listener_;
  const Mesh mesh_, alone_;
  MemoryCount memory_;
  std::unique_ptr<CountingScope> counting_;  // while the model is made
  Trained<T> trained_;
  std::unique_ptr<Trained<T>> reference_;
  std::int64_t steps_ = 0, items_ = 0;
  std::int64_t steps_here_ = 0;  // without those before a checkpoint
  double seconds_ = 0, epoch_seconds_ = 0;
  Outcome outcome_;
};

}  // namespace

template <class T>
Outcome train(Communicator& world, const Traffic& sent, const TrainOptions& options,
              Listener* listener) {
  return Training<T>(world, sent, options, listener).run();
}

template Outcome train<float>(Communicator&, const Traffic&, const TrainOptions&, Listener*);
template Outcome train<double>(Communicator&, const Traffic&, const TrainOptions&, Listener*);
template Outcome train<bf16>(Communicator&, const Traffic&, const TrainOptions&, Listener*);

}  // namespace baton::transformer::program
