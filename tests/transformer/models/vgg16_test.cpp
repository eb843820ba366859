#include "transformer/models/vgg16.hpp"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <memory>
#include <set>

#include "support/sanitizer.hpp"
#include "support/temporary_folder.hpp"
#include "transformer/compare.hpp"
#include "transformer/golden.hpp"
#include "transformer/models/vision.hpp"
#include "transformer/worlds.hpp"

using namespace baton;
using namespace baton::transformer;
using namespace support;

namespace {

Mesh data_parallel(Communicator& world) { return {world, {{Axis::dp, world.size()}}}; }

/// Pixels of the formula in scripts/golden.py.
template <class T>
ImageBatch<T> formula_images(std::int64_t count, std::int64_t side = 32) {
  ImageBatch<T> batch;
  batch.images = Array<T>({count, 3, side, side});
  for (std::int64_t i = 0; i < batch.images.size(); ++i)
    batch.images.data()[i] = static_cast<T>(static_cast<double>(i * 7919 % 251) / 125 - 1);
  for (std::int64_t i = 0; i < count; ++i) batch.labels.push_back(static_cast<std::int32_t>(i % 3));
  return batch;
}

template <class T>
ImageBatch<T> golden_images(const Golden& golden) {
  const Array<double> labels = golden("labels");
  auto batch = formula_images<T>(labels.size());
  for (std::int64_t i = 0; i < labels.size(); ++i)
    batch.labels[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(labels.data()[i]);
  return batch;
}

template <class T>
Vgg16<T> golden_model(const Golden& golden) {
  Vgg16Config config;
  config.width = golden.number("width");
  config.pooled = static_cast<std::int64_t>(golden.number("pooled"));
  config.classes = static_cast<std::int64_t>(golden.number("classes"));
  config.dropout = 0;
  Vgg16<T> model(config, {1});
  for (Param<T>* param : model.params()) {
    const auto value = golden.operator()<T>(param->name);
    CHECK(value.shape() == param->value.shape());
    param->value = value;
  }
  return model;
}

double summed(double loss, const Mesh& mesh) {
  if (Communicator* const others = mesh.along(Axis::dp))
    others->all_reduce(std::span(&loss, 1), sum);
  return loss;
}

Vgg16Config narrow_config() { return {.classes = 3, .width = 1.0 / 32, .dropout = 0.3}; }

StepOptions options_of(int step) {
  StepOptions options;
  options.random = Random{17}.of(static_cast<std::uint64_t>(step));
  options.micro_batches = step % 2 + 1;
  return options;
}

template <class T>
void compare_with_golden(Communicator& world, double tolerance) {
  const Golden golden("vgg16");
  const Mesh mesh = data_parallel(world);
  const auto batch = golden_images<T>(golden);
  const ImageShare<T> share = share_of(batch, mesh);
  Vgg16<T> model = golden_model<T>(golden);
  CHECK(difference(model.logits(batch.images), golden("logits")) <= tolerance);
  Context context;
  const double loss = model.forward(share.batch, share.samples, context);
  CHECK(equal(summed(loss, mesh), golden.number("loss"), tolerance));
  model.backward(context);
  CHECK(context.kept() == 0);
  sync_grads(model.params(), mesh);
  for (const Param<T>* param : model.params()) {
    CAPTURE(param->name);
    CHECK(difference(param->grad, golden(param->name + ".grad")) <= tolerance);
  }
}

}  // namespace

TEST_CASE("VGG16's loss, logits and gradients are PyTorch's, on any number of ranks") {
  on_worlds([](Communicator& world) {
    compare_with_golden<double>(world, 1e-12);
    compare_with_golden<float>(world, 1e-5);
  });
}

TEST_CASE("VGG16's losses and weights in training by SGD with momentum are PyTorch's") {
  const Golden golden("vgg16");
  const Array<double> losses = golden("losses");
  on_worlds([&](Communicator& world) {
    const Mesh mesh = data_parallel(world);
    const ImageShare<double> share = share_of(golden_images<double>(golden), mesh);
    Vgg16<double> model = golden_model<double>(golden);
    DistributedDataParallel<double> replicas(model, mesh);
    Sgd<double> sgd(replicas.params(), {.learning_rate = golden.number("lr"),
                                        .momentum = golden.number("momentum"),
                                        .weight_decay = golden.number("weight_decay")});
    for (int step = 0; step < losses.size(); ++step) {
      CAPTURE(step);
      const StepLoss result = train_step(model, replicas, share, sgd, mesh, options_of(step));
      CHECK(equal(result.loss, losses.data()[step], 1e-12));
    }
    for (const Param<double>* param : model.params())
      if (golden.has(param->name + ".trained"))
        CHECK(equal(param->value, golden(param->name + ".trained")));
  });
}

TEST_CASE(
    "VGG16 with dropout is the same on any number of ranks, and every gradient that is not summed "
    "is noticed") {
  const auto batch = formula_images<double>(16);
  Vgg16<double> reference(narrow_config(), {3});
  Context context;
  context.random = Random{5};
  const double expected = reference.forward(batch, 16, context);
  reference.backward(context);
  on_worlds([&](Communicator& world) {
    const Mesh mesh = data_parallel(world);
    const ImageShare<double> share = share_of(batch, mesh);
    Vgg16<double> model(narrow_config(), {3});
    Context own;
    own.random = Random{5};
    own.first_sample = share.first_sample;
    std::vector<const ParamInfo*> completed;
    own.completed = [&](const ParamInfo& param) { completed.push_back(&param); };
    const double loss = model.forward(share.batch, share.samples, own);
    CHECK(equal(summed(loss, mesh), expected, 1e-12));
    model.backward(own);
    const Params<double> params = model.params();
    CHECK(completed == std::vector<const ParamInfo*>(params.begin(), params.end()));
    Params<double> references = reference.params();
    for (std::size_t p = 0; p < params.size(); ++p) {
      CAPTURE(params[p]->name);
      CHECK(equal(params[p]->value, references[p]->value, 0));
      CHECK(equal(params[p]->grad, references[p]->grad, 1e-6) == (world.size() == 1));
    }
    sync_grads(params, mesh);
    for (std::size_t p = 0; p < params.size(); ++p) {
      CAPTURE(params[p]->name);
      CHECK(equal(params[p]->grad, references[p]->grad));
    }
  });
}

TEST_CASE("VGG16 in training, replicated and at every stage of sharding, is as on one rank") {
  constexpr int steps = 3;
  const SgdOptions sgd_options{.learning_rate = 0.01, .momentum = 0.9, .weight_decay = 1e-3};
  const auto batch = formula_images<double>(12);
  Vgg16<double> reference(narrow_config(), {3});
  std::vector<double> losses;
  {
    const Mesh alone;
    DistributedDataParallel<double> replicas(reference, alone);
    Sgd<double> sgd(replicas.params(), sgd_options);
    for (int step = 0; step < steps; ++step) {
      StepOptions options = options_of(step);
      options.micro_batches = 1;
      losses.push_back(
          train_step(reference, replicas, share_of(batch, alone), sgd, alone, options).loss);
    }
  }
  on_worlds([&](Communicator& world) {
    const Mesh mesh = data_parallel(world);
    const ImageShare<double> share = share_of(batch, mesh);
    for (int stage = 0; stage <= 3; ++stage) {
      CAPTURE(stage);
      Vgg16<double> model(narrow_config(), {3});
      std::unique_ptr<DataParallel<double>> replicas;
      if (stage == 0) {
        replicas = std::make_unique<DistributedDataParallel<double>>(model, mesh);
      } else {
        replicas = std::make_unique<FullyShardedDataParallel<double>>(
            model, mesh, static_cast<ShardingStage>(stage));
      }
      Sgd<double> sgd(replicas->params(), sgd_options);
      for (int step = 0; step < steps; ++step) {
        const StepLoss found = train_step(model, *replicas, share, sgd, mesh, options_of(step));
        CHECK(equal(found.loss, losses[static_cast<std::size_t>(step)], 1e-12));
      }
      replicas->with_values([&] {
        const Params<double> params = model.params(), references = reference.params();
        for (std::size_t p = 0; p < params.size(); ++p) {
          CAPTURE(params[p]->name);
          CHECK(equal(params[p]->value, references[p]->value));
        }
      });
    }
  });
}

TEST_CASE("evaluation of VGG16 is the same on any number of ranks") {
  const TemporaryFolder folder;
  std::string content;
  for (int image = 0; image < 11; ++image) {
    content += static_cast<char>(image % 3);
    for (int at = 0; at < 3072; ++at)
      content += static_cast<char>((image * 3072 + at) * 7919 % 251);
  }
  const Images data({std::filesystem::path(folder.write("images", content))});
  std::vector<std::int64_t> numbers{0, 1, 2, 3, 4, 5, 6, 7, 8};
  const Mesh alone;
  Vgg16<double> reference(narrow_config(), {3});
  const Array<double> logits = reference.logits(data.inputs<double>(numbers));
  const std::vector<std::int32_t> labels = data.labels(numbers);
  double hits = 0;
  for (std::int64_t n = 0; n < 9; ++n) {
    const double* const row = logits.data() + 3 * n;
    hits += std::max_element(row, row + 3) - row == n % 3 ? 1 : 0;
  }
  const double loss = cross_entropy<double>(logits.view(), {labels.data(), {9}}, 9, View<double>());
  on_worlds([&](Communicator& world) {
    const Mesh mesh = data_parallel(world);
    Vgg16<double> model(narrow_config(), {3});
    DistributedDataParallel<double> replicas(model, mesh);
    const Classification found = evaluate(model, replicas, data, 9, 4, mesh);
    CHECK(equal(found.loss, loss, 1e-12));
    CHECK(found.accuracy == hits / 9);
    const Error error = error_of([&] { evaluate(model, replicas, data, 12, 4, mesh); });
    CHECK(holds(error.what(), {"1 to 11 images", "found 12"}));
  });
}

#ifndef BATON_TEST_MPI

TEST_CASE("the share of a step is this rank's images of the batch") {
  const TemporaryFolder folder;
  std::string content;
  for (int image = 0; image < 8; ++image) {
    content += static_cast<char>(image);
    content += std::string(3072, static_cast<char>(16 * image));
  }
  const Images data({std::filesystem::path(folder.write("images", content))});
  on_ranks(2, [&](Communicator& world) {
    const Mesh mesh = data_parallel(world);
    const RankData own = partition_dataset(data.size(), 4, mesh, 1);
    for (std::int64_t step = 0; step < 2; ++step) {
      const ImageShare<float> share = share_of_step<float>(data, own, step, mesh);
      CHECK(share.samples == 4);
      CHECK(share.first_sample == 2 * world.rank());
      REQUIRE(share.batch.images.shape() == Shape{2, 3, 32, 32});
      REQUIRE(share.batch.labels.size() == 2);
      for (std::int64_t n = 0; n < 2; ++n) {
        const std::int64_t number = own.partition.samples(2 * step, 2)[static_cast<std::size_t>(n)];
        CHECK(share.batch.labels[static_cast<std::size_t>(n)] == number);
        CHECK(share.batch.images.view()(n, 1, 5, 7) ==
              doctest::Approx(static_cast<double>(16 * number) / 127.5 - 1));
      }
    }
  });
}

TEST_CASE("VGG16's gradients are those of finite differences, also of larger images") {
  for (const std::int64_t side : {32, 64}) {
    Vgg16<double> model({.classes = 3, .width = 1.0 / 64, .pooled = 1, .dropout = 0.2}, {3});
    for (Param<double>* param : model.params()) {  // larger, so that nothing is nearly 0
      const Shape& shape = param->value.shape();
      const double inputs = static_cast<double>(shape.product(1, shape.rank()));
      const bool bias = shape.rank() == 1;
      fill_normal(param->value.view(), Random{6}.of(param->name),
                  bias ? 0.1 : 1 / std::sqrt(inputs));
      for (double& value : param->value.span()) value += bias ? 0.1 : 0.5 / inputs;
    }
    const auto batch = formula_images<double>(2, side);
    const auto loss = [&] {
      Context context;
      context.keeps = false;
      return model.forward(batch, 2, context);
    };
    Context context;
    model.forward(batch, 2, context);
    model.backward(context);
    for (Param<double>* param : model.params()) {
      if (param->value.size() > (side == 32 ? 300 : 80) / (under_sanitizer ? 4 : 1)) continue;
      CAPTURE(param->name);
      CHECK(difference(param->grad, finite_differences(param->value, loss)) <= 1e-6);
    }
  }
}

TEST_CASE("VGG16's sizes, names and beginnings are as torchvision has them") {
  CHECK(Vgg16Config{.classes = 1000, .pooled = 7}.parameters() == 138'357'544);
  CHECK(Vgg16Config{.classes = 10, .pooled = 7}.parameters() == 134'301'514);
  const Vgg16Config config{.width = 1.0 / 4};
  Vgg16<float> model(config, {2});
  std::int64_t elements = 0;
  std::set<std::string> names;
  for (const Param<float>* param : model.params()) {
    CAPTURE(param->name);
    names.insert(param->name);
    elements += param->value.size();
    double square = 0;
    for (const float value : param->value.span()) square += double(value) * value;
    const double deviation = std::sqrt(square / double(param->value.size()));
    if (param->name.find("bias") != std::string::npos) {
      CHECK(deviation == 0);
    } else {
      const double outputs = double(param->value.extent(0));
      const double expected =
          param->value.shape().rank() == 4 ? std::sqrt(2 / (9 * outputs)) : 0.02;
      CHECK(std::abs(deviation / expected - 1) < 0.1);
    }
  }
  CHECK(elements == config.parameters());
  std::set<std::string> expected;
  for (const int n : {0, 2, 5, 7, 10, 12, 14, 17, 19, 21, 24, 26, 28})
    for (const char* part : {"weight", "bias"})
      expected.insert(fmt::format("features.{}.{}", n, part));
  for (const int n : {0, 3, 6})
    for (const char* part : {"weight", "bias"})
      expected.insert(fmt::format("classifier.{}.{}", n, part));
  CHECK(names == expected);
  // The same parameters by units, in the order of forward.
  std::set<const Param<float>*> seen;
  std::vector<std::string> units;
  for (const Unit<float>& unit : model.units()) {
    units.push_back(unit.name);
    for (const Param<float>* param : unit.params) CHECK(seen.insert(param).second);
  }
  CHECK(seen.size() == names.size());
  CHECK(units == std::vector<std::string>{"features.0", "features.5", "features.10", "features.17",
                                          "features.24", "classifier.0", "classifier.3",
                                          "classifier.6"});
  // As good as nothing is known: all classes are equally likely.
  Context context;
  auto batch = formula_images<float>(4);
  CHECK(std::abs(model.forward(batch, 4, context) - std::log(10.0)) < 0.1);
}

TEST_CASE("VGG16 in bf16 is near f32") {
  const auto batch = formula_images<float>(4);
  ImageBatch<bf16> rounded;
  rounded.labels = batch.labels;
  rounded.images = Array<bf16>::uninitialized(batch.images.shape());
  convert<float>(batch.images, rounded.images.view());
  Vgg16Config config = narrow_config();
  config.dropout = 0;
  Vgg16<float> wide(config, {3});
  Vgg16<bf16> narrow(config, {3});
  Context of_wide, of_narrow;
  const double expected = wide.forward(batch, 4, of_wide);
  CHECK(equal(narrow.forward(rounded, 4, of_narrow), expected, 1e-2));
  narrow.backward(of_narrow);
}

TEST_CASE("VGG16 learns images by heart") {
  Vgg16<float> model({.classes = 3, .width = 1.0 / 16, .dropout = 0}, {3});
  const Mesh alone;
  DistributedDataParallel<float> replicas(model, alone);
  Sgd<float> sgd(replicas.params(), {.learning_rate = 0.006, .momentum = 0.9});
  auto batch = formula_images<float>(6);
  for (std::int64_t n = 0; n < 6; ++n)  // brighter for each label
    for (float& pixel : std::span(batch.images.data() + n * 3072, 3072))
      pixel += 2 * static_cast<float>(batch.labels[static_cast<std::size_t>(n)]);
  double loss = 0;
  for (int step = 0; step < (under_sanitizer ? 2 : 200); ++step)
    loss = train_step(model, replicas, share_of(batch, alone), sgd, alone).loss;
  CHECK(loss < (under_sanitizer ? 2 : 0.6));  // at first, log(3)
}

TEST_CASE("VGG16 refuses wrong images, labels and sizes") {
  const auto refused = [](const auto& call, const std::vector<std::string>& parts) {
    const Error error = error_of(call);
    CHECK(error.code == ErrorCode::invalid_argument);
    CHECK_MESSAGE(holds(error.what(), parts), std::string(error.what()));
  };
  Vgg16<float> model(narrow_config(), {1});
  Context context;
  const auto forward = [&](const ImageBatch<float>& batch) { model.forward(batch, 2, context); };
  refused([&] { forward(formula_images<float>(2, 31)); }, {"at least 32 x 32", "[2, 3, 31, 31]"});
  auto batch = formula_images<float>(2);
  batch.labels[1] = 3;
  refused([&] { forward(batch); }, {"[0, 3)", "found 3 at 1"});
  batch.labels.pop_back();
  refused([&] { forward(batch); }, {"targets", "[2]", "[1]"});
  batch.images = Array<float>({2, 1, 32, 32});
  refused([&] { forward(batch); }, {"VGG16: images", "[*, 3, *, *]", "[2, 1, 32, 32]"});
  refused([] { Vgg16<float>({.width = 0.3}, {1}); }, {"a width of n / 64", "width 0.3"});
  refused([] { Vgg16<float>({.width = 0}, {1}); }, {"a width of n / 64", "width 0"});
  refused([] { Vgg16<float>({.classes = 0}, {1}); }, {"1 class", "0 classes"});
  refused([] { static_cast<void>(Vgg16Config{.pooled = 0}.parameters()); }, {"0 rows"});
}

#endif
