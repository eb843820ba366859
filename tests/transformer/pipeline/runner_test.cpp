#include "transformer/pipeline/runner.hpp"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <type_traits>

#include "support/sanitizer.hpp"
#include "transformer/language_cases.hpp"
#include "transformer/linear_layers.hpp"
#include "transformer/pipeline/models.hpp"
#include "transformer/pipeline/split.hpp"
#include "transformer/watch.hpp"
#include "transformer/worlds.hpp"

using namespace baton;
using namespace baton::transformer;
using namespace support;

namespace {

constexpr int steps = under_sanitizer ? 2 : 3;
constexpr std::int64_t samples = 16, positions = under_sanitizer ? 4 : 8;

Gpt2Config config() {
  return {.vocabulary = 26,
          .context = 9,
          .layers = under_sanitizer ? 4 : 8,
          .heads = 4,
          .d_model = 12,
          .dropout = 0.1};
}

TokenShare share(const TokenBatch& batch, const Mesh& mesh) {
  return {share_of(batch, mesh),
          slice_of(batch.shape[0], mesh.size(Axis::dp), mesh.rank(Axis::dp)).begin,
          static_cast<double>(batch.shape.elements())};
}

StepOptions options(int step) {
  StepOptions options;
  options.random = Random{17}.of(static_cast<std::uint64_t>(step));
  options.largest_norm = 0.5;
  return options;
}

/// Whole weights by name, losses and norms.
struct Run {
  std::vector<StepLoss> losses;
  std::map<std::string, Array<double>> weights;
};

template <class Step>
Run run(Model<double>& model, DataParallel<double>& replicas, const Mesh& mesh, const Step& step) {
  AdamW<double> adamw(replicas.params(), {.learning_rate = 0.01});
  Run run;
  for (int s = 0; s < steps; ++s) {
    const TokenBatch batch =
        random_batch(26, {samples, positions}, static_cast<std::uint64_t>(s) + 1);
    run.losses.push_back(step(share(batch, mesh), adamw, options(s)));
  }
  replicas.with_values([&] {
    for (const Param<double>* param : model.params())
      run.weights[whole_name(*param)] = whole_value(*param, mesh);
  });
  return run;
}

const Run& expected() {
  static const Run expected = [] {
    const Mesh alone;
    Gpt2<double> model(config(), {3}, alone);
    DistributedDataParallel<double> replicas(model, alone);
    return run(model, replicas, alone,
               [&](const TokenShare& its, Optimizer<double>& optimizer, const StepOptions& how) {
                 return train_step(model, replicas, its, optimizer, alone, how);
               });
  }();
  return expected;
}

/// GPT-2 whose stages lie as a schedule says.
struct Pipelined {
  Pipelined(const PipelineSchedule& schedule, const Mesh& mesh, bool sequence_parallel = false)
      : mesh(mesh) {
    const std::vector<int> places = ranks_of_stages(schedule);
    std::map<int, PipelineStage<double>*> own;
    for (int s = 0; s < schedule.stages; ++s) {
      if (places[static_cast<std::size_t>(s)] != mesh.rank(Axis::pp)) continue;
      parts.push_back(
          std::make_unique<Gpt2<double>>(config(), Random{3}, mesh, sequence_parallel,
                                         slice_of(config().layers, schedule.stages, s)));
      stages.emplace_back(*parts.back());
      own[s] = &stages.back();
    }
    pipeline.emplace(schedule, own, mesh);
  }
  Run train(DataParallel<double>& replicas) {
    return run(*pipeline, replicas, mesh,
               [&](const TokenShare& its, Optimizer<double>& optimizer, const StepOptions& how) {
                 start(its);
                 return train_step(*pipeline, replicas, optimizer, mesh, Axis::dp | Axis::sp, how);
               });
  }
  void start(const TokenShare& its) {
    for (auto& stage : stages) stage.start(its, pipeline->schedule().micro_batches);
  }
  const Mesh& mesh;
  std::deque<std::unique_ptr<Gpt2<double>>> parts;
  std::deque<Gpt2Stage<double>> stages;
  std::optional<Pipeline<double>> pipeline;
};

void expect_expected(const Run& found) {
  for (std::size_t s = 0; s < steps; ++s) {
    CHECK(equal(found.losses[s].loss, expected().losses[s].loss, 1e-12));
    CHECK(equal(found.losses[s].gradient_norm, expected().losses[s].gradient_norm, 1e-12));
  }
  for (const auto& weight : found.weights) {
    const std::string& name = weight.first;
    CAPTURE(name);
    const auto compared =
        compare_tensors<double>(weight.second, expected().weights.at(name), 1e-12);
    // What is added to all keys changes nothing but rounding.
    if (name.find("k_proj_bias") != std::string::npos) {
      CHECK(compared.max_difference <= 1e-12);
    } else {
      CHECK_MESSAGE(compared.match, compared.max_difference);
    }
  }
}

struct Layout {
  std::vector<std::pair<Axis, int>> axes;
  bool sequence_parallel = false;
};

std::vector<Layout> layouts_of(int ranks) {
  std::vector<Layout> layouts{{{{Axis::pp, ranks}}}};
  if (ranks % 2 != 0 || ranks == 2) return layouts;
  layouts.push_back({{{Axis::pp, 2}, {Axis::dp, ranks / 2}}});
  layouts.push_back({{{Axis::dp, ranks / 2}, {Axis::pp, 2}}});
  layouts.push_back({{{Axis::pp, ranks / 2}, {Axis::tp, 2}}});
  layouts.push_back({{{Axis::pp, ranks / 2}, {Axis::tp, 2}}, true});
  layouts.push_back({{{Axis::pp, ranks / 2}, {Axis::sp, 2}}});
  if (ranks == 8) layouts.push_back({{{Axis::dp, 2}, {Axis::pp, 2}, {Axis::tp, 2}}});
  return layouts;
}

/// Schedules for a mesh, whose ranks along dp have samples for all micro-batches.
std::vector<PipelineSchedule> schedules_of(const Mesh& mesh) {
  const int p = mesh.size(Axis::pp);
  const int most = static_cast<int>(samples) / mesh.size(Axis::dp);
  std::vector<PipelineSchedule> schedules;
  for (const PipelineAlgorithm& algorithm : pipeline_algorithms()) {
    for (const int m : {1, 3, 4}) {
      if (under_sanitizer && m == 3) continue;
      for (const int v : {1, 2, 4}) {
        const PipelineProblem problem{p, algorithm.refuses ? std::min(p, most) : m, v};
        if (m > most || p * v > config().layers) continue;
        if (algorithm.refuses ? m > 1 : v > 1) continue;
        if (refusal(algorithm, problem).empty()) schedules.push_back(algorithm.generate(problem));
      }
    }
  }
  return schedules;
}

}  // namespace

TEST_CASE("GPT-2 in a pipeline trains as on one rank, by every schedule, on every mesh") {
  on_worlds([](Communicator& world) {
    for (const Layout& layout : layouts_of(world.size())) {
      const Mesh mesh(world, layout.axes);
      for (const PipelineSchedule& schedule : schedules_of(mesh)) {
        CAPTURE(schedule.name);
        CAPTURE(schedule.stages);
        CAPTURE(schedule.micro_batches);
        CAPTURE(mesh.size(Axis::dp));
        CAPTURE(mesh.size(Axis::tp));
        CAPTURE(mesh.size(Axis::sp));
        Pipelined model(schedule, mesh, layout.sequence_parallel);
        DistributedDataParallel<double> replicas(*model.pipeline, mesh, {.bucket_bytes = 4096});
        expect_expected(model.train(replicas));
      }
    }
  });
}

TEST_CASE("stages whose parameters are divided train as on one rank") {
  on_worlds([](Communicator& world) {
    if (world.size() % 2 != 0) return;
    const int dp = world.size() / 2;
    const Mesh mesh(world, {{Axis::pp, 2}, {Axis::dp, dp}});
    for (const ShardingStage stage :
         {ShardingStage::optimizer, ShardingStage::gradients, ShardingStage::parameters}) {
      for (const char* name : {"gpipe", "1f1b", "interleaved_1f1b"}) {
        CAPTURE(static_cast<int>(stage));
        CAPTURE(name);
        const int v = std::string_view(name) == "interleaved_1f1b" ? 2 : 1;
        Pipelined model(pipeline_schedule(name, {2, 4, v}), mesh);
        FullyShardedDataParallel<double> replicas(*model.pipeline, mesh, stage);
        expect_expected(model.train(replicas));
      }
    }
  });
}

namespace {

/// Linear layers with gelu between, of which some stages have no parameters.
Sequential<double> layers_in_a_row() {
  Sequential<double> row;
  for (int l = 0; l < 4; ++l) {
    const std::string name = fmt::format("layer{}", l);
    row.add(name, std::make_shared<Linear<double>>(name, 3 + l, 4 + l, l % 2 == 0, Random{5}));
    row.add(name + ".gelu", std::make_shared<Activate<double>>(Activation::gelu));
  }
  return row;
}

}  // namespace

TEST_CASE("layers in a row train in a pipeline as on one rank") {
  const Mesh alone;
  const auto batch_of = [](int step, std::int64_t n) {
    return create_batch<double>(static_cast<std::uint64_t>(step) + 1, {n, 3}, {n, 7});
  };
  Sequential<double> whole = layers_in_a_row();
  std::vector<StepResult<double>> wanted;
  {
    AdamW<double> adamw(whole.params(), {.learning_rate = 0.01});
    for (int s = 0; s < steps; ++s)
      wanted.push_back(reference_step(whole, batch_of(s, samples - s), adamw, options(s)));
  }
  DistributedDataParallel<double> its(whole, alone);
  const double evaluated = evaluate(whole, its, whole_of(batch_of(9, 3)), alone);
  on_worlds([&](Communicator& world) {
    for (const Layout& layout : layouts_of(world.size())) {
      const Mesh mesh(world, layout.axes);
      if (mesh.size(Axis::tp | Axis::sp) > 1) continue;
      for (const PipelineSchedule& schedule : schedules_of(mesh)) {
        for (const bool divided : {false, true}) {
          CAPTURE(schedule.name);
          CAPTURE(schedule.stages);
          CAPTURE(schedule.micro_batches);
          CAPTURE(divided);
          const Sequential<double> row = layers_in_a_row();
          std::vector<Range> cut;
          for (int s = 0; s < schedule.stages; ++s) cut.push_back(slice_of(8, schedule.stages, s));
          auto parts = parts_of(row, cut, batch_of(0, 1).x);
          PipelinedLayers<double> model(schedule, cut, mesh, [&](Range range) {
            const auto at = std::find(cut.begin(), cut.end(), range) - cut.begin();
            return std::make_unique<LayersPart<double>>(std::move(parts[std::size_t(at)]));
          });
          std::unique_ptr<DataParallel<double>> replicas;
          if (divided) {
            replicas = std::make_unique<FullyShardedDataParallel<double>>(model.pipeline(), mesh,
                                                                          ShardingStage::optimizer);
          } else {
            replicas = std::make_unique<DistributedDataParallel<double>>(model.pipeline(), mesh);
          }
          AdamW<double> adamw(replicas->params(), {.learning_rate = 0.01});
          const bool last = mesh.rank(Axis::pp) == model.pipeline().rank_of(schedule.stages - 1);
          for (int s = 0; s < steps; ++s) {
            const auto& expected = wanted[std::size_t(s)];
            const Share<double> share = share_of(batch_of(s, samples - s), mesh);
            const auto found = train_step(model, *replicas, share, adamw, mesh, options(s));
            CHECK(equal(found.loss, expected.loss, 1e-12));
            CHECK(equal(found.gradient_norm, expected.gradient_norm, 1e-12));
            CHECK(found.output.empty() == !last);
            const Shape own = share.batch.target.shape();
            const auto output = from_last_stage(model.pipeline(), found.output, own, mesh);
            const Range rows{share.first_sample, share.first_sample + own[0]};
            CHECK(equal(output, samples_of(expected.output, rows)));
          }
          // Some ranks along dp have no sample.
          const Share<double> few = share_of(batch_of(9, 3), mesh);
          CHECK(equal(evaluate(model, *replicas, few, mesh), evaluated, 1e-12));
        }
      }
    }
  });
}

TEST_CASE("a pass forward has the loss and the logits of the whole model") {
  on_worlds([](Communicator& world) {
    const Mesh mesh(world, {{Axis::pp, world.size()}});
    const PipelineSchedule schedule = pipeline_schedule("1f1b", {world.size(), 3, 1});
    Pipelined model(schedule, mesh);
    DistributedDataParallel<double> replicas(*model.pipeline, mesh);
    const TokenBatch batch = random_batch(26, {7, positions}, 3);
    model.start(share(batch, mesh));
    std::vector<Array<double>> outputs(3);
    double loss = model.pipeline->forward(replicas, 3, [&](int i, const Array<double>& output) {
      outputs[static_cast<std::size_t>(i)] = output;
    });
    CHECK(outputs[0].empty() == (mesh.rank(Axis::pp) + 1 < world.size()));
    if (world.size() > 1) world.all_reduce(std::span(&loss, 1), sum);
    const Mesh alone;
    Gpt2<double> whole(config(), {3}, alone);
    Context context;
    context.keeps = context.training = false;
    CHECK(equal(loss, whole.forward(batch, 7 * positions, context), 1e-12));
    if (outputs[0].empty()) return;
    const Array<double> logits = whole.logits(batch.ids_view());
    for (int i = 0; i < 3; ++i) {
      const Range range = slice_of(7, 3, i);
      const auto expected = Array<double>::copy_of(logits.view().slice(0, range.begin, range.end));
      CHECK(equal(outputs[static_cast<std::size_t>(i)].reshaped(expected.shape()), expected));
    }
  });
}

namespace {

/// y = 2 x, which throws where it is told to.
class Doubling final : public Module<double> {
 public:
  Array<double> forward(const Array<double>& x, Context& context) override {
    ++calls;
    if (calls == throws_in_forward) throw std::runtime_error("expected luck, found none");
    context.push(0);
    Array<double> y = x.copy();
    for (double& value : y.span()) value *= 2;
    return y;
  }
  Array<double> backward(const Array<double>& dy, Context& context) override {
    context.pop<int>();
    if (++backwards == throws_in_backward)
      throw Error(ErrorCode::unsupported, "expected patience, found none");
    Array<double> dx = dy.copy();
    for (double& value : dx.span()) value *= 2;
    return dx;
  }
  Params<double> params() override { return {&weight}; }

  Param<double> weight{"weight", Array<double>({1})};
  int calls = 0, backwards = 0;
  int throws_in_forward = 0, throws_in_backward = 0;
};

/// A pipeline of one doubling on each rank.
struct Doublings {
  Doublings(const char* algorithm, const Mesh& mesh, const Shape& input, const Shape& output)
      : mesh(mesh),
        stage(layer, input, output),
        pipeline(pipeline_schedule(algorithm, {mesh.size(Axis::pp), 4, 1}),
                 {{mesh.rank(Axis::pp), &stage}}, mesh),
        replicas(pipeline, mesh) {
    start(Array<double>({8, 2}));
  }
  static Shape between(const Mesh& mesh, bool end) {
    const int edge = end ? mesh.size(Axis::pp) - 1 : 0;
    return mesh.rank(Axis::pp) == edge ? Shape() : Shape{1, 2};
  }
  explicit Doublings(const char* algorithm, const Mesh& mesh)
      : Doublings(algorithm, mesh, between(mesh, false), between(mesh, true)) {}

  void start(const Array<double>& x) {
    Share<double> share;
    share.batch = {x, Array<double>(x.shape())};
    share.elements = static_cast<double>(x.size());
    stage.start(share, 4);
  }
  double run() { return pipeline.run(replicas, {}); }

  const Mesh& mesh;
  Doubling layer;
  LayersStage<double> stage;
  Pipeline<double> pipeline;
  DistributedDataParallel<double> replicas;
};

}  // namespace

TEST_CASE("an exception of one stage reaches every rank, and nothing hangs") {
  on_worlds([](Communicator& world) {
    for (const char* algorithm : {"naive", "gpipe", "1f1b"}) {
      for (const bool forward : {true, false}) {
        for (const bool beside : {false, true}) {
          if (beside && world.size() % 2 != 0) continue;
          const int p = beside ? world.size() / 2 : world.size();
          const Mesh mesh(world, {{Axis::dp, world.size() / p}, {Axis::pp, p}});
          for (int culprit = 0; culprit < p; ++culprit) {
            CAPTURE(algorithm);
            CAPTURE(culprit);
            Doublings model(algorithm, mesh);
            const bool me = mesh.rank(Axis::pp) == culprit && mesh.rank(Axis::dp) == 0;
            (forward ? model.layer.throws_in_forward : model.layer.throws_in_backward) = me ? 3 : 0;
            const Error error = error_of([&] { model.run(); });
            CHECK(std::string(error.what()) ==
                  fmt::format("rank {0}: stage {0}, micro-batch 2, {1}: expected {2}, found none",
                              culprit, forward ? "forward" : "backward",
                              forward ? "luck" : "patience"));
            CHECK(error.code == (forward ? ErrorCode::invalid_argument : ErrorCode::unsupported));
            model.run();  // nothing of the failure is left
          }
        }
      }
    }
  });
}

namespace {

/// The place of an exception: in an action, at one of the calls that start a collective or wait for
/// one; 0 is before all of them.
struct Fault {
  PipelineWork work = PipelineWork::forward;
  int micro_batch = 0, at = -1;
  bool last = false;  // it was thrown behind all calls of the action

  [[noreturn]] static void raise() { throw std::runtime_error("expected luck, found none"); }
};

/// Counts the calls, and throws at one of them.
class FaultyWatch final : public ExchangeWatch {
 public:
  explicit FaultyWatch(int at) : at_(at), scope_(this) {}
  Request start(Communicator& ranks, const Call& call) override {
    count();
    return inner_ ? inner_->start(ranks, call) : ranks.start(call);
  }
  void wait(Request& request) override {
    count();
    inner_ ? inner_->wait(request) : request.wait();
  }
  void settle(Request& request) noexcept override {
    if (inner_) inner_->settle(request);
  }

 private:
  void count() {
    if (++calls_ == at_) Fault::raise();
  }
  const int at_;
  int calls_ = 0;
  ExchangeWatch* const inner_ = exchange_watch();
  const WatchScope scope_;
};

/// A stage of GPT-2 that throws where it is told to.
class FaultyStage final : public PipelineStage<double> {
 public:
  explicit FaultyStage(Gpt2<double>& part) : stage(part) {}
  Params<double> params() override { return stage.params(); }
  std::vector<Unit<double>> units() override { return stage.units(); }
  Params<double> shared() override { return stage.shared(); }
  Shape input(int micro_batch) const override { return stage.input(micro_batch); }
  Shape output(int micro_batch) const override { return stage.output(micro_batch); }
  StageOutput<double> forward(int micro_batch, Array<double> x, Context& context) override {
    numbers[&context] = micro_batch;
    return faulty(PipelineWork::forward, micro_batch,
                  [&] { return stage.forward(micro_batch, std::move(x), context); });
  }
  Array<double> backward(Array<double> dy, Context& context) override {
    const int i = numbers.at(&context);
    const auto work = context.postpones ? PipelineWork::backward_input : PipelineWork::backward;
    const auto fault_of_weights = [&](bool before) {
      if (!fault || fault->work != PipelineWork::backward_weight || fault->micro_batch != i ||
          (fault->at == 0) != before)
        return;
      fault->last = !before;
      context.weight_part([](const Context&, const Meanwhile&) { Fault::raise(); }, {});
    };
    fault_of_weights(true);
    Array<double> dx = faulty(work, i, [&] { return stage.backward(std::move(dy), context); });
    fault_of_weights(false);
    return dx;
  }

  Gpt2Stage<double> stage;
  std::optional<Fault> fault;

 private:
  template <class Action>
  std::invoke_result_t<Action> faulty(PipelineWork work, int micro_batch, const Action& action) {
    if (!fault || fault->work != work || fault->micro_batch != micro_batch) return action();
    if (fault->at == 0) Fault::raise();
    {
      const FaultyWatch watch(fault->at);
      static_cast<void>(action());
    }
    fault->last = true;
    Fault::raise();
  }
  std::map<const Context*, int> numbers;
};

/// How ranks keep the parameters of a mesh: all of them, or those of a stage of sharding.
std::unique_ptr<DataParallel<double>> kept(Model<double>& model, const Mesh& mesh, int sharding) {
  if (sharding == 0)
    return std::make_unique<DistributedDataParallel<double>>(model, mesh, ReplicationOptions{4096});
  return std::make_unique<FullyShardedDataParallel<double>>(model, mesh,
                                                            static_cast<ShardingStage>(sharding));
}

/// A pipeline of such stages, one on each rank along pp.
struct FaultyPipeline {
  FaultyPipeline(const char* algorithm, int micro_batches, const Mesh& mesh, int sharding,
                 bool sequence_parallel)
      : mesh(mesh),
        part(config(), {3}, mesh, sequence_parallel,
             slice_of(config().layers, mesh.size(Axis::pp), mesh.rank(Axis::pp))),
        stage(part),
        pipeline(pipeline_schedule(algorithm, {mesh.size(Axis::pp), micro_batches, 1}),
                 {{mesh.rank(Axis::pp), &stage}}, mesh),
        replicas(kept(pipeline, mesh, sharding)) {}
  void start(int step) {
    const TokenBatch batch =
        random_batch(26, {samples, positions}, static_cast<std::uint64_t>(step) + 1);
    stage.stage.start(share(batch, mesh), pipeline.schedule().micro_batches);
  }
  /// Forward and backward of the first step, without the optimizer's; the loss of all ranks.
  double run() {
    replicas->start_step();
    double loss = pipeline.run(*replicas, options(0).random);
    replicas->finish_gradients();
    if (Communicator* const others = mesh.along(Axis::dp | Axis::sp | Axis::pp))
      others->all_reduce(std::span(&loss, 1), sum);
    return loss;
  }
  /// All steps of training.
  Run train() {
    const auto step = [&](const TokenShare& its, Optimizer<double>& optimizer,
                          const StepOptions& how) {
      stage.stage.start(its, pipeline.schedule().micro_batches);
      return train_step(pipeline, *replicas, optimizer, mesh, Axis::dp | Axis::sp, how);
    };
    return ::run(pipeline, *replicas, mesh, step);
  }

  const Mesh& mesh;
  Gpt2<double> part;
  FaultyStage stage;
  Pipeline<double> pipeline;
  std::unique_ptr<DataParallel<double>> replicas;
};

/// Every rank of the world throws the sentence of `culprit`, wherever it fails in an action.
void expect_same_failures(FaultyPipeline& model, Communicator& world, int culprit, Fault fault,
                          int stride) {
  const int stage = [&] {
    std::int64_t its = model.mesh.rank(Axis::pp);
    world.broadcast(std::span(&its, 1), culprit);
    return static_cast<int>(its);
  }();
  std::int64_t last = 0;
  for (fault.at = 0; last == 0 && fault.at < 500;
       fault.at = fault.at == 0 ? 1 : fault.at + stride) {
    CAPTURE(fault.at);
    if (world.rank() == culprit) model.stage.fault = fault;
    const Error error = error_of([&] { model.run(); });
    CHECK(std::string(error.what()) ==
          fmt::format("rank {}: stage {}, micro-batch {}, {}: expected luck, found none", culprit,
                      stage, fault.micro_batch, name(fault.work)));
    last = model.stage.fault && model.stage.fault->last;
    model.stage.fault.reset();
    world.broadcast(std::span(&last, 1), culprit);
    CHECK(equal(model.run(), expected().losses[0].loss, 1e-12));  // nothing of it is left
  }
  CHECK(last == 1);
}

/// Meshes of so many ranks, with the ways to keep parameters on each. Under a sanitizer none of 2:
/// those of 4 take the same paths.
struct Shared {
  Layout layout;
  int sharding = 0;
};
std::vector<Shared> shared_stages(int ranks) {
  std::vector<Shared> all;
  const auto add = [&](Layout layout, const std::vector<int>& shardings) {
    for (const int sharding : shardings) all.push_back({layout, sharding});
  };
  if (ranks == 2 && !under_sanitizer) {
    add({{{Axis::tp, 2}}}, {0});
    add({{{Axis::tp, 2}}, true}, {0, 3});
    add({{{Axis::sp, 2}}}, {0, 2, 3});
    add({{{Axis::dp, 2}}}, {0, 1, 2, 3});
  } else if (ranks == 3) {
    add({{{Axis::dp, 3}}}, {0, 3});
  } else if (ranks == 4) {
    add({{{Axis::sp, 4}}}, {3});
    add({{{Axis::pp, 2}, {Axis::tp, 2}}}, {0});
    add({{{Axis::tp, 2}, {Axis::pp, 2}}, true}, {0});
    add({{{Axis::pp, 2}, {Axis::sp, 2}}}, {0, 3});
    add({{{Axis::pp, 2}, {Axis::dp, 2}}}, {0, 1, 2, 3});
    add({{{Axis::dp, 2}, {Axis::tp, 2}}}, {0, 3});
    add({{{Axis::tp, 2}, {Axis::sp, 2}}}, {2});
  } else if (ranks == 8) {
    add({{{Axis::dp, 2}, {Axis::pp, 2}, {Axis::tp, 2}}}, {3});
  }
  return all;
}

}  // namespace

TEST_CASE("an exception of one of the ranks that compute a stage together reaches every rank") {
  on_worlds([](Communicator& world) {
    for (const Shared& shared : shared_stages(world.size())) {
      const Layout& layout = shared.layout;
      const int sharding = shared.sharding;
      const Mesh mesh(world, layout.axes);
      CAPTURE(mesh.size(Axis::dp));
      CAPTURE(mesh.size(Axis::tp));
      CAPTURE(mesh.size(Axis::sp));
      CAPTURE(sharding);
      FaultyPipeline model("1f1b", 3, mesh, sharding, layout.sequence_parallel);
      model.start(0);
      const int stride = under_sanitizer ? 59 : world.size() == 8 ? 17 : 7;
      for (const PipelineWork work : {PipelineWork::forward, PipelineWork::backward}) {
        for (const int culprit : std::set{0, world.size() / 2, world.size() - 1}) {
          // Under a sanitizer the first rank fails backward, the others forward.
          if (under_sanitizer && (culprit == 0) == (work == PipelineWork::forward)) continue;
          CAPTURE(name(work));
          CAPTURE(culprit);
          expect_same_failures(model, world, culprit, {work, culprit == 0 ? 2 : 1}, stride);
        }
      }
      expect_expected(model.train());
    }
  });
}

TEST_CASE("so does one of a postponed gradient") {
  on_worlds([](Communicator& world) {
    for (const auto& [layout, sharding] : shared_stages(world.size())) {
      if (sharding > 1 || world.size() == 8) continue;
      const Mesh mesh(world, layout.axes);
      FaultyPipeline model("zb_h1", 3, mesh, sharding, layout.sequence_parallel);
      model.start(0);
      for (const PipelineWork work :
           {PipelineWork::backward_input, PipelineWork::backward_weight}) {
        CAPTURE(name(work));
        const int stride = work == PipelineWork::backward_input || under_sanitizer ? 11 : 1;
        expect_same_failures(model, world, world.size() - 1, {work, 2}, stride);
      }
      expect_expected(model.train());
    }
  });
}

TEST_CASE("exceptions of several ranks at once, at different places, become one") {
  on_worlds([](Communicator& world) {
    for (const auto& [layout, sharding] : shared_stages(world.size())) {
      const Mesh mesh(world, layout.axes);
      FaultyPipeline model("1f1b", 3, mesh, sharding, layout.sequence_parallel);
      model.start(0);
      for (const PipelineWork work : {PipelineWork::forward, PipelineWork::backward}) {
        for (int turn = 0; turn < (under_sanitizer ? 2 : 6); ++turn) {
          CAPTURE(turn);
          const int at = (world.rank() * 7 + turn * 5) % 23;
          model.stage.fault = Fault{work, turn % 3, at};
          const Error error = error_of([&] { model.run(); });
          model.stage.fault.reset();
          CHECK(holds(error.what(), {fmt::format("rank 0: stage 0, micro-batch {}, {}: expected "
                                                 "luck, found none",
                                                 turn % 3, name(work))}));
          CHECK(equal(model.run(), expected().losses[0].loss, 1e-12));
        }
      }
      expect_expected(model.train());
    }
  });
}

TEST_CASE("a wrong token of one rank alone is refused on every rank, again and again") {
  on_worlds([](Communicator& world) {
    if (world.size() != 4) return;
    const Mesh mesh(world, {{Axis::pp, 2}, {Axis::sp, 2}});
    FaultyPipeline model("1f1b", 2, mesh, 3, false);
    for (int i = 0; i < 3; ++i) {
      TokenBatch batch = random_batch(26, {samples, positions}, 1);
      batch.ids[static_cast<std::size_t>(10 * positions - 2)] = 26;  // of the second half
      model.stage.stage.start(share(batch, mesh), 2);
      CHECK(std::string(error_of([&] { model.run(); }).what()) ==
            fmt::format("rank 1: stage 0, micro-batch 1, forward: embedding: expected ids from 0 "
                        "to 25, found 26 at position {}",
                        positions - 2));
    }
    expect_expected(model.train());
  });
}

TEST_CASE("stages that do not fit are refused on every rank") {
  on_worlds([](Communicator& world) {
    const int p = world.size();
    if (p == 1) return;
    const Mesh mesh(world, {{Axis::pp, p}});
    const bool last = mesh.rank(Axis::pp) == p - 1;
    {
      Doublings model("1f1b", mesh, mesh.rank(Axis::pp) == 0 ? Shape() : Shape{1, last ? 3 : 2},
                      last ? Shape() : Shape{1, 2});
      CHECK(
          std::string(error_of([&] { model.run(); }).what()) ==
          fmt::format("pipeline 1f1b: stage {0} on rank {0} expects activations of [2, 3], [2, 3], "
                      "[2, 3], [2, 3], stage {1} on rank {1} gives [2, 2], [2, 2], [2, 2], [2, 2] "
                      "(by micro-batch)",
                      p - 1, p - 2));
    }
    Doublings model("1f1b", mesh);
    model.start(Array<double>({last ? 9 : 8, 2}));  // other micro-batches
    CHECK(holds(error_of([&] { model.run(); }).what(), {"expects activations of [3, 2], [2, 2]"}));
    model.start(Array<double>({8, 2}));
    CHECK(model.run() == 0);
  });
}

TEST_CASE("a schedule that is wrong, or for others, is refused before anything is sent") {
  on_worlds([](Communicator& world) {
    const Mesh mesh(world, {{Axis::pp, world.size()}});
    const auto made = [&](const PipelineSchedule& schedule) {
      return std::string(error_of([&] { Pipelined(schedule, mesh); }).what());
    };
    PipelineSchedule schedule = pipeline_schedule("gpipe", {world.size(), 2, 1});
    schedule.ranks[0].pop_back();
    CHECK(
        made(schedule) ==
        "pipeline gpipe: no rank computes the gradient by the input of stage 0 for micro-batch 1");
    schedule = pipeline_schedule("gpipe", {world.size() + 1, 2, 1});
    CHECK(made(schedule) == fmt::format("pipeline gpipe: expected {} ranks along pp, found {}",
                                        world.size() + 1, world.size()));
  });
}
