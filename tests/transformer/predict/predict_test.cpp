#include "transformer/predict/predict.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <climits>

#include "baton/error.hpp"
#include "models.hpp"
#include "transformer/training/analysis.hpp"

using namespace baton;
using namespace baton::transformer;
using support::plan;
using support::small_model;

namespace {

/// A byte takes a ns, nothing else takes any time.
Network bytes_only() {
  Network network;
  network.within.wire = TimeTable::line(0, 1);
  network.across = network.within;
  return network;
}

std::int64_t parameters() { return small_model(1).gpt2.parameters(); }

}  // namespace

TEST_CASE("a step without messages is the sum of its times") {
  for (const int micro_batches : {1, 2, 3, 5}) {
    const StepPrediction step =
        predict(plan(small_model(8), {.micro_batches = micro_batches}), bytes_only());
    CHECK(step.ns == micro_batches * (4 * 3000 + 900) + (parameters() + 1) / 2);
    CHECK(step.without_messages == step.ns);
    CHECK(step.bubble == 0);
    CHECK(step.alone == 0);
    CHECK(step.messages == 0);
    CHECK(step.tokens_per_second == doctest::Approx(8 * 8 / (static_cast<double>(step.ns) * 1e-9)));
  }
}

TEST_CASE("gradients of two ranks by hand") {
  StepPlan its = plan(small_model(2), {.dp = 2}, bytes_only(), {{Collective::all_reduce, "ring"}});
  its.bucket_bytes = INT64_MAX;  // all gradients at once, behind backward
  const StepPrediction step = predict(its, bytes_only());
  // Two times half of the bytes, in both directions at once.
  REQUIRE(parameters() % 2 == 0);
  CHECK(step.without_messages == 4 * 3000 + 900 + parameters() / 2);
  // And the loss, 8 bytes.
  CHECK(step.exposed() == 4 * parameters() + 8);
  CHECK(step.alone == 4 * parameters() + 8);
  CHECK(step.hidden() == 0);
  CHECK(step.messages == 8);
  CHECK(step.sent == 2 * 4 * parameters() + 2 * 8);
}

TEST_CASE("buckets are summed beside backward") {
  StepPlan its = plan(small_model(2), {.dp = 2}, bytes_only(), {{Collective::all_reduce, "ring"}});
  its.bucket_bytes = 1;
  its.times.block_backward = 1'000'000;  // longer than all gradients of a block
  PredictOptions options;
  options.panel = 1000;
  const StepPrediction step = predict(its, bytes_only(), options);
  // Left over: the embeddings' bucket, and what of block 0's comes after the last computation.
  const auto units = units_of(its.model, its.layout, 0);
  CHECK(step.exposed() <= 4 * (units[0].elements() + units[1].elements()) + 8);
  CHECK(step.exposed() >= 4 * units[0].elements());
  CHECK(step.hidden() >= 4 * 3 * units[1].elements());
}

TEST_CASE("a pipeline takes the documented time if messages take none") {
  for (const int pp : {1, 2, 4}) {
    for (const int m : {4, 8}) {
      const StepPlan its = plan(small_model(8), {.pp = pp, .micro_batches = m});
      const StepPrediction step = predict(its, Network{});
      CHECK(step.ns == step.without_messages);
      if (pp == 1) CHECK(step.bubble == 0);
      // The last stage also has the head, so it is not exactly (p - 1) / (m + p - 1).
      if (pp > 1) CHECK(step.bubble > (pp - 1.0) / (m + pp - 1));
    }
  }
}

TEST_CASE("exchanges of tensor parallelism are hidden beside gradients of weights only") {
  StepPlan its = plan(small_model(2), {.tp = 2}, bytes_only());
  its.times.block_backward = 1'000'000;  // longer than all that is sent meanwhile
  PredictOptions options;
  options.panel = 1;
  const StepPrediction step = predict(its, bytes_only(), options);
  // Of a block's four sums of 2 * 8 * 8 elements, the two of forward; those of embedding, head and
  // loss, and the step's loss of 8 bytes.
  const std::int64_t sum = 4 * 2 * 8 * 8, logits = 4 * 3 * 2 * 8;
  CHECK(step.alone == 4 * 4 * sum + 2 * sum + logits + 8);
  CHECK(step.hidden() >= 4 * 2 * sum);
  CHECK(step.hidden() <= 4 * 2 * sum + sum);
}

TEST_CASE("the same input gives the same prediction, and faster networks quicker steps") {
  const StepLayout layout{.dp = 2, .tp = 2, .pp = 2, .micro_batches = 2};
  std::int64_t before = 0;
  for (const double per_byte : {0.0, 0.1, 1.0, 10.0}) {
    Network network;
    network.within.wire = TimeTable::line(0, per_byte);
    network.across = network.within;
    const StepPlan its = plan(small_model(8), layout, network);
    const StepPrediction once = predict(its, network), again = predict(its, network);
    CHECK(once.ns == again.ns);
    CHECK(once.ns >= before);
    before = once.ns;
  }
}

TEST_CASE("memory is the calculator's") {
  const StepModel model = small_model(8);
  const Shape x{8, 8, 8};
  AnalyzedModel analyzed;
  for (const StepUnit& unit : units_of(model, {}, 0)) analyzed.units.push_back(unit.elements());
  analyzed.bytes = parameter_bytes(Datatype::f32, Datatype::f32, 2);
  const StepMemory one = memory_of(model, {});
  CHECK(one.state == held_bytes(analyzed, {}, 0).total());
  CHECK(one.activations == 4 * block_kept_bytes(model.gpt2.block(0), x, Datatype::f32) +
                               head_kept_bytes(16, x, Datatype::f32));
  CHECK(one.gathered == 0);
  // Sharding and cutting take less.
  const StepMemory sharded = memory_of(model, {.dp = 4, .stage = ShardingStage::parameters});
  CHECK(sharded.state < one.state / 3);
  CHECK(sharded.gathered > 0);
  // Nothing is divided; then only what all positions need, most of it the positions' embedding.
  CHECK(memory_of(model, {.stage = ShardingStage::parameters}).gathered == 0);
  StepLayout cut{.tp = 2, .stage = ShardingStage::parameters};
  CHECK(memory_of(model, cut).gathered == 0);
  cut.sequence_parallel = true;
  CHECK(memory_of(model, cut).gathered == 2 * 4 * (8 * 8 + 2 * 8));
  CHECK(memory_of(model, {.tp = 4}).activations < one.activations / 2);
  // 1F1B keeps fewer micro-batches than GPipe.
  CHECK(memory_of(model, {.pp = 2, .micro_batches = 8}).activations <
        memory_of(model, {.pp = 2, .micro_batches = 8, .schedule = "gpipe"}).activations);
}

TEST_CASE("the speed is measured without dropout") {
  StepModel model = small_model(1);
  model.gpt2.dropout = 1;  // which a block refuses
  const ComputeRate rate = measured_rate(model);
  for (const double number : {rate.forward, rate.backward, rate.optimizer_ns}) CHECK(number > 0);
}

TEST_CASE("estimates order layouts about as simulations do") {
  Network network;
  network.within.latency = 500;
  network.within.wire = TimeTable::line(0, 0.2);
  network.across = network.within;
  const StepModel model = small_model(16);
  std::vector<std::pair<double, std::int64_t>> times;
  for (const StepLayout& layout : layouts_of(model, 8, {.micro_batches = 2})) {
    StepPlan its = plan(model, layout, network);
    its.times = times_at(model, layout, {0.5, 0.5, 0.5});
    times.emplace_back(estimated_ns(its), predict(its, network).ns);
  }
  std::ranges::sort(times);
  const auto best = std::ranges::min(times, {}, &std::pair<double, std::int64_t>::second);
  std::int64_t first_five = times[0].second;
  for (std::size_t i = 0; i < 5; ++i) first_five = std::min(first_five, times[i].second);
  CHECK(static_cast<double>(first_five) <= 1.1 * static_cast<double>(best.second));
}

TEST_CASE("layouts of some ranks") {
  StepModel model = small_model(16);
  const auto layouts = layouts_of(model, 8, {});
  CHECK(!layouts.empty());
  for (const StepLayout& layout : layouts) {
    CHECK(layout.ranks() == 8);
    CHECK(refusal(model, layout) == "");
  }
  const auto has = [&](const StepLayout& wanted) {
    return std::ranges::find(layouts, wanted) != layouts.end();
  };
  CHECK(has({.dp = 8}));
  CHECK(has({.dp = 2, .tp = 4, .stage = ShardingStage::optimizer}));
  CHECK(has({.tp = 2, .sp = 2, .pp = 2}));
  CHECK(!has({.tp = 8}));  // four heads
  CHECK(!has({.pp = 8}));  // four layers
}

TEST_CASE("layouts that cannot train are refused by a sentence") {
  const auto why = [](const StepLayout& layout, std::int64_t batch = 8) {
    return refusal(small_model(batch), layout);
  };
  CHECK(why({}) == "");
  CHECK(why({.tp = 3}) == "expected heads that 3 ranks of tp x sp divide, found 4");
  CHECK(why({.pp = 8}) == "expected at most 4 stages, one for each layer, found 8");
  CHECK(why({.dp = 4, .micro_batches = 3}) ==
        "expected a sample or more for each of 3 micro-batches on 4 ranks of dp, found 8 samples");
  CHECK(why({.sequence_parallel = true}) ==
        "expected axis tp for sequence parallelism, found none");
  CHECK(why({.pp = 2, .micro_batches = 2, .stages_per_rank = 2}).find("1f1b") != std::string::npos);
  CHECK_THROWS_AS(plan(small_model(8), {.tp = 3}), Error);
}

TEST_CASE("more ranks than any machine has") {
  constexpr int much = 65536;
  CHECK(StepLayout{.dp = 3, .tp = 5, .sp = 7, .pp = 11}.ranks() == 1155);
  CHECK(StepLayout{.tp = much, .sp = much}.ranks() == INT_MAX);
  CHECK(StepLayout{.dp = much, .tp = much, .sp = much, .pp = much}.ranks() == INT_MAX);
  StepModel model = small_model(1);
  model.gpt2.heads = std::int64_t{1} << 32;
  CHECK(refusal(model, {.tp = much, .sp = much, .sequence_parallel = true}) ==
        "expected positions that 4294967296 parts of a sample divide, found 8");
}

TEST_CASE("ranks and their places") {
  const StepLayout layout{.dp = 2, .tp = 3, .sp = 5, .pp = 7};
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    CHECK(rank_at(layout, place_of(layout, rank)) == rank);
    for (unsigned bits = 0; bits < 16; ++bits) {
      Axes along;
      for (const Axis axis : {Axis::dp, Axis::tp, Axis::sp, Axis::pp})
        if ((bits >> static_cast<unsigned>(axis) & 1u) != 0) along = along | axis;
      const StepGroup group = group_of(layout, rank, along);
      CHECK(std::ssize(group.ranks) == size_of(layout, along));
      CHECK(group.ranks[static_cast<std::size_t>(group.own)] == rank);
      CHECK(std::ranges::is_sorted(group.ranks));
    }
  }
  CHECK(group_of(layout, 0, Axis::tp).ranks == std::vector<int>{0, 1, 2});
  CHECK(group_of(layout, 0, Axis::sp).ranks == std::vector<int>{0, 3, 6, 9, 12});
  CHECK(group_of(layout, 1, Axis::dp | Axis::sp).ranks.size() == 10);
}
