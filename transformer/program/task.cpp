#include "task.hpp"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "../models/language.hpp"
#include "../models/vision.hpp"
#include "../pipeline/models.hpp"
#include "../pipeline/split.hpp"
#include "../state/gpt2_weights.hpp"
#include "../training/finite.hpp"
#include "model.hpp"

namespace baton::transformer::program {
namespace {

/// The result of read() on every rank of `world`, which may be null.
template <class Data, class Read>
Data read_by_all(Communicator* world, const Read& read) {
  std::optional<Data> data;
  const auto attempt = [&] { data.emplace(read()); };
  if (world) {
    on_all_ranks(*world, attempt);
  } else {
    attempt();
  }
  return *std::move(data);
}

/// Samples of an epoch: as many as were asked for, of those that there are.
std::int64_t samples_of(const TrainOptions& options, std::int64_t all) {
  return options.samples > 0 ? std::min(options.samples, all) : all;
}

/// The layers of the stages of a pipeline, if the mesh has one. `parameters` and `seconds` give a
/// number for each layer, `seconds` on the first rank alone. Collective.
template <class Parameters, class Seconds>
StageLayers cut_layers(const TrainOptions& options, const Mesh& mesh, const Parameters& parameters,
                       const Seconds& seconds) {
  StageLayers cut;
  if (mesh.size(Axis::pp) == 1) return cut;
  const std::vector<double> costs = parameters();
  if (!options.cuts.empty()) {
    cut.layers = split_by_hand(static_cast<std::int64_t>(costs.size()), options.cuts);
    return cut;
  }
  if (options.split == Split::time) cut.seconds = costs_of_first_rank(mesh, seconds);
  cut.layers = split_by_cost(cut.seconds.empty() ? costs : cut.seconds, options.pipeline.stages);
  return cut;
}

/// The numbers of the first samples, as many as the first micro-batch of a pipeline has on a rank.
std::vector<std::int64_t> of_micro_batch(const TrainOptions& options, const Mesh& mesh,
                                         std::int64_t samples) {
  const std::int64_t slices = std::int64_t{mesh.size(Axis::dp)} * options.pipeline.micro_batches;
  const std::int64_t size = (options.batch() + slices - 1) / slices;
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(std::min(size, samples)));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

/// A model, or the parts of it that lie on this rank of a pipeline.
template <class T, class Part, class ItsStage>
class WholeOrParts {
 public:
  using Parts = PipelinedModel<T, Part, ItsStage>;

  /// `make` makes the whole, or layers of it.
  template <class Make>
  WholeOrParts(StageLayers cut, const TrainOptions& options, const Mesh& mesh, const Make& make)
      : cut_(std::move(cut)) {
    if (cut_.layers.empty()) {
      whole_ = make(std::nullopt);
      return;
    }
    parts_ = std::make_unique<Parts>(options.pipeline, cut_.layers, mesh,
                                     [&](Range range) { return make(std::optional(range)); });
  }
  Model<T>& model() {
    if (whole_) return *whole_;
    return parts_->pipeline();
  }
  Pipeline<T>* pipeline() { return parts_ ? &parts_->pipeline() : nullptr; }
  const StageLayers& cut() const { return cut_; }
  Parts& parts() { return *parts_; }
  Part& whole() { return *whole_; }
  /// call(the model), in either form.
  template <class Call>
  auto with(const Call& call) {
    return whole_ ? call(*whole_) : call(*parts_);
  }

 private:
  StageLayers cut_;
  std::unique_ptr<Part> whole_;
  std::unique_ptr<Parts> parts_;
};

/// Layers in a row, trained to a target by the mean squared error.
template <class T>
class Regression final : public Task<T> {
 public:
  Regression(const TrainOptions& options, const Mesh& mesh)
      : options_(options),
        mesh_(mesh),
        data_(make_data<T>(options)),
        others_(make_validation<T>(options)),
        model_(made()) {}

  Model<T>& model() override { return model_.model(); }
  Pipeline<T>* pipeline() override { return model_.pipeline(); }
  const StageLayers& stages() const override { return model_.cut(); }
  std::int64_t steps() const override {
    return (options_.samples + options_.batch() - 1) / options_.batch();
  }
  std::int64_t items(std::int64_t step) const override { return range(step).size(); }
  StepLoss step(std::int64_t step, DataParallel<T>& replicas, Optimizer<T>& optimizer,
                const StepOptions& how) override {
    const Batch<T> batch = samples_of(data_, range(step));
    batch_ = batch.target.shape();
    share_ = share(batch);
    const StepResult<T> result = model_.with(
        [&](auto& model) { return train_step(model, replicas, share_, optimizer, mesh_, how); });
    output_ = result.output;
    const StepLoss& loss = result;
    return loss;
  }
  Array<T> output(DataParallel<T>&) override {
    Array<T> own = output_;
    if (pipeline()) own = from_last_stage(*pipeline(), own, share_.batch.target.shape(), mesh_);
    return whole_of_shares(own, batch_, share_.others, mesh_);
  }
  std::optional<Validation> validation(DataParallel<T>& replicas) override {
    return model_.with([&](auto& model) {
      return Validation{evaluate(model, replicas, share(others_), mesh_), {}};
    });
  }
  std::string not_finite(Communicator& world, const StepOptions& how) override {
    if (pipeline()) return Task<T>::not_finite(world, how);
    Context context;
    context.random = how.random;
    context.first_sample = share_.first_sample;
    return first_not_finite(model_.whole(), share_.batch.x, context, world);
  }

 private:
  using Layers = WholeOrParts<T, LayersPart<T>, LayersStage<T>>;

  Layers made() const {
    const auto layers = mesh_.size(Axis::tp | Axis::sp) > 1 ? make_model<T>(options_, mesh_)
                                                            : make_model<T>(options_);
    StageLayers cut = cut_layers(
        options_, mesh_, [&] { return parameters_of_layers(*layers); },
        [&] {
          const auto numbers = of_micro_batch(options_, mesh_, data_.samples());
          const Range range{0, static_cast<std::int64_t>(numbers.size())};
          return seconds_of_layers(*make_model<T>(options_), samples_of(data_.x, range));
        });
    const std::int64_t few = std::min<std::int64_t>(mesh_.size(Axis::dp), data_.samples());
    std::vector<LayersPart<T>> parts;
    if (!cut.layers.empty())
      parts = parts_of(*layers, cut.layers, share(samples_of(data_, Range{0, few})).batch.x);
    const std::vector<Range> ranges = cut.layers;
    return Layers(std::move(cut), options_, mesh_, [&](std::optional<Range> range) {
      auto part = std::make_unique<LayersPart<T>>();
      if (!range) {
        static_cast<Sequential<T>&>(*part) = *layers;
      } else {
        const auto at = std::find(ranges.begin(), ranges.end(), *range) - ranges.begin();
        *part = std::move(parts[static_cast<std::size_t>(at)]);
      }
      return part;
    });
  }
  Range range(std::int64_t step) const {
    const std::int64_t begin = step * options_.batch();
    return {begin, std::min(begin + options_.batch(), options_.samples)};
  }
  Share<T> share(const Batch<T>& batch) const {
    return share_of(batch, mesh_, options_.sequence_parallel && mesh_.size(Axis::tp) > 1);
  }

  const TrainOptions& options_;
  const Mesh& mesh_;
  Batch<T> data_, others_;
  Layers model_;
  Share<T> share_;  // of the last step
  Shape batch_;     // of its target
  Array<T> output_;
};

/// GPT-2 on text.
template <class T>
class Language final : public Task<T> {
 public:
  Language(Communicator* world, const TrainOptions& options, const Mesh& mesh)
      : options_(options),
        mesh_(mesh),
        data_(read(world, options)),
        samples_(samples_of(options, data_.training.size())),
        model_(cut(), options, mesh,
               [&, random = Random{options.seed}](std::optional<Range> blocks) {
                 return std::make_unique<Gpt2<T>>(options.gpt2, random, mesh,
                                                  options.sequence_parallel, blocks);
               }) {
    start_epoch(1);
  }

  Model<T>& model() override { return model_.model(); }
  Pipeline<T>* pipeline() override { return model_.pipeline(); }
  const StageLayers& stages() const override { return model_.cut(); }
  std::int64_t steps() const override { return own_.steps; }
  std::int64_t items(std::int64_t) const override {
    return own_.batch * mesh_.size(Axis::dp) * options_.seq;
  }
  void start_epoch(int epoch) override {
    own_ = partition_dataset(samples_, options_.batch(), mesh_, options_.seed, epoch - 1);
  }
  StepLoss step(std::int64_t step, DataParallel<T>& replicas, Optimizer<T>& optimizer,
                const StepOptions& how) override {
    return model_.with([&](auto& model) {
      return train_step(model, replicas, share_of_step(data_.training, own_, step, mesh_),
                        optimizer, mesh_, how);
    });
  }
  /// The logits of the first sequence for validation.
  Array<T> output(DataParallel<T>& replicas) override {
    const std::int64_t first = 0;
    return logits_of(data_.validation.batch(std::span(&first, 1)).ids_view(), replicas);
  }
  /// What is added to all keys does not change attention.
  bool matters(const ParamInfo& param) const override {
    return param.name.find("k_proj_bias") == std::string::npos;
  }
  std::optional<Validation> validation(DataParallel<T>& replicas) override {
    const std::int64_t samples = std::min(options_.validation_samples, data_.validation.size());
    return model_.with([&](auto& model) {
      return Validation{
          evaluate(model, replicas, data_.validation, samples, options_.batch(), mesh_), {}};
    });
  }
  void load(const std::string& file) override {
    load_gpt2(model().params(), options_.gpt2, file, mesh_);
  }
  void save(DataParallel<T>& replicas, const std::string& file) override {
    replicas.with_values([&] { save_gpt2(model().params(), options_.gpt2, file, mesh_); });
  }
  std::string writes(DataParallel<T>& replicas) override {
    if (options_.writes == 0) return "";
    const std::vector<std::int32_t> prompt = data_.tokenizer.encode(options_.prompt);
    const Sampling sampling{options_.temperature, 0, Random{options_.seed}.of("sampling")};
    const std::function logits = [&](View<const std::int32_t> ids) {
      return logits_of(ids, replicas);
    };
    const auto written =
        generate<T>(logits, options_.gpt2.context, prompt, options_.writes, sampling);
    std::vector<std::int32_t> all = prompt;
    all.insert(all.end(), written.begin(), written.end());
    return data_.tokenizer.decode(all);
  }

 private:
  static TextData read(Communicator* world, const TrainOptions& options) {
    const std::vector<std::filesystem::path> files(options.text.begin(), options.text.end());
    const auto vocabulary = static_cast<int>(options.gpt2.vocabulary);
    return read_by_all<TextData>(
        world, [&] { return read_text_data(files, vocabulary, options.seq, options.validation); });
  }

  StageLayers cut() const {
    return cut_layers(
        options_, mesh_, [&] { return parameters_of_layers(options_.gpt2); },
        [&] {
          const TokenBatch batch =
              data_.training.batch(of_micro_batch(options_, mesh_, data_.training.size()));
          const auto tokens = static_cast<double>(batch.shape.elements());
          return seconds_of_layers<T>(options_.gpt2, TokenShare{batch, 0, tokens});
        });
  }
  Array<T> logits_of(View<const std::int32_t> ids, DataParallel<T>& replicas) {
    if (model_.pipeline()) return logits(model_.parts(), replicas, ids, mesh_);
    Context context;
    context.keeps = context.training = false;
    replicas.attach(context, false);
    return model_.whole().logits(ids, std::move(context));
  }

  const TrainOptions& options_;
  const Mesh& mesh_;
  TextData data_;
  std::int64_t samples_;
  WholeOrParts<T, Gpt2<T>, Gpt2Stage<T>> model_;
  RankData own_;
};

/// VGG16 on images.
template <class T>
class Vision final : public Task<T> {
 public:
  Vision(Communicator* world, const TrainOptions& options, const Mesh& mesh)
      : options_(options),
        mesh_(mesh),
        data_(read_by_all<Cifar10>(world, [&] { return read_cifar10(options.images); })),
        model_(cut(), options, mesh,
               [&, random = Random{options.seed}](std::optional<Range> layers) {
                 return std::make_unique<Vgg16<T>>(options.vgg16, random,
                                                   layers.value_or(Range{0, Vgg16<T>::layers}));
               }) {
    start_epoch(1);
  }

  Model<T>& model() override { return model_.model(); }
  Pipeline<T>* pipeline() override { return model_.pipeline(); }
  const StageLayers& stages() const override { return model_.cut(); }
  std::int64_t steps() const override { return own_.steps; }
  std::int64_t items(std::int64_t) const override { return own_.batch * mesh_.size(Axis::dp); }
  void start_epoch(int epoch) override {
    own_ = partition_dataset(samples_of(options_, data_.training.size()), options_.batch(), mesh_,
                             options_.seed, epoch - 1);
  }
  StepLoss step(std::int64_t step, DataParallel<T>& replicas, Optimizer<T>& optimizer,
                const StepOptions& how) override {
    return model_.with([&](auto& model) {
      return train_step(model, replicas, share_of_step<T>(data_.training, own_, step, mesh_),
                        optimizer, mesh_, how);
    });
  }
  /// The logits of the first images for validation.
  Array<T> output(DataParallel<T>& replicas) override {
    std::vector<std::int64_t> first(
        static_cast<std::size_t>(std::min<std::int64_t>(4, data_.validation.size())));
    std::iota(first.begin(), first.end(), 0);
    const Array<T> images = data_.validation.template inputs<T>(first);
    if (pipeline()) return logits(model_.parts(), replicas, images, mesh_);
    Context context;
    context.keeps = context.training = false;
    replicas.attach(context, false);
    return model_.whole().logits(images, std::move(context));
  }
  std::optional<Validation> validation(DataParallel<T>& replicas) override {
    const std::int64_t samples = std::min(options_.validation_samples, data_.validation.size());
    const Classification found = model_.with([&](auto& model) {
      return evaluate(model, replicas, data_.validation, samples, options_.batch(), mesh_);
    });
    return Validation{found.loss, found.accuracy};
  }
  void load(const std::string& file) override {
    load_weights(model().params(), format(), file, mesh_);
  }
  void save(DataParallel<T>& replicas, const std::string& file) override {
    replicas.with_values([&] {
      save_weights(model().params(), format(), file, mesh_, {{"format", "pt"}});
    });
  }

 private:
  StageLayers cut() const {
    return cut_layers(
        options_, mesh_, [&] { return parameters_of_layers(options_.vgg16); },
        [&] {
          const auto numbers = of_micro_batch(options_, mesh_, data_.training.size());
          const ImageBatch<T> batch{data_.training.template inputs<T>(numbers),
                                    data_.training.labels(numbers)};
          return seconds_of_layers<T>(options_.vgg16,
                                      ImageShare<T>{batch, 0, static_cast<double>(numbers.size())});
        });
  }
  /// Its names and layouts are torchvision's.
  WeightsFormat format() { return own_names(model().params(), mesh_); }

  const TrainOptions& options_;
  const Mesh& mesh_;
  Cifar10 data_;
  WholeOrParts<T, Vgg16<T>, Vgg16Stage<T>> model_;
  RankData own_;
};

}  // namespace

template <class T>
std::unique_ptr<Task<T>> make_task(Communicator* world, const TrainOptions& options,
                                   const Mesh& mesh) {
  if (options.model == ModelKind::gpt2) return std::make_unique<Language<T>>(world, options, mesh);
  if (options.model == ModelKind::vgg16) return std::make_unique<Vision<T>>(world, options, mesh);
  return std::make_unique<Regression<T>>(options, mesh);
}

#define BATON_INSTANTIATE(T) \
  template std::unique_ptr<Task<T>> make_task(Communicator*, const TrainOptions&, const Mesh&);
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(double)
BATON_INSTANTIATE(bf16)
#undef BATON_INSTANTIATE

}  // namespace baton::transformer::program
