#include "transformer/pipeline/stage.hpp"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <deque>
#include <functional>
#include <map>
#include <set>

#include "support/sanitizer.hpp"
#include "transformer/compare.hpp"
#include "transformer/language_cases.hpp"
#include "transformer/linear_layers.hpp"
#include "transformer/pipeline/stages.hpp"
#include "transformer/worlds.hpp"

using namespace baton;
using namespace baton::transformer;
using namespace support;

namespace {

/// How backward is done.
enum class Backward { whole, halves, late_weights };

/// The stages of a model in one process, with all contexts of a step.
struct Composed {
  Composed(std::vector<PipelineStage<double>*> stages, int micro_batches)
      : stages(std::move(stages)), micro_batches(micro_batches) {
    contexts.resize(this->stages.size());
    for (auto& row : contexts) {
      row.resize(static_cast<std::size_t>(micro_batches));
      for (Context& context : row) context.random = Random{5};
    }
  }
  Context& context(std::size_t s, int m) { return contexts[s][static_cast<std::size_t>(m)]; }

  double forward(int m) {
    StageOutput<double> output;
    for (std::size_t s = 0; s < stages.size(); ++s) {
      if (s > 0) {
        CHECK(output.activation.shape() == stages[s]->input(m));
        CHECK(output.activation.shape() == stages[s - 1]->output(m));
      }
      output = stages[s]->forward(m, std::move(output.activation), context(s, m));
    }
    CHECK(stages.front()->input(m) == Shape());
    CHECK(stages.back()->output(m) == Shape());
    return output.loss;
  }
  void backward(int m, Backward way) {
    Array<double> dy;
    for (std::size_t s = stages.size(); s-- > 0;) {
      if (way == Backward::whole) {
        dy = stages[s]->backward(std::move(dy), context(s, m));
      } else {
        dy = stages[s]->backward_input(std::move(dy), context(s, m));
        if (way == Backward::halves) stages[s]->backward_weight(context(s, m));
      }
      if (s > 0) CHECK(dy.shape() == stages[s]->input(m));
    }
    CHECK(dy.empty());
  }
  /// All forward, then all backward; returns the loss.
  double step(Backward way) {
    double loss = 0;
    for (PipelineStage<double>* stage : stages) stage->zero_grads();
    for (int m = 0; m < micro_batches; ++m) loss += forward(m);
    for (int m = 0; m < micro_batches; ++m) backward(m, way);
    if (way == Backward::late_weights) {
      for (int m = 0; m < micro_batches; ++m)
        for (std::size_t s = stages.size(); s-- > 0;) stages[s]->backward_weight(context(s, m));
    }
    for (auto& row : contexts)
      for (Context& context : row) context.expect_finished();
    return loss;
  }

  std::vector<PipelineStage<double>*> stages;
  int micro_batches;
  std::deque<std::deque<Context>> contexts;
};

/// Values and gradients of all stages by name; those that two stages share have equal values, and
/// their gradients are added.
std::map<std::string, std::pair<Array<double>, Array<double>>> joined(
    const std::vector<PipelineStage<double>*>& stages) {
  std::set<std::string> shared;
  for (PipelineStage<double>* stage : stages)
    for (const Param<double>* param : stage->shared()) shared.insert(param->name);
  std::map<std::string, std::pair<Array<double>, Array<double>>> all;
  for (PipelineStage<double>* stage : stages) {
    for (const Param<double>* param : stage->params()) {
      auto [found, fresh] = all.try_emplace(param->name, param->value, param->grad.copy());
      if (fresh) continue;
      CHECK_MESSAGE(shared.contains(param->name), param->name);
      CHECK(difference(param->value, found->second.first) == 0);
      add<double>(param->grad, found->second.second.view());
    }
  }
  return all;
}

/// The stages have the parameters of the whole model, and gradients that differ by at most
/// `tolerance`; the table of embedding and head, which is added to in another order, by rounding.
void expect_those_of(Model<double>& whole, const std::vector<PipelineStage<double>*>& stages,
                     double tolerance) {
  const auto found = joined(stages);
  CHECK(found.size() == whole.params().size());
  for (const Param<double>* param : whole.params()) {
    CAPTURE(param->name);
    const auto at = found.find(param->name);
    REQUIRE(at != found.end());
    CHECK(difference(at->second.first, param->value) == 0);
    const double least = param->name == "embedding" ? 1e-12 : 0;
    CHECK(difference(at->second.second, param->grad) <= std::max(least, tolerance));
  }
}

/// Begins of parts, and the end.
using Cuts = std::vector<std::int64_t>;

Gpt2Config three_blocks() {
  return {.vocabulary = 48, .context = 48, .layers = 3, .heads = 24, .d_model = 48, .dropout = 0.2};
}

/// The parts of a model with their stages.
template <class Part, class ItsStage>
struct Parts {
  Parts(const Cuts& cuts, const std::function<std::unique_ptr<Part>(Range)>& make) {
    for (std::size_t p = 0; p + 1 < cuts.size(); ++p) {
      parts.push_back(make({cuts[p], cuts[p + 1]}));
      stages.emplace_back(*parts.back());
      all.push_back(&stages.back());
    }
  }
  std::vector<std::unique_ptr<Part>> parts;
  std::deque<ItsStage> stages;
  std::vector<PipelineStage<double>*> all;
};

Parts<Gpt2<double>, Gpt2Stage<double>> parts_of(const Cuts& cuts, const Gpt2Config& config,
                                                const Mesh& mesh, bool sequence_parallel = false) {
  return {cuts, [&](Range range) {
            return std::make_unique<Gpt2<double>>(config, Random{3}, mesh, sequence_parallel,
                                                  range);
          }};
}
}  // namespace

TEST_CASE("parts of GPT-2 are the whole model, on every mesh, with backward in one or two pieces") {
  on_worlds([](Communicator& world) {
    for (const Cut& cut : cuts_of(world.size())) {
      for (const bool recompute : {false, true}) {
        if (under_sanitizer && recompute != (cut.sp > 1)) continue;
        CAPTURE(cut.text());
        CAPTURE(recompute);
        Gpt2Config config = three_blocks();
        config.recompute = recompute;
        const Mesh mesh = cut.mesh(world);
        const TokenBatch batch = random_batch(config.vocabulary, {5, 2 * cut.sp * cut.tp});
        TokenShare share{positions_of(batch, mesh), 7 * mesh.rank(Axis::dp), 90};
        constexpr int micro_batches = 3;  // of 2, 2 and 1 samples

        Gpt2<double> whole(config, {3}, mesh, cut.sequence_parallel);
        double expected = 0;
        for (int m = 0; m < micro_batches; ++m) {
          const Range range = slice_of(5, micro_batches, m);
          Context context;
          context.random = Random{5};
          context.first_sample = share.first_sample + range.begin;
          expected += whole.forward(samples_of(share.batch, range), share.tokens, context);
          whole.backward(context);
        }
        std::vector<Cuts> all{{0, 1, 2, 3}};
        if (world.size() <= 2) all.insert(all.end(), {{0, 3}, {0, 1, 3}, {0, 2, 3}});
        for (const Cuts& cuts : all) {
          auto parts = parts_of(cuts, config, mesh, cut.sequence_parallel);
          for (auto& stage : parts.stages) stage.start(share, micro_batches);
          for (const Backward way : {Backward::whole, Backward::halves, Backward::late_weights}) {
            // Products in pieces, while something is sent, are summed in another order.
            const double tolerance = world.size() == 1 ? 0 : 1e-12;
            CHECK(equal(Composed(parts.all, micro_batches).step(way), expected, tolerance));
            expect_those_of(whole, parts.all, tolerance);
          }
        }
      }
    }
  });
}

#ifndef BATON_TEST_MPI

namespace {

Parts<Vgg16<double>, Vgg16Stage<double>> parts_of(const Cuts& cuts, const Vgg16Config& config) {
  return {cuts,
          [&](Range range) { return std::make_unique<Vgg16<double>>(config, Random{3}, range); }};
}

ImageShare<double> images(std::int64_t count) {
  ImageShare<double> share;
  share.batch.images = random_array<double>({count, 3, 33, 32}, 4);
  for (std::int64_t i = 0; i < count; ++i)
    share.batch.labels.push_back(static_cast<std::int32_t>(i % 3));
  share.first_sample = 6;
  share.samples = 9;
  return share;
}

Error refusal(const std::function<void()>& call) {
  const Error error = error_of(call);
  CHECK(error.code == ErrorCode::invalid_argument);
  return error;
}

}  // namespace

TEST_CASE("parts of VGG16 are the whole model, with backward in one or two pieces") {
  const Vgg16Config config{.classes = 3, .width = 1.0 / 32, .pooled = 2, .dropout = 0.3};
  constexpr int micro_batches = 2;  // of 2 images and 1
  const ImageShare<double> share = images(3);
  Vgg16<double> whole(config, {3});
  double expected = 0;
  for (int m = 0; m < micro_batches; ++m) {
    const Range range = slice_of(3, micro_batches, m);
    Context context;
    context.random = Random{5};
    context.first_sample = share.first_sample + range.begin;
    expected += whole.forward(samples_of(share.batch, range), share.samples, context);
    whole.backward(context);
  }
  Cuts each;
  for (std::int64_t l = 0; l <= Vgg16<double>::layers; ++l) each.push_back(l);
  for (const Cuts& cuts : {Cuts{0, 16}, {0, 13, 16}, {0, 3, 15, 16}, {0, 4, 14, 16}, each}) {
    CAPTURE(cuts.size());
    auto parts = parts_of(cuts, config);
    for (auto& stage : parts.stages) stage.start(share, micro_batches);
    for (const Backward way : {Backward::whole, Backward::halves, Backward::late_weights}) {
      CHECK(Composed(parts.all, micro_batches).step(way) == expected);
      expect_those_of(whole, parts.all, 0);
    }
    std::size_t units = 0, params = 0;
    for (PipelineStage<double>* stage : parts.all) {
      for (const Unit<double>& unit : stage->units()) ++units, params += unit.params.size();
    }
    CHECK(params == 32);
    CHECK(units == (cuts.size() == 17 ? 16u : cuts[1] == 3 ? 9u : 8u));
  }
}

TEST_CASE("layers in a row as stages are the whole row") {
  Share<double> share = whole_of(create_batch<double>(4, {7, 3}, {7, 2}));
  Sequential<double> whole;
  std::vector<Sequential<double>> rows(3);
  const std::vector<std::int64_t> sizes{3, 5, 4, 2};
  for (std::size_t l = 0; l < 3; ++l) {
    const std::string name = fmt::format("layer{}", l);
    for (Sequential<double>* row : {&whole, &rows[l]}) {
      row->add(name,
               std::make_shared<Linear<double>>(name, sizes[l], sizes[l + 1], l < 2, Random{1}));
      row->add(name + ".gelu", std::make_shared<Activate<double>>(Activation::gelu));
    }
  }
  std::deque<LayersStage<double>> stages;
  std::vector<PipelineStage<double>*> all;
  for (std::size_t l = 0; l < 3; ++l) {
    stages.emplace_back(rows[l], l == 0 ? Shape() : Shape{1, sizes[l]},
                        l == 2 ? Shape() : Shape{1, sizes[l + 1]});
    all.push_back(&stages.back());
  }
  for (const int micro_batches : {1, 3, 9}) {  // the last has micro-batches without samples
    CAPTURE(micro_batches);
    whole.zero_grads();
    LayersStage<double> one(whole, {}, {});
    one.start(share, micro_batches);
    const double expected = Composed({&one}, micro_batches).step(Backward::whole);
    for (auto& stage : stages) stage.start(share, micro_batches);
    for (const Backward way : {Backward::whole, Backward::halves, Backward::late_weights}) {
      CHECK(Composed(all, micro_batches).step(way) == expected);
      expect_those_of(whole, all, 0);
    }
  }
}

TEST_CASE("a weight part that is forgotten, and values that nobody used, are noticed") {
  const Mesh mesh;
  auto parts = parts_of({0, 1, 3}, three_blocks(), mesh);
  TokenShare share{random_batch(48, {2, 4}), 0, 8};
  for (auto& stage : parts.stages) stage.start(share, 1);
  const auto by = [&](Backward way, bool weights) {
    Composed step(parts.all, 1);
    for (PipelineStage<double>* stage : parts.all) stage->zero_grads();
    step.forward(0);
    CHECK(holds(refusal([&] { step.context(1, 0).expect_finished(); }).what(), {"forward kept"}));
    step.backward(0, way);
    CHECK(step.context(0, 0).kept() == 0);
    if (way == Backward::late_weights) {
      CHECK(step.context(0, 0).postponed() == 7);   // six products, and the embedding's end
      CHECK(step.context(1, 0).postponed() == 13);  // and the head
      CHECK(holds(refusal([&] { step.context(1, 0).expect_finished(); }).what(),
                  {"gradients of weights", "found 13"}));
    }
    if (weights)
      for (std::size_t s = 0; s < 2; ++s) parts.all[s]->backward_weight(step.context(s, 0));
    return joined(parts.all);
  };
  const auto expected = by(Backward::whole, false);
  const auto forgotten = by(Backward::late_weights, false);
  const auto complete = by(Backward::late_weights, true);
  for (const auto& entry : expected) {
    const std::string& name = entry.first;
    const Array<double>& gradient = entry.second.second;
    CAPTURE(name);
    const bool product = name.find("_proj") != std::string::npos || name == "embedding" ||
                         name.find("fc") != std::string::npos;
    const bool bias_of_sum =
        name.find("o_proj_bias") != std::string::npos || name.find("fc2_bias") != std::string::npos;
    if (name.find("k_proj_bias") != std::string::npos) continue;  // its gradient is rounding
    CHECK((difference(forgotten.at(name).second, gradient) > 1e-9) == (product && !bias_of_sum));
    CHECK(difference(complete.at(name).second, gradient) == 0);
  }
}

TEST_CASE("postponed weights keep the values that they need, and every gradient is reported once") {
  const Mesh mesh;
  auto parts = parts_of({0, 1, 3}, three_blocks(), mesh);
  TokenShare share{random_batch(48, {2, 4}), 0, 8};
  for (auto& stage : parts.stages) stage.start(share, 1);
  const MemoryCount count;
  const CountingScope scope(count);
  const auto held = [&] { return count.held(Purpose::activations).now; };
  Composed step(parts.all, 1);
  std::map<std::string, int> completed;
  for (std::size_t s = 0; s < 2; ++s)
    step.context(s, 0).completed = [&](const ParamInfo& param) { ++completed[param.name]; };
  step.forward(0);
  const std::int64_t after_forward = held();
  step.backward(0, Backward::late_weights);
  const std::int64_t postponed = held();
  CHECK(postponed > 0);
  CHECK(postponed < after_forward * 3 / 2);  // gradients by outputs instead of other values
  CHECK(completed["block0.norm1_weight"] == 1);
  CHECK(completed["block0.fc1"] == 0);
  parts.all[1]->backward_weight(step.context(1, 0));
  CHECK(held() < postponed);
  parts.all[0]->backward_weight(step.context(0, 0));
  CHECK(held() == 0);
  for (PipelineStage<double>* stage : parts.all) {
    for (const Param<double>* param : stage->params()) {
      CAPTURE(param->name);
      CHECK(completed[param->name] == (param->name == "embedding" ? 2 : 1));
    }
  }
}

TEST_CASE("parts report gradients in the order of their parameters, within the units they enter") {
  const Mesh mesh;
  auto parts = parts_of({0, 1, 2, 3}, three_blocks(), mesh);
  TokenShare share{random_batch(48, {2, 4}), 0, 8};
  for (auto& stage : parts.stages) stage.start(share, 1);
  Composed step(parts.all, 1);
  std::vector<std::vector<const ParamInfo*>> completed(3);
  std::vector<std::vector<std::size_t>> entered(3);
  for (std::size_t s = 0; s < 3; ++s) {
    Context& context = step.context(s, 0);
    context.completed = [&, s](const ParamInfo& param) { completed[s].push_back(&param); };
    context.before = [&, s](std::size_t unit, bool) { entered[s].push_back(unit); };
    context.after = [&, s](std::size_t unit, bool) { CHECK(unit == entered[s].back()); };
  }
  step.forward(0);
  step.backward(0, Backward::whole);
  for (std::size_t s = 0; s < 3; ++s) {
    const Params<double> params = parts.all[s]->params();
    CHECK(completed[s] == std::vector<const ParamInfo*>(params.begin(), params.end()));
    std::set<const Param<double>*> in_units;
    for (const Unit<double>& unit : parts.all[s]->units())
      in_units.insert(unit.params.begin(), unit.params.end());
    CHECK(in_units == std::set<const Param<double>*>(params.begin(), params.end()));
  }
  using Units = std::vector<std::size_t>;
  CHECK(entered[0] == Units{0, 1, 1, 0});
  CHECK(entered[1] == Units{0, 0});
  CHECK(entered[2] == Units{0, 1, 1, 0});
  CHECK(parts.all[0]->shared().size() == 1);
  CHECK(parts.all[1]->shared().empty());
  CHECK(parts.all[2]->shared().size() == 1);
  CHECK(parts_of({0, 3}, three_blocks(), mesh).all[0]->shared().empty());
}

TEST_CASE("parts refuse what they cannot do, in a sentence") {
  const Mesh mesh;
  const auto says = [](const std::function<void()>& call, const std::vector<std::string>& parts) {
    const Error error = refusal(call);
    CHECK_MESSAGE(holds(error.what(), parts), std::string(error.what()));
  };
  using Part = Gpt2<double>;
  for (const Range range : {Range{-1, 2}, {2, 4}, {1, 1}, {2, 1}}) {
    const std::string found = fmt::format("[{}, {})", range.begin, range.end);
    says([&] { Part(three_blocks(), {1}, mesh, false, range); }, {"GPT-2", "blocks 0 to 2", found});
  }
  for (const Range range : {Range{-1, 2}, {14, 17}, {5, 5}, {6, 5}}) {
    const std::string found = fmt::format("[{}, {})", range.begin, range.end);
    says([&] { Vgg16<double>({}, {1}, range); }, {"VGG16", "layers 0 to 15", found});
  }
  auto parts = parts_of({0, 1, 3}, three_blocks(), mesh);
  const TokenShare share{random_batch(48, {2, 4}), 0, 8};
  for (auto& stage : parts.stages) {
    says([&] { stage.start(share, 3); }, {"at most the 2 samples", "found 3"});
    says([&] { stage.start(share, 0); }, {"at least 1", "found 0"});
    stage.start(share, 2);
  }
  Context context;
  says(
      [&] {
        parts.stages[1].forward(0, Array<double>({2, 4, 48}), context);
      },
      {"GPT-2: input of block 1", "[1, 4, 48]", "[2, 4, 48]"});
  says([&] { parts.stages[0].backward({}, context); }, {"found nothing"});
  says([&] { parts.parts[0]->forward(share.batch, 8, context); },
       {"forward", "all 3 blocks", "[0, 1)"});
  says([&] { parts.parts[1]->logits(share.batch.ids_view()); },
       {"logits", "all 3 blocks", "[1, 3)"});
  auto vgg = parts_of({0, 5, 16}, Vgg16Config{.classes = 3, .width = 1.0 / 64});
  vgg.stages[1].start(images(2), 1);
  says(
      [&] {
        vgg.stages[1].forward(0, Array<double>({2, 3}), context);
      },
      {"VGG16: input of layer 5", "[2, 3]"});
  says([&] { vgg.parts[0]->logits(images(2).batch.images); }, {"logits", "[0, 5)"});
}

#endif
