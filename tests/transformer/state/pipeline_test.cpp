#include <doctest/doctest.h>
#include <fmt/core.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <variant>

#include "support/sanitizer.hpp"
#include "support/temporary_folder.hpp"
#include "transformer/language_cases.hpp"
#include "transformer/linear_layers.hpp"
#include "transformer/pipeline/models.hpp"
#include "transformer/state/checkpoint.hpp"
#include "transformer/state/gpt2_weights.hpp"
#include "transformer/worlds.hpp"

using namespace baton;
using namespace baton::transformer;
using namespace support;

namespace {

std::string content_of(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

Gpt2Config config() {
  return {.vocabulary = 24, .context = 8, .layers = 4, .heads = 4, .d_model = 12, .dropout = 0.1};
}

constexpr int steps = 4, half = 2;

/// First and last stage on rank 0, the one between them on rank 1.
PipelineSchedule bent() { return parse_pipeline("0F0,,2F0,2B0,,0B0\n,1F0,,,1B0\n", "bent"); }

/// How ranks share a model: by a schedule, or without a pipeline.
struct Layout {
  std::vector<std::pair<Axis, int>> axes;
  std::optional<PipelineSchedule> schedule = {};
  int stage = 0;  ///< of sharding; 0: all parameters of its layers on every rank
  bool sequence_parallel = false;

  int ranks() const {
    int product = 1;
    for (const auto& [axis, size] : axes) product *= size;
    return product;
  }
  std::string text() const {
    std::string text = fmt::format("{}, sharding {}", schedule ? schedule->name : "whole", stage);
    for (const auto& [axis, size] : axes) text += fmt::format(" {} {}", name(axis), size);
    return text;
  }
};

std::vector<Layout> layouts() {
  using enum Axis;
  const auto by = [](const char* name, int ranks, int micro_batches, int stages_per_rank = 1) {
    return pipeline_schedule(name, {ranks, micro_batches, stages_per_rank});
  };
  return {{{}},
          {{{pp, 1}}, by("interleaved_1f1b", 1, 2, 2)},
          {{{pp, 2}}, by("naive", 2, 1)},
          {{{dp, 2}}, {}, 3},
          {{{pp, 2}}, by("gpipe", 2, 3)},
          {{{tp, 2}}, {}, 0, true},
          {{{pp, 2}}, by("1f1b", 2, 4)},
          {{{pp, 2}}, by("interleaved_1f1b", 2, 4, 2)},
          {{{pp, 2}}, by("zb_h1", 2, 3)},
          {{{pp, 2}}, bent()},
          {{{pp, 3}}, by("1f1b", 3, 3)},
          {{{dp, 3}}},
          {{{pp, 4}}, by("1f1b", 4, 5)},
          {{{pp, 2}, {dp, 2}}, by("1f1b", 2, 2)},
          {{{dp, 2}, {pp, 2}}, by("zb_h1", 2, 3), 1},
          {{{pp, 2}, {dp, 2}}, by("interleaved_1f1b", 2, 2, 2), 2},
          {{{pp, 2}, {dp, 2}}, by("gpipe", 2, 3), 3},
          {{{pp, 2}, {dp, 2}}, bent(), 3},
          {{{pp, 2}, {tp, 2}}, by("1f1b", 2, 3), 0, true},
          {{{dp, 2}, {tp, 2}}, {}, 2},
          {{{pp, 2}, {sp, 2}}, by("gpipe", 2, 2), 3},
          {{{pp, 2}, {dp, 2}, {tp, 2}}, by("1f1b", 2, 2), 3}};
}

/// A model under way, in a pipeline or whole.
template <class T>
struct Training {
  Training(const Layout& layout, const Mesh& mesh, std::uint64_t seed) : mesh(mesh) {
    if (layout.schedule) {
      const PipelineSchedule& schedule = *layout.schedule;
      std::vector<Range> layers;
      for (int s = 0; s < schedule.stages; ++s)
        layers.push_back(slice_of(config().layers, schedule.stages, s));
      parts = std::make_unique<PipelinedGpt2<T>>(schedule, layers, mesh, [&](Range blocks) {
        return std::make_unique<Gpt2<T>>(config(), Random{seed}, mesh, layout.sequence_parallel,
                                         blocks);
      });
    } else {
      whole = std::make_unique<Gpt2<T>>(config(), Random{seed}, mesh, layout.sequence_parallel);
    }
    if (layout.stage == 0) {
      replicas = std::make_unique<DistributedDataParallel<T>>(model(), mesh);
    } else {
      replicas =
          std::make_unique<FullyShardedDataParallel<T>>(model(), mesh, ShardingStage(layout.stage));
    }
    optimizer = std::make_unique<AdamW<T>>(replicas->params(), AdamWOptions{.learning_rate = 0.01});
  }

  Model<T>& model() {
    if (whole) return *whole;
    return parts->pipeline();
  }
  void train(std::int64_t end) {
    for (; position.step < end; ++position.step) {
      const auto number = static_cast<std::uint64_t>(position.step);
      const TokenBatch batch = random_batch(24, {12, 8}, number + 1);
      const TokenShare share{share_of(batch, mesh),
                             slice_of(12, mesh.size(Axis::dp), mesh.rank(Axis::dp)).begin,
                             static_cast<double>(batch.shape.elements())};
      StepOptions how;
      how.random = Random{17}.of(number);
      how.largest_norm = 0.5;
      const StepLoss result = whole ? train_step(*whole, *replicas, share, *optimizer, mesh, how)
                                    : train_step(*parts, *replicas, share, *optimizer, mesh, how);
      losses.push_back(result.loss);
    }
  }
  void save(const std::string& file) {
    save_checkpoint(file, model(), *replicas, *optimizer, mesh, position);
  }
  void load(const std::string& file) {
    position = load_checkpoint(file, model(), *replicas, *optimizer, mesh);
  }
  /// Of this rank's stages.
  std::vector<std::pair<std::string, Array<T>>> weights() {
    std::vector<std::pair<std::string, Array<T>>> all;
    replicas->with_values([&] {
      for (const Param<T>* param : model().params())
        all.emplace_back(whole_name(*param), whole_value(*param, mesh));
    });
    return all;
  }

  const Mesh& mesh;
  std::unique_ptr<Gpt2<T>> whole;
  std::unique_ptr<PipelinedGpt2<T>> parts;
  std::unique_ptr<DataParallel<T>> replicas;
  std::unique_ptr<Optimizer<T>> optimizer;
  TrainingPosition position;
  std::vector<double> losses;
};

template <class Weights>
bool same_bits(const Weights& a, const Weights& b) {
  bool same = a.size() == b.size();
  for (std::size_t p = 0; p < a.size(); ++p) {
    same = same && a[p].first == b[p].first && a[p].second.shape() == b[p].second.shape() &&
           std::memcmp(a[p].second.data(), b[p].second.data(), a[p].second.bytes()) == 0;
  }
  return same;
}

/// What is added to all keys changes nothing but rounding, so k_proj's bias is compared beside 1.
bool close(const std::vector<std::pair<std::string, Array<double>>>& found,
           const std::map<std::string, Array<double>>& expected) {
  bool all = !found.empty();
  for (const auto& [name, value] : found) {
    const auto compared = compare_tensors<double>(value, expected.at(name), 1e-12);
    all = all && (compared.match || (name.find("k_proj_bias") != std::string::npos &&
                                     compared.max_difference <= 1e-12));
  }
  return all;
}

}  // namespace

TEST_CASE("a pipeline goes on bit for bit from its checkpoint, and from that of any layout") {
  const TemporaryFolder folder;
  const Mesh alone;
  Training<double> reference({}, alone, 3);
  reference.train(steps);
  std::map<std::string, Array<double>> expected;
  for (const auto& [name, value] : reference.weights()) expected[name] = value;
  const std::vector<Layout> all = layouts();
  const auto file_of = [&](std::size_t layout) { return folder / fmt::format("{}", layout); };
  for (std::size_t l = 0; l < all.size(); ++l) {
    CAPTURE(all[l].text());
    on_ranks(all[l].ranks(), [&](Communicator& world) {
      const Mesh mesh(world, all[l].axes);
      Training<double> whole(all[l], mesh, 3);
      whole.train(half);
      whole.save(file_of(l));
      whole.train(steps);
      CHECK(close(whole.weights(), expected));

      Training<double> resumed(all[l], mesh, 4);
      resumed.load(file_of(l));
      CHECK(resumed.position.step == half);
      resumed.train(steps);
      CHECK(same_bits(resumed.weights(), whole.weights()));
      CHECK(std::equal(resumed.losses.begin(), resumed.losses.end(), whole.losses.begin() + half));
    });
  }
  for (std::size_t l = 0; l < all.size(); ++l) {
    for (const std::size_t other : {l * 7 % all.size(), (l + 5) % all.size(), std::size_t{0}}) {
      if (under_sanitizer && other != (l + 5) % all.size()) continue;
      CAPTURE(all[l].text());
      CAPTURE(all[other].text());
      on_ranks(all[l].ranks(), [&](Communicator& world) {
        const Mesh mesh(world, all[l].axes);
        Training<double> training(all[l], mesh, 5);
        training.load(file_of(other));
        training.save(folder / "again");  // nothing but moved
        if (world.rank() == 0) CHECK(content_of(folder / "again") == content_of(file_of(other)));
        training.train(steps);
        CHECK(close(training.weights(), expected));
      });
    }
  }
}

TEST_CASE_TEMPLATE("the state of a pipeline of every type is in its checkpoint", T, float, bf16) {
  const TemporaryFolder folder;
  const Layout layout{{{Axis::pp, 2}, {Axis::dp, 2}}, pipeline_schedule("1f1b", {2, 3, 1}), 2};
  on_ranks(layout.ranks(), [&](Communicator& world) {
    const Mesh mesh(world, layout.axes);
    Training<T> whole(layout, mesh, 3), resumed(layout, mesh, 4);
    whole.train(half);
    whole.save(folder / "a");
    whole.train(steps);
    resumed.load(folder / "a");
    resumed.train(steps);
    CHECK(same_bits(resumed.weights(), whole.weights()));
  });
  const SafetensorsFile file(folder / "a");
  const std::size_t params = 4 + 4 * 16, kept = std::is_same_v<T, bf16> ? 3 : 2;
  CHECK(file.tensors().size() == params * (1 + kept));  // so the token table is there once
  CHECK(file.expect<T>("parameters.embedding", {24, 12}).type == datatype_of<T>);
  CHECK(file.expect<T>("optimizer.mean.embedding", {24, 12}).type == datatype_of<Wide<T>>);
}

TEST_CASE("a pipeline writes the file of weights that one rank writes, and reads it") {
  const TemporaryFolder folder;
  const std::string first = folder / "first", again = folder / "again";
  const Mesh alone;
  Gpt2<double> model(config(), {3}, alone);
  save_gpt2(model, first);
  for (const Layout& layout : layouts()) {
    CAPTURE(layout.text());
    on_ranks(layout.ranks(), [&](Communicator& world) {
      const Mesh mesh(world, layout.axes);
      const Layout undivided{layout.axes, layout.schedule, 0, layout.sequence_parallel};
      Training<double> same(layout, mesh, 3), other(undivided, mesh, 4);
      same.replicas->with_values([&] { save_gpt2(same.model().params(), config(), again, mesh); });
      if (world.rank() == 0) CHECK(content_of(again) == content_of(first));
      world.barrier();
      load_gpt2(other.model().params(), config(), first, mesh);
      CHECK(same_bits(other.weights(), same.weights()));
      save_weights(other.model().params(), own_names(other.model().params(), mesh), again, mesh);
      if (world.rank() != 0) return;
      const SafetensorsFile file(again);
      CHECK(file.tensors().size() == model.params().size());
      for (const Param<double>* param : model.params())
        CHECK(equal(file.read<double>(*file.find(param->name)), param->value, 0));
    });
  }
}

TEST_CASE("state that does not fit is refused with one sentence on the ranks of all stages") {
  const TemporaryFolder folder;
  const std::string file = folder / "a";
  for (const int ranks : {1, 2, 3, 4}) {
    on_ranks(ranks, [&](Communicator& world) {
      const Mesh mesh(world, {{Axis::pp, ranks}});
      const auto refused = [&](const std::string& sentence, const std::function<void()>& call) {
        const Error error = error_of(call);
        CHECK(error.code == ErrorCode::invalid_argument);
        CHECK_MESSAGE(std::string(error.what()).find(sentence) != std::string::npos,
                      std::string(error.what()));
      };
      const Layout layout{{}, pipeline_schedule("1f1b", {ranks, 2, 1})};
      Training<double> training(layout, mesh, 3);
      training.train(1);
      training.save(file);
      const auto before = training.weights();
      // The optimizer of the last stage lacks a parameter.
      Params<double> few = training.replicas->params();
      if (mesh.rank(Axis::pp) == ranks - 1)
        std::erase_if(few, [](const Param<double>* param) { return param->name == "norm_bias"; });
      AdamW<double> part(few);
      refused(
          "checkpoint: expected an optimizer of the model's parameters, found none of norm_bias",
          [&] { save_checkpoint(file, training.model(), *training.replicas, part, mesh, {}); });
      refused("no/folder: expected a file to write", [&] { training.save(folder / "no/folder"); });
      refused("none: expected a file to read", [&] { training.load(folder / "none"); });
      refused("none: expected a file to read",
              [&] { load_gpt2(training.model().params(), config(), folder / "none", mesh); });
      Gpt2Config deeper = config();
      deeper.layers = 5;
      refused("weights: expected a parameter block4.norm1_weight, found none",
              [&] { save_gpt2(training.model().params(), deeper, folder / "b", mesh); });
      WeightsFormat fewer = own_names(training.model().params(), mesh);
      fewer.tensors.pop_back();
      refused("weights: expected the format's parameters, found positions",
              [&] { save_weights(training.model().params(), fewer, folder / "b", mesh); });
      world.barrier();
      if (world.rank() == 0) folder.write("torn", content_of(file).substr(0, 3000));
      world.barrier();
      refused("torn", [&] { training.load(folder / "torn"); });
      CHECK(same_bits(training.weights(), before));
      training.load(file);
      CHECK(same_bits(training.weights(), before));

      // Stages of one name that are not the same.
      if (ranks == 1) return;
      Linear<double> layer("linear", 3, 3, false, Random{1});
      const bool first = mesh.rank(Axis::pp) == 0, last = mesh.rank(Axis::pp) == ranks - 1;
      LayersStage<double> stage(layer, first ? Shape() : Shape{1, 3}, last ? Shape() : Shape{1, 3});
      Pipeline<double> pipeline(*layout.schedule, {{mesh.rank(Axis::pp), &stage}}, mesh);
      refused("model: expected parameters of different names, found linear.weight twice",
              [&] { own_names(pipeline.params(), mesh); });
    });
  }
}
