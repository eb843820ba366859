#include "transformer/training/data_parallel.hpp"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include "support/sanitizer.hpp"
#include "transformer/compare.hpp"
#include "transformer/linear_layers.hpp"
#include "transformer/models/language.hpp"
#include "transformer/training/analysis.hpp"
#include "transformer/training/sequential.hpp"
#include "transformer/training/step.hpp"
#include "transformer/worlds.hpp"

using namespace baton;
using namespace baton::transformer;
using namespace support;

namespace {

constexpr ShardingStage stages[] = {ShardingStage::optimizer, ShardingStage::gradients,
                                    ShardingStage::parameters};

struct Layout {
  std::vector<std::pair<Axis, int>> axes;
  bool sequence_parallel = false;
};

std::vector<Layout> layouts_of(int ranks) {
  std::vector<Layout> layouts{{{{Axis::dp, ranks}}}};
  if (ranks % 2 == 0) {
    layouts.push_back({{{Axis::dp, ranks / 2}, {Axis::tp, 2}}});
    layouts.push_back({{{Axis::dp, ranks / 2}, {Axis::tp, 2}}, true});
    layouts.push_back({{{Axis::sp, 2}, {Axis::dp, ranks / 2}}});
  }
  return layouts;
}

Gpt2Config config() {
  return {.vocabulary = 26, .context = 9, .layers = 3, .heads = 4, .d_model = 12, .dropout = 0.1};
}

TokenBatch tokens(std::int64_t samples, std::int64_t length, std::uint64_t seed) {
  TokenBatch batch;
  batch.shape = {samples, length};
  for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(samples * length); ++i) {
    batch.ids.push_back(static_cast<std::int32_t>(Random{seed}.word(2 * i) % 26));
    batch.targets.push_back(static_cast<std::int32_t>(Random{seed}.word(2 * i + 1) % 26));
  }
  return batch;
}

TokenShare share(const TokenBatch& batch, const Mesh& mesh) {
  return {share_of(batch, mesh),
          slice_of(batch.shape[0], mesh.size(Axis::dp), mesh.rank(Axis::dp)).begin,
          static_cast<double>(batch.shape.elements())};
}

StepOptions options(int step) {
  StepOptions options;
  options.random = Random{17}.of(static_cast<std::uint64_t>(step));
  options.micro_batches = step % 3 + 1;
  options.largest_norm = 0.5;
  return options;
}

/// The weights of all parameters after steps on a batch each, and the losses and norms of
/// gradients.
struct Run {
  std::vector<StepLoss> losses;
  std::vector<Array<double>> weights;
};
constexpr int steps = 5;

Run run(Gpt2<double>& model, DataParallel<double>& replicas, const Mesh& mesh) {
  const std::int64_t samples = 24;
  AdamW<double> adamw(replicas.params(), {.learning_rate = 0.01});
  Run run;
  for (int step = 0; step < steps; ++step) {
    const TokenBatch batch = tokens(samples, 8, static_cast<std::uint64_t>(step) + 1);
    run.losses.push_back(
        train_step(model, replicas, share(batch, mesh), adamw, mesh, options(step)));
  }
  replicas.with_values([&] {
    for (const Param<double>* param : model.params())
      run.weights.push_back(whole_value(*param, mesh));
  });
  return run;
}

const Run& expected() {
  static const Run expected = [] {
    const Mesh alone;
    Gpt2<double> model(config(), {3}, alone);
    DistributedDataParallel<double> replicas(model, alone);
    return run(model, replicas, alone);
  }();
  return expected;
}

/// What is added to all keys changes nothing but rounding, so k_proj's bias is compared beside 1.
bool equals(const Run& found, const Params<double>& params) {
  bool all = true;
  for (std::size_t step = 0; step < steps; ++step) {
    const StepLoss &loss = found.losses[step], &wanted = expected().losses[step];
    all = all && equal(loss.loss, wanted.loss, 1e-12) &&
          equal(loss.gradient_norm, wanted.gradient_norm, 1e-12);
  }
  for (std::size_t p = 0; p < params.size(); ++p) {
    const auto compared = compare_tensors<double>(found.weights[p], expected().weights[p], 1e-12);
    const bool keys = params[p]->name.find("k_proj_bias") != std::string::npos;
    all = all && (keys ? compared.max_difference <= 1e-12 : compared.match);
  }
  return all;
}

}  // namespace

TEST_CASE("GPT-2 replicated or divided at any stage trains as on one rank, on every mesh") {
  on_worlds([](Communicator& world) {
    for (const Layout& layout : layouts_of(world.size())) {
      const Mesh mesh(world, layout.axes);
      CAPTURE(mesh.size(Axis::dp));
      CAPTURE(mesh.size(Axis::tp));
      CAPTURE(mesh.size(Axis::sp));
      for (const bool overlap : {false, true}) {
        Gpt2<double> model(config(), {3}, mesh, layout.sequence_parallel);
        DistributedDataParallel<double> replicas(model, mesh,
                                                 {.bucket_bytes = 4096, .overlap = overlap});
        CHECK(equals(run(model, replicas, mesh), model.params()));
      }
      for (const ShardingStage stage : stages) {
        CAPTURE(static_cast<int>(stage));
        for (const bool recompute : {false, true}) {
          if (under_sanitizer && recompute != (stage == ShardingStage::gradients)) continue;
          Gpt2Config its = config();
          its.recompute = recompute;
          Gpt2<double> model(its, {3}, mesh, layout.sequence_parallel);
          FullyShardedDataParallel<double> replicas(model, mesh, stage);
          CHECK(equals(run(model, replicas, mesh), model.params()));
        }
      }
    }
  });
}

TEST_CASE("a gradient that is not summed, or a value that is not gathered, is noticed") {
  on_worlds([](Communicator& world) {
    if (world.size() == 1) return;
    const Mesh mesh(world, {{Axis::dp, world.size()}});
    for (const ShardingStage stage : stages) {
      Gpt2<double> model(config(), {3}, mesh);
      for (Param<double>* param : model.params()) {
        if (param->name == "block1.fc1") param->partial = {};
      }
      FullyShardedDataParallel<double> replicas(model, mesh, stage);
      CHECK_FALSE(equals(run(model, replicas, mesh), model.params()));
    }
  });
}

TEST_CASE("what a rank holds and sends at each stage") {
  on_worlds([](Communicator& world) {
    const int ranks = world.size();
    const Mesh mesh(world, {{Axis::dp, ranks}});
    const std::int64_t elements = config().parameters();
    for (const ShardingStage stage : stages) {
      CAPTURE(static_cast<int>(stage));
      Gpt2<double> model(config(), {3}, mesh);
      FullyShardedDataParallel<double> replicas(model, mesh, stage);
      std::int64_t own = 0;
      for (const Param<double>* param : replicas.params()) own += param->value.size();
      const auto units = static_cast<std::int64_t>(model.units().size());
      CHECK(std::abs(own - elements / ranks) <= units);
      std::int64_t all = own;
      world.all_reduce(std::span(&all, 1), sum);
      CHECK(all == elements);
      AdamW<double> adamw(replicas.params());
      for (int step = 0; step < 2; ++step) {  // the second knows in which order units are used
        train_step(model, replicas, share(tokens(ranks, 8, 1), mesh), adamw, mesh);
        for (const Param<double>* param : model.params()) {
          const bool divides = ranks > 1;
          CHECK((param->value.data() == nullptr) ==
                (divides && stage >= ShardingStage::parameters));
          CHECK((param->grad.data() == nullptr) == (divides && stage >= ShardingStage::gradients));
        }
      }
      std::int64_t bytes = replicas.traffic().bytes;
      world.all_reduce(std::span(&bytes, 1), sum);
      const int passes = stage >= ShardingStage::parameters ? 3 : 2;
      CHECK(bytes == passes * (ranks - 1) * elements * std::int64_t(sizeof(double)));
    }
  });
}

TEST_CASE("memory is counted to the byte at each stage, and recomputation keeps less") {
  on_worlds([](Communicator& world) {
    const int ranks = world.size();
    const Mesh mesh(world, {{Axis::dp, ranks}});
    const std::int64_t elements = config().parameters();
    std::int64_t kept = 0;  // at most, of activations, without recomputation
    for (const bool recompute : {false, true}) {
      for (const ShardingStage stage : stages) {
        CAPTURE(static_cast<int>(stage));
        const MemoryCount count;
        const CountingScope scope(count);
        Gpt2Config its = config();
        its.recompute = recompute;
        Gpt2<double> model(its, {3}, mesh);
        CHECK(count.held(Purpose::parameters).now == elements * 8);
        CHECK(count.held(Purpose::gradients).now == elements * 8);
        FullyShardedDataParallel<double> replicas(model, mesh, stage);
        AdamW<double> adamw(replicas.params());
        const auto step = [&] {
          train_step(model, replicas, share(tokens(2 * ranks, 8, 1), mesh), adamw, mesh);
        };
        step();
        MemoryCount peaks = count;
        peaks.forget_most();
        step();
        // The calculator's bytes.
        AnalyzedModel analyzed{{}, parameter_bytes(Datatype::f64, Datatype::f64, 2), ranks};
        for (const Unit<double>& unit : model.units()) {
          std::int64_t& size = analyzed.units.emplace_back(0);
          for (const Param<double>* param : unit.params) size += param->value.size();
        }
        const HeldBytes held = held_bytes(analyzed, stage, world.rank());
        CHECK(count.held(Purpose::optimizer).now == held.optimizer);
        CHECK(count.held(Purpose::gradients).now == held.gradients);
        CHECK(count.held(Purpose::parameters).now == held.parameters);
        std::int64_t bytes[] = {replicas.traffic().bytes,
                                sent_bytes(analyzed, stage, world.rank()).total()};
        world.all_reduce(std::span(bytes), sum);
        CHECK(bytes[0] == bytes[1]);
        const bool divides_parameters = stage >= ShardingStage::parameters;
        CHECK(count.held(Purpose::activations).now == 0);
        CHECK(count.held(Purpose::gathered).now == 0);
        // Two neighbours at once: the embedding's and a block's, or two blocks'.
        std::int64_t block = 0, embedding = 0;
        for (const Unit<double>& unit : model.units()) {
          std::int64_t& size = unit.name == "embedding" ? embedding : block;
          size = 0;
          for (const Param<double>* param : unit.params) size += param->value.size();
        }
        const std::int64_t two = 8 * (block + std::max(block, embedding));
        CHECK(count.held(Purpose::gathered).most == (divides_parameters && ranks > 1 ? two : 0));
        // Gradients of the embedding until the end, of a block, and of one on its way.
        if (stage >= ShardingStage::gradients && ranks > 1)
          CHECK(count.held(Purpose::gradients).most <=
                held.gradients + 8 * (embedding + 2 * block));
        const std::int64_t activations = count.held(Purpose::activations).most;
        if (recompute) CHECK(activations < kept);
        if (!recompute && kept > 0) CHECK(activations == kept);  // at every stage
        if (!recompute) kept = activations;
        std::int64_t all = 0;
        for (int purpose = 0; purpose < purpose_count; ++purpose)
          all += count.held(static_cast<Purpose>(purpose)).now;
        CHECK(count.held().now == all);
        CHECK(count.held().most >= all);
      }
    }
  });
}

TEST_CASE("bf16 parameters and gradients, divided with their f32 masters, train as on one rank") {
  const auto losses = [](Communicator& world, bool sharded) {
    const Mesh mesh(world, {{Axis::dp, world.size()}});
    Gpt2<bf16> model(config(), {3}, mesh);
    std::unique_ptr<DataParallel<bf16>> replicas;
    if (sharded) {
      replicas = std::make_unique<FullyShardedDataParallel<bf16>>(model, mesh);
    } else {
      replicas = std::make_unique<DistributedDataParallel<bf16>>(model, mesh);
    }
    const MemoryCount count;
    std::int64_t elements = 0;
    for (const Param<bf16>* param : replicas->params()) elements += param->value.size();
    std::unique_ptr<AdamW<bf16>> adamw;
    {
      const CountingScope scope(count);
      adamw =
          std::make_unique<AdamW<bf16>>(replicas->params(), AdamWOptions{.learning_rate = 0.01});
    }
    CHECK(count.held(Purpose::optimizer).now == 12 * elements);  // master, mean and square in f32
    std::vector<double> losses;
    const TokenBatch batch = tokens(24, 8, 1);
    for (int step = 0; step < (under_sanitizer ? 3 : 10); ++step) {
      StepOptions how;
      how.random = Random{17}.of(static_cast<std::uint64_t>(step));
      losses.push_back(train_step(model, *replicas, share(batch, mesh), *adamw, mesh, how).loss);
    }
    return losses;
  };
  std::vector<double> expected;
  on_ranks(1, [&](Communicator& world) { expected = losses(world, false); });
  CHECK(expected.back() < (under_sanitizer ? 1 : 0.98) * expected.front());
  on_worlds([&](Communicator& world) {
    for (const bool sharded : {false, true}) {
      const std::vector<double> found = losses(world, sharded);
      for (std::size_t step = 0; step < found.size(); ++step)
        CHECK(equal(found[step], expected[step], 1e-2));
    }
  });
}

TEST_CASE_TEMPLATE("layers in a row, and a module of one unit, at any stage", T, float, double) {
  on_worlds([](Communicator& world) {
    const Mesh mesh(world, {{Axis::dp, world.size()}});
    const Shape shape{2 * world.size() + 1, 4, 6};  // not a multiple of the ranks
    const auto batch = create_batch<T>(3, shape, shape);
    const auto layers = [] {
      auto model = std::make_unique<Sequential<T>>();
      for (const char* name : {"a", "b", "c"}) {
        model->add(name, std::make_unique<Linear<T>>(name, 6, 6, true, Random{5}));
        model->add("gelu", std::make_unique<Activate<T>>(Activation::gelu));
      }
      return model;
    };
    for (const bool single : {false, true}) {
      const auto make = [&]() -> std::unique_ptr<Module<T>> {
        if (single) return std::make_unique<Linear<T>>("a", 6, 6, true, Random{5});
        return layers();
      };
      const auto whole = make();
      AdamW<T> reference(whole->params());
      std::vector<StepResult<T>> expected;
      for (int step = 0; step < 4; ++step)
        expected.push_back(reference_step(*whole, batch, reference, {.micro_batches = 2}));
      for (const ShardingStage stage : stages) {
        const auto model = make();
        FullyShardedDataParallel<T> replicas(*model, mesh, stage);
        AdamW<T> adamw(replicas.params());
        const Share<T> own = share_of(batch, mesh);
        for (const StepResult<T>& wanted : expected) {
          const auto found = train_step(*model, replicas, own, adamw, mesh, {.micro_batches = 2});
          CHECK(equal(found.loss, wanted.loss, rounding<T>));
          CHECK(equal(whole_of_shares(found.output, shape, own.others, mesh), wanted.output));
        }
        replicas.with_values([&] {
          const Params<T> params = model->params(), wanted = whole->params();
          for (std::size_t p = 0; p < params.size(); ++p)
            CHECK(equal(params[p]->value, wanted[p]->value, 10 * rounding<T>));
        });
      }
    }
  });
}

TEST_CASE("a sharded model that is used without attach() says so") {
  on_worlds([](Communicator& world) {
    if (world.size() == 1) return;
    const Mesh mesh(world, {{Axis::dp, world.size()}});
    const TokenBatch batch = tokens(1, 4, 1);
    Gpt2<float> gpt2(config(), {3}, mesh);
    const FullyShardedDataParallel<float> of_gpt2(gpt2, mesh);
    Linear<float> linear("linear", 3, 2, true, Random{1});
    const FullyShardedDataParallel<float> of_linear(linear, mesh);
    Context context;
    for (const Error& error : {error_of([&] { gpt2.logits(batch.ids_view()); }), error_of([&] {
                                 linear.forward(Array<float>({4, 3}), context);
                               })}) {
      CHECK(error.code == ErrorCode::invalid_argument);
      CHECK_MESSAGE(holds(error.what(), {"expected the values of", "none at present", "attach()"}),
                    std::string(error.what()));
    }
  });
}

TEST_CASE("gradients of means over each rank's samples are averages, at every step") {
  on_worlds([](Communicator& world) {
    const Mesh mesh(world, {{Axis::dp, world.size()}});
    const auto backward = [](Linear<double>& model, std::uint64_t samples, Context context) {
      const auto x = random_array<double>({4, 3}, samples), y = random_array<double>({4, 2000}, 99);
      const Array<double> found = model.forward(x, context);
      Array<double> dy(found.shape());
      mse<double>(found, y, double(y.size()), dy.view());
      model.backward(dy, context);
    };
    for (const bool overlap : {true, false}) {
      Linear<double> model("linear", 3, 2000, true, Random{1});
      Linear<double> whole("linear", 3, 2000, true, Random{1});
      DistributedDataParallel<double> replicas(model, mesh, {.overlap = overlap});
      for (std::uint64_t step = 0; step < 2; ++step) {
        const auto samples_of_rank = [&](int rank) { return 10 * step + std::uint64_t(rank) + 1; };
        whole.zero_grads();
        for (int rank = 0; rank < world.size(); ++rank) backward(whole, samples_of_rank(rank), {});
        replicas.start_step();
        Context context;
        replicas.attach(context, true);
        backward(model, samples_of_rank(world.rank()), context);
        replicas.average_gradients();
        for (double& g : whole.weight.grad.span()) g /= world.size();
        for (double& g : whole.bias.grad.span()) g /= world.size();
        CHECK(equal(model.weight.grad, whole.weight.grad));
        CHECK(equal(model.bias.grad, whole.bias.grad));
      }
    }
  });
}

TEST_CASE("parameters of the first rank, averages of gradients, and their norm") {
  on_worlds([](Communicator& world) {
    const int ranks = world.size(), rank = world.rank();
    const Mesh mesh(world, {{Axis::dp, ranks}});
    Linear<double> model("linear", 3, 2, true, Random{static_cast<std::uint64_t>(rank)});
    const Linear<double> first("linear", 3, 2, true, Random{0});
    DistributedDataParallel<double> replicas(model, mesh);
    CHECK(equal(model.weight.value, first.weight.value) == (rank == 0));
    replicas.broadcast_params();
    CHECK(equal(model.weight.value, first.weight.value));
    CHECK(equal(model.bias.value, first.bias.value));

    for (Param<double>* param : model.params())
      for (double& g : param->grad.span()) g = rank + 1;
    replicas.average_gradients();
    const double average = (ranks + 1) / 2.0;
    for (const Param<double>* param : model.params())
      for (const double g : param->grad.span()) CHECK(equal(g, average, 1e-15));

    const double norm = average * std::sqrt(8.0);
    CHECK(equal(clip_gradients(model.params(), mesh, 2 * norm), norm, 1e-15));
    CHECK(equal(model.bias.grad.data()[0], average, 1e-15));
    CHECK(equal(clip_gradients(model.params(), mesh, 0.25 * norm), norm, 1e-15));
    CHECK(equal(model.bias.grad.data()[0], 0.25 * average, 1e-15));
    const Error error = error_of([&] { clip_gradients(model.params(), mesh, 0); });
    CHECK(error.code == ErrorCode::invalid_argument);
    CHECK_MESSAGE(holds(error.what(), {"above 0", "found 0"}), std::string(error.what()));
  });
}
