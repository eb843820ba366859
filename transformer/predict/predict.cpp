#include "predict.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include "../pipeline/program.hpp"
#include "../training/analysis.hpp"

namespace baton::transformer {
namespace {

std::shared_ptr<const Hosts> hosts_on(const Network& network, int ranks) {
  const int each = network.ranks_per_host;
  if (each <= 0 || each >= ranks) return nullptr;
  std::vector<int> hosts;
  for (int rank = 0; rank < ranks; ++rank) hosts.push_back(rank / each);
  return host_grouping(hosts);
}

/// ns of each stage's actions: its layers, embeddings and head.
class ActionTimes {
 public:
  explicit ActionTimes(const StepPlan& plan) {
    const PartTimes times = parts_of(plan.model, plan.layout, plan.times);
    const int stages = plan.layout.stages();
    std::int64_t forward = 0, input = 0, weights = 0;
    for (const std::int64_t ns : times.block_forward) forward += ns;
    for (std::size_t i = 0; i < block_backward_count; ++i)
      (by_weights(static_cast<BlockBackward>(i)) ? weights : input) += times.block_backward[i];
    for (int stage = 0; stage < stages; ++stage) {
      const auto [first, last] = layers_of(plan.model, plan.layout, stage);
      const std::int64_t count = last - first;
      Stage& its = stages_.emplace_back(Stage{count * forward, count * input, count * weights});
      if (stage == stages - 1) {
        its.forward += times.head_norm + times.head_forward;
        its.input += times.head_input + times.head_norm_backward;
        its.weights += times.head_weight;
      }
      if (stage > 0) continue;
      its.forward += times.embedding_forward;
      its.input += times.embedding_backward;
    }
  }
  std::int64_t of(const PipelineAction& action) const {
    const Stage& its = stages_[static_cast<std::size_t>(action.stage)];
    switch (action.work) {
      case PipelineWork::forward:
        return its.forward;
      case PipelineWork::backward:
        return its.input + its.weights;
      case PipelineWork::backward_input:
        return its.input;
      case PipelineWork::backward_weight:
        return its.weights;
    }
    return 0;
  }

 private:
  struct Stage {
    std::int64_t forward = 0, input = 0, weights = 0;
  };
  std::vector<Stage> stages_;
};

std::int64_t optimizer_ns(const StepPlan& plan, int pp) {
  const int divides = plan.layout.dp * plan.layout.sp;
  std::int64_t parameters = 0;
  for (const StepUnit& unit : units_of(plan.model, plan.layout, pp)) {
    const std::int64_t all = unit.elements();
    parameters += plan.layout.stage ? (all + divides - 1) / divides : all;
  }
  return std::llround(plan.times.optimizer_ns * static_cast<double>(parameters));
}

/// The pipeline's computations alone, with so many processors for all ranks (0: one for each). Then
/// of the ranks along axis pp only.
Prediction without_messages(const StepPlan& plan, const ActionTimes& times, const Network& network,
                            int processors) {
  const PipelineLoad load{[&](const PipelineAction& action) { return times.of(action); },
                          [](const PipelineAction&) { return 1; }};
  StepLayout layout = plan.layout;
  if (processors == 0) layout.dp = layout.tp = layout.sp = 1;
  const auto program = [&](int rank) {
    StepPlace place = place_of(layout, rank);
    Problem problem;
    problem.collective = Collective::program;
    problem.size = layout.ranks();
    problem.rank = rank;
    ScheduleBuilder builder(problem);
    std::vector<int> ranks;
    const int pp = place.pp;
    for (place.pp = 0; place.pp < layout.pp; ++place.pp) ranks.push_back(rank_at(layout, place));
    builder.embed(program_of(plan.pipeline, pp, load), ranks, {}, {});
    builder.compute({"optimizer", ComputationKind::optimizer, optimizer_ns(plan, pp)});
    return builder.build();
  };
  Network free;
  free.processors = processors;
  free.call = network.call;
  return simulate(layout.ranks(), program, 1, free);
}

}  // namespace

StepMemory memory_of(const StepModel& model, const StepLayout& layout) {
  const PipelineProblem problem{layout.pp, layout.micro_batches, layout.stages_per_rank};
  const PipelineCost cost = pipeline_algorithm(layout.schedule).cost(problem);
  const StepShare share = share_of(model, layout);
  const Shape x{share.samples, share.positions, model.gpt2.d_model};
  const std::int64_t block = block_kept_bytes(model.gpt2.block(0), x, model.type);
  // Of the 16 sizes of x that a block keeps, axis tp cuts 12, and all with sequence parallelism.
  const std::int64_t cut = block / layout.tp;
  const std::int64_t kept = layout.sequence_parallel ? cut : cut + (block - cut) / 4;
  StepMemory most;
  for (int pp = 0; pp < layout.pp; ++pp) {
    AnalyzedModel analyzed;
    StepMemory own;
    const auto units = units_of(model, layout, pp);
    std::int64_t blocks = 0;
    bool head = false;
    for (const StepUnit& unit : units) {
      analyzed.units.push_back(unit.elements());
      if (unit.kind == StepUnit::Kind::block) ++blocks;
      if (unit.kind == StepUnit::Kind::head || layout.stages() == 1) head = true;
      if (layout.stage != ShardingStage::parameters) continue;
      std::int64_t divided = 0;
      for (const StepParam& param : unit.params)
        if (!without_ones(layout, param.partial).empty()) divided += param.elements;
      own.gathered =
          std::max(own.gathered, 2 * divided * static_cast<std::int64_t>(size_of(model.type)));
    }
    analyzed.bytes = parameter_bytes(model.type, model.type, model.states);
    analyzed.ranks = layout.dp * layout.sp;
    analyzed.micro_batches = layout.micro_batches;
    own.state = most_held_bytes(analyzed, layout.stage).total();
    const auto pairs = static_cast<std::int64_t>(cost.peak[static_cast<std::size_t>(pp)]);
    own.activations =
        pairs * ((blocks + layout.stages_per_rank - 1) / layout.stages_per_rank) * kept;
    if (head) own.activations += head_kept_bytes(model.gpt2.vocabulary / layout.tp, x, model.type);
    if (own.total() > most.total()) most = own;
  }
  return most;
}

StepPrediction predict(const StepPlan& plan, const Network& network,
                       const PredictOptions& options) {
  const int ranks = plan.layout.ranks();
  const std::size_t element = size_of(plan.model.type);
  SimulateOptions how;
  how.hosts = hosts_on(network, ranks);
  how.panel = options.panel;
  how.computes_apart = options.computes_apart;
  how.timeline = options.timeline != nullptr;
  const Prediction whole = simulate(
      ranks, [&](int rank) { return program_of(plan, rank); }, element, network, how);
  StepPrediction step;
  step.ns = whole.total;
  step.messages = whole.messages;
  step.sent = whole.bytes_within;
  for (const HostBytes& host : whole.hosts) step.sent += host.sent;
  if (options.timeline) {
    *options.timeline = *whole.timeline;
    finish(*options.timeline);
  }
  const ActionTimes times(plan);
  const int processors = options.computes_apart ? 0 : network.processors;
  const std::int64_t order = without_messages(plan, times, network, 0).total;
  step.without_messages =
      processors > 0 ? without_messages(plan, times, network, processors).total : order;
  std::int64_t busy = 0;
  for (int pp = 0; pp < plan.layout.pp; ++pp) {
    busy += optimizer_ns(plan, pp);
    for (const PipelineAction& action : plan.pipeline.ranks[static_cast<std::size_t>(pp)])
      busy += times.of(action);
  }
  const auto whole_time = static_cast<double>(order - network.call) * plan.layout.pp;
  if (whole_time > 0) step.bubble = 1 - static_cast<double>(busy) / whole_time;
  step.alone = -1;
  if (options.alone) {
    StepPlan idle = plan;
    idle.times = {};
    how.timeline = false;
    step.alone = simulate(
                     ranks, [&](int rank) { return program_of(idle, rank); }, element, network, how)
                     .total;
  }
  step.memory = memory_of(plan.model, plan.layout);
  const auto tokens = static_cast<double>(plan.model.batch * plan.model.seq);
  step.tokens_per_second = step.ns > 0 ? tokens / (static_cast<double>(step.ns) * 1e-9) : 0;
  return step;
}

double estimated_ns(const StepPlan& plan) {
  const StepLayout& layout = plan.layout;
  const auto ns = [](std::int64_t time) { return static_cast<double>(time); };
  double passes[2] = {};  // of a stage's blocks for a micro-batch, forward and backward
  const auto [first, last] = layers_of(plan.model, layout, 0);
  const auto time = [&](const StepCollective& call) {
    return plan.choice.time(call, group_of(layout, 0, call.along));
  };
  for (const bool backward : {false, true}) {
    double block = ns(backward ? plan.times.block_backward : plan.times.block_forward);
    const auto kind = StepUnit::Kind::block;
    for (const StepPiece& piece : backward ? backward_pieces(plan.model, layout, kind, {})
                                           : forward_pieces(plan.model, layout, kind, {})) {
      for (const StepCollective& call : piece.starts) block += time(call);
    }
    passes[backward] = (last - first) * layout.stages_per_rank * block;
  }
  const double head = ns(plan.times.head_forward + plan.times.head_backward);
  // Stages that take this long, and the head on the last.
  const int m = layout.micro_batches;
  const double pipeline =
      (m + (layout.pp - 1.0) / layout.stages_per_rank) * (passes[0] + passes[1]) + m * head;
  const double step = pipeline + ns(optimizer_ns(plan, 0));
  const Axes state = without_ones(layout, Axis::dp | Axis::sp);
  if (state.empty()) return step;
  double sums = 0, gathers = 0, last_sum = 0;
  for (const StepUnit& unit : units_of(plan.model, layout, 0)) {
    const std::int64_t all = unit.elements();
    const double sum = layout.stage ? time({Collective::reduce_scatter, state, all, true})
                                    : time({Collective::all_reduce, state, all});
    if (layout.stage) gathers += time({Collective::all_gather, state, all, true});
    if (sums == 0) last_sum = sum;  // the embeddings' gradient is complete last
    sums += sum;
  }
  const double left = std::max(sums - passes[1], last_sum);
  if (!layout.stage) return step + left;
  if (layout.stage == ShardingStage::optimizer) return step + left + gathers;
  if (layout.stage == ShardingStage::gradients)
    return step + (m - 1) * std::max(sums - passes[1], 0.0) + left + gathers;
  return step +
         m * (std::max(gathers - passes[0], 0.0) + std::max(gathers + sums - passes[1], last_sum));
}

std::vector<StepLayout> layouts_of(const StepModel& model, int ranks, const StepLayout& like) {
  std::vector<StepLayout> layouts;
  const auto for_each_divisor = [](int number, const auto& use) {
    for (int d = 1; d <= number; ++d)
      if (number % d == 0) use(d);
  };
  for_each_divisor(ranks, [&](int tp) {
    for_each_divisor(ranks / tp, [&](int sp) {
      for_each_divisor(ranks / tp / sp, [&](int pp) {
        StepLayout layout = like;
        layout.tp = tp, layout.sp = sp, layout.pp = pp, layout.dp = ranks / tp / sp / pp;
        layout.sequence_parallel = like.sequence_parallel && tp > 1;
        if (pp == 1) layout.stages_per_rank = 1;
        layout.stage = {};
        if (!refusal(model, layout).empty()) return;
        layouts.push_back(layout);
        if (layout.dp * layout.sp == 1) return;
        for (const ShardingStage stage :
             {ShardingStage::optimizer, ShardingStage::gradients, ShardingStage::parameters}) {
          layout.stage = stage;
          layouts.push_back(layout);
        }
      });
    });
  });
  return layouts;
}

}  // namespace baton::transformer
