// Predicted steps beside recorded ones: every message and computation of a run is predicted.

#include "transformer/predict/join.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "baton/error.hpp"
#include "models.hpp"
#include "support/ranks.hpp"
#include "transformer/data/partition.hpp"
#include "transformer/emulated.hpp"
#include "transformer/models/language.hpp"
#include "transformer/optimizer.hpp"
#include "transformer/pipeline/models.hpp"
#include "transformer/pipeline/split.hpp"
#include "transformer/predict/predict.hpp"

using namespace baton;
using namespace baton::transformer;
using support::small_model;

namespace {

constexpr std::int64_t bucket_bytes = 2000;  // a unit has several

/// Makes `steps` steps of training in this layout on threads, emulated, and returns their
/// recording.
Timeline recorded(const StepModel& model, const StepLayout& layout, int steps = 2) {
  Timeline recording;
  support::on_ranks(layout.ranks(), [&](Communicator& world) {
    world.start_recording();
    const Mesh mesh(world, {{Axis::pp, layout.pp},
                            {Axis::dp, layout.dp},
                            {Axis::sp, layout.sp},
                            {Axis::tp, layout.tp}});
    const EmulationScope scope({.operations = 1, .optimizer_ns = 1});
    std::vector<std::int32_t> tokens(1000);
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<std::int32_t>(i % 16);
    const Sequences data(tokens, model.seq, "text");
    const RankData own = partition_dataset(data.size(), model.batch, mesh, 1);
    StepOptions how;
    how.micro_batches = layout.micro_batches;
    const auto train = [&](auto& trained, Model<float>& its) {
      std::unique_ptr<DataParallel<float>> replicas;
      if (layout.stage)
        replicas = std::make_unique<FullyShardedDataParallel<float>>(its, mesh, *layout.stage);
      else
        replicas = std::make_unique<DistributedDataParallel<float>>(
            its, mesh, ReplicationOptions{.bucket_bytes = bucket_bytes});
      AdamW<float> adamw(replicas->params());
      for (int step = 0; step < steps; ++step)
        train_step(trained, *replicas, share_of_step(data, own, step, mesh), adamw, mesh, how);
      Timeline timeline = world.stop_recording();
      if (world.rank() == 0) recording = std::move(timeline);
    };
    const auto make = [&](std::optional<Range> blocks) {
      return std::make_unique<Gpt2<float>>(model.gpt2, Random{1}, mesh, layout.sequence_parallel,
                                           blocks);
    };
    if (layout.pp == 1) {
      const auto whole = make({});
      train(*whole, *whole);
    } else {
      PipelinedGpt2<float> parts(
          pipeline_schedule(layout.schedule,
                            {layout.pp, layout.micro_batches, layout.stages_per_rank}),
          split_by_cost(parameters_of_layers(model.gpt2), layout.stages()), mesh,
          [&](Range range) { return make(std::optional(range)); });
      train(parts, parts.pipeline());
    }
  });
  return recording;
}

/// A prediction with the library's own choices.
std::pair<StepPlan, Timeline> predicted(const StepModel& model, const StepLayout& layout,
                                        double optimizer_ns = 1) {
  const ComputeTimes times = times_at(model, layout, {1, 1, optimizer_ns});
  std::pair<StepPlan, Timeline> both{
      step_plan(model, layout, times, CollectiveChoice(Network{}, 4)), Timeline()};
  both.first.bucket_bytes = bucket_bytes;
  PredictOptions options;
  options.alone = false;
  options.timeline = &both.second;
  predict(both.first, Network{}, options);
  return both;
}

}  // namespace

TEST_CASE("every item of a step is predicted, in each form") {
  std::vector<StepLayout> layouts{{}};
  using enum ShardingStage;
  const std::vector<std::optional<ShardingStage>> stages{std::nullopt, optimizer, gradients,
                                                         parameters};
  for (const auto stage : stages) {
    for (const int ranks : {2, 3, 4}) layouts.push_back({.dp = ranks, .stage = stage});
    layouts.push_back({.dp = 2, .stage = stage, .micro_batches = 2});
    layouts.push_back({.dp = 2, .tp = 2, .stage = stage, .sequence_parallel = true});
    layouts.push_back({.dp = 2, .pp = 2, .stage = stage, .micro_batches = 2});
  }
  for (const int ranks : {2, 4}) {
    layouts.push_back({.tp = ranks});
    layouts.push_back({.tp = ranks, .sequence_parallel = true});
    layouts.push_back({.sp = ranks});
    for (const char* schedule : {"1f1b", "gpipe", "zb_h1"})
      layouts.push_back({.pp = ranks, .micro_batches = 4, .schedule = schedule});
  }
  layouts.push_back({.pp = 2, .micro_batches = 4, .schedule = "naive"});
  layouts.push_back(
      {.pp = 2, .micro_batches = 4, .schedule = "interleaved_1f1b", .stages_per_rank = 2});
  layouts.push_back({.tp = 2, .sp = 2});
  layouts.push_back({.tp = 2, .pp = 2, .micro_batches = 2});
  for (const StepLayout& layout : layouts) {
    CAPTURE(print(layout));
    CAPTURE(layout.schedule);
    StepModel model = small_model(12);
    model.gpt2.dropout = 0;
    const auto [plan, timeline] = predicted(model, layout);
    const std::vector<StepItem> items = items_of(plan, timeline);
    const Timeline recording = recorded(model, layout);
    const JoinedStepItems step = join(items, recording);
    for (const StepItem& item : step.missing) {
      FAIL_CHECK(item.rank, " ", item.name, " ", item.bytes);
    }
    CHECK(step.items.size() == items.size());
    // And nothing else is sent.
    const auto ends = [](const Timeline& of) {
      std::set<std::pair<std::uint32_t, int>> exchanges;
      for (const Event& event : of.events)
        if (event.message()) exchanges.insert({event.operation, event.rank});
      return exchanges.size();
    };
    const auto exchanges = std::ranges::count_if(
        step.items, [](const JoinedItem& item) { return !item.predicted.computation; });
    CHECK(ends(recorded(model, layout, 3)) - ends(recording) ==
          static_cast<std::size_t>(exchanges));
  }
}

TEST_CASE("joined items have both times, from the step's begin") {
  const StepModel model = small_model(4);
  const StepLayout layout{.dp = 2};
  const auto [plan, timeline] = predicted(model, layout);
  const JoinedStepItems step = join(items_of(plan, timeline), recorded(model, layout, 3));
  std::int64_t begin = INT64_MAX, end = 0;
  std::map<std::tuple<int, std::string, std::int64_t>, std::int64_t> last;  // begin, of a kind
  for (const JoinedItem& item : step.items) {
    CHECK(item.predicted.computation == item.measured.computation);
    CHECK(item.measured.begin <= item.measured.end);
    auto& before = last[{item.measured.rank, item.measured.name, item.measured.bytes}];
    CHECK(item.measured.begin >= before);
    before = item.measured.begin;
    begin = std::min(begin, item.measured.begin);
    end = std::max(end, item.measured.end);
  }
  CHECK(begin == 0);
  CHECK(end == step.measured_ns);
  CHECK(step.predicted_ns > 0);
  CHECK(step.ends.size() == step.items.size());
  for (std::size_t i = 0; i < step.ends.size(); ++i) {
    CHECK(step.measured.events[step.ends[i].first].end == step.items[i].measured.end);
    CHECK(timeline.events[step.ends[i].second].end == step.items[i].predicted.end);
  }
}

TEST_CASE("an optimizer of no time parts a step, too") {
  const StepModel model = small_model(4);
  for (const auto stage : {ShardingStage::optimizer, ShardingStage::gradients}) {
    const StepLayout layout{.dp = 2, .stage = stage};
    auto [plan, timeline] = predicted(model, layout, 0);
    CHECK(join(items_of(plan, timeline), recorded(model, layout)).missing.empty());
  }
}

TEST_CASE("a recording of something else is refused") {
  const StepModel model = small_model(6);
  const auto [plan, timeline] = predicted(model, {.dp = 2});
  const std::vector<StepItem> items = items_of(plan, timeline);
  CHECK_THROWS_WITH_AS(join(items, recorded(model, {.dp = 3})),
                       "expected a recording of 2 ranks, found one of 3", Error);
  Timeline none;
  none.ranks = 2;
  CHECK_THROWS_WITH_AS(join(items, none),
                       "expected a recording of a training step, found none on rank 0", Error);
}
