#include "program.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "../pipeline/program.hpp"
#include "../pipeline/steps.hpp"
#include "baton/error.hpp"

namespace baton::transformer {
namespace {

// Lanes: messages of one lane between two ranks stay in order, so what is independent has others.
constexpr int activations_lane = 0, gradients_lane = 1, tp_lane = 2, sp_lane = 3, sums_lane = 4,
              gathers_lane = 5, ends_lane = 6;

/// A unit of this rank, with its places in the rank's memory.
struct Unit {
  StepUnit its;
  std::int64_t shard = 0;                 ///< elements, extended to a multiple of the ranks
  Region gradient, reduced, part, whole;  ///< whole: of parameters that are gathered
};

class StepWriter {
 public:
  StepWriter(const StepPlan& plan, int rank)
      : plan_(plan),
        layout_(plan.layout),
        place_(place_of(plan.layout, rank)),
        share_(transformer::share_of(plan.model, plan.layout)),
        builder_(problem(plan, rank)),
        parts_(plan.choice, plan.layout, rank),
        divides_(layout_.dp * layout_.sp) {
    steps_ = steps_of(plan.pipeline, place_.pp);
    for (const StepUnit& unit : units_of(plan.model, layout_, place_.pp)) {
      Unit own{unit, (unit.elements + divides_ - 1) / divides_, {}, {}, {}, {}};
      const std::int64_t whole = layout_.stage ? own.shard * divides_ : unit.elements;
      own.gradient = builder_.scratch(whole);
      own.reduced = builder_.scratch(layout_.stage ? own.shard : whole);
      if (layout_.stage) own.part = builder_.scratch(own.shard);
      if (layout_.stage) own.whole = builder_.scratch(whole);
      units_.push_back(own);
    }
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const PipelineStep& step = steps_[i];
      if (step.kind != PipelineStepKind::compute) continue;
      if (completes(step.action.work)) last_[step.action.stage] = i;
      for (const std::size_t unit : uses_of(step.action)) uses_.push_back(unit);
    }
  }

  Schedule write() {
    for (std::size_t i = 0; i < steps_.size(); ++i) step(i);
    flush();
    update();
    return builder_.build(plan_.pipeline.name);
  }

 private:
  static Problem problem(const StepPlan& plan, int rank) {
    Problem problem;
    problem.collective = Collective::program;
    problem.size = plan.layout.ranks();
    problem.rank = rank;
    return problem;
  }
  /// Whether gradients by weights are complete behind it.
  static bool completes(PipelineWork work) {
    return work == PipelineWork::backward || work == PipelineWork::backward_weight;
  }
  bool gathers() const { return divides_ > 1 && layout_.stage == ShardingStage::parameters; }

  /// The units that an action computes with, in their order; parameters by weights alone need none.
  std::vector<std::size_t> uses_of(const PipelineAction& action) const {
    std::vector<std::size_t> uses;
    if (action.work == PipelineWork::backward_weight) return uses;
    for (std::size_t u = 0; u < units_.size(); ++u)
      if (units_[u].its.stage == action.stage) uses.push_back(u);
    // The head of a whole model is the first unit's table, which is gathered for the embedding.
    if (action.work != PipelineWork::forward) std::reverse(uses.begin(), uses.end());
    return uses;
  }

  void step(std::size_t i) {
    const PipelineStep& step = steps_[i];
    const PipelineAction& action = step.action;
    const bool activation = action.work == PipelineWork::forward;
    const auto lane = activation ? activations_lane : gradients_lane;
    switch (step.kind) {
      case PipelineStepKind::recv:
        carried_.push_back(builder_.scratch(share_.boundary));
        builder_.lane(lane);
        builder_.recv(at_stage(step.peer), carried_.back());
        break;
      case PipelineStepKind::send:
        break;  // behind its computation
      case PipelineStepKind::compute: {
        const bool sends = i + 1 < steps_.size() && steps_[i + 1].kind == PipelineStepKind::send;
        result_ = sends ? builder_.scratch(share_.boundary) : Region{};
        reduces_ = last_[action.stage] == i ||
                   (layout_.stage >= ShardingStage::gradients && completes(action.work));
        compute(action);
        if (!sends) break;
        builder_.lane(lane);
        builder_.send(at_stage(steps_[i + 1].peer), result_);
        break;
      }
    }
  }
  int at_stage(int pp) const {
    StepPlace place = place_;
    place.pp = pp;
    return rank_at(layout_, place);
  }

  void compute(const PipelineAction& action) {
    if (action.work == PipelineWork::backward_weight) {
      weights(action);
      return;
    }
    const std::vector<std::size_t> uses = uses_of(action);
    for (std::size_t k = 0; k < uses.size(); ++k)
      use(action, uses[k], k == 0, k + 1 == uses.size());
  }

  /// Forward or backward of one unit.
  void use(const PipelineAction& action, std::size_t u, bool first, bool last) {
    const bool forward = action.work == PipelineWork::forward;
    gather(u);
    std::vector<StepPhase> phases;
    const Unit& unit = units_[u];
    const bool whole_model = layout_.stages() == 1;
    if (unit.its.kind == StepUnit::Kind::block) {
      phases = block_phases(plan_.model, layout_, !forward, block_ns(action.work));
      const bool head_too = whole_model && (forward ? last : first);
      if (head_too) add_head(action.work, phases);
    } else if (unit.its.kind == StepUnit::Kind::embeddings) {
      phases.resize(1);
      if (forward && layout_.tp > 1) phases[0].after.push_back(sum_of_tp());
    } else {
      phases.resize(1);
      add_head(action.work, phases);
    }
    const bool completes_here = action.work == PipelineWork::backward;
    for (std::size_t p = 0; p < phases.size(); ++p) {
      const bool ends = p + 1 == phases.size();
      Regions writes;
      if (ends && completes_here && reduces_) writes.push_back(units_[u].gradient);
      if (ends) write_token(writes);
      phase(action, phases[p], std::move(writes), last && ends);
    }
    if (completes_here && reduces_) reduce(u);
    ++used_;
  }

  /// The gradients by weights of a stage, all at once.
  void weights(const PipelineAction& action) {
    std::int64_t ns = 0;
    Regions writes;
    std::vector<std::size_t> own;
    for (std::size_t u = units_.size(); u-- > 0;) {
      if (units_[u].its.stage != action.stage) continue;
      if (units_[u].its.kind == StepUnit::Kind::block) ns += block_ns(action.work);
      own.push_back(u);
      if (reduces_) writes.push_back(units_[u].gradient);
    }
    if (action.stage == layout_.stages() - 1) ns += head_ns(action.work);
    phase(action, {ns, {}}, std::move(writes), true);
    for (const std::size_t u : own)
      if (reduces_) reduce(u);
  }

  std::int64_t part_of_backward(PipelineWork work, std::int64_t backward) const {
    if (work == PipelineWork::backward) return backward;
    return work == PipelineWork::backward_input ? backward / 2 : backward - backward / 2;
  }
  std::int64_t block_ns(PipelineWork work) const {
    if (work == PipelineWork::forward) return plan_.times.block_forward;
    return part_of_backward(work, plan_.times.block_backward);
  }
  std::int64_t head_ns(PipelineWork work) const {
    if (work == PipelineWork::forward) return plan_.times.head_forward;
    return part_of_backward(work, plan_.times.head_backward);
  }
  /// What leaves a region of axis tp in forward, or enters it in backward.
  StepExchange sum_of_tp() const {
    return layout_.sequence_parallel
               ? StepExchange{Collective::reduce_scatter, Along::tp, share_.boundary}
               : StepExchange{Collective::all_reduce, Along::tp, share_.activations};
  }
  /// The head and the loss, behind the blocks in forward, before them in backward.
  void add_head(PipelineWork work, std::vector<StepPhase>& phases) const {
    const bool tp = layout_.tp > 1;
    if (work == PipelineWork::forward) {
      if (tp && layout_.sequence_parallel)
        phases.back().after.push_back({Collective::all_gather, Along::tp, share_.boundary});
      StepPhase head{head_ns(work), {}};
      // The largest logit, the sum of exponentials and the target's logit of each position.
      if (tp)
        head.after.push_back(
            {Collective::all_reduce, Along::tp, share_.samples * share_.positions, 3});
      phases.push_back(std::move(head));
    } else {
      StepPhase head{head_ns(work), {}};
      if (tp) head.after.push_back(sum_of_tp());
      phases.insert(phases.begin(), std::move(head));
    }
  }

  /// A computation that waits for what was exchanged before it, and the exchanges behind it. The
  /// last one of an action makes what is sent.
  void phase(const PipelineAction& action, const StepPhase& phase, Regions writes, bool last) {
    std::vector<Regions> inputs, outputs;
    for (std::size_t e = 0; e < phase.after.size(); ++e) {
      const StepExchange& exchange = phase.after[e];
      const int size = exchange.along == Along::tp ? layout_.tp : layout_.sp;
      const std::int64_t all =
          exchange.collective == Collective::all_reduce ? exchange.count : size * exchange.count;
      const bool gathers = exchange.collective == Collective::all_gather;
      const bool scatters = exchange.collective == Collective::reduce_scatter;
      Regions &in = inputs.emplace_back(), &out = outputs.emplace_back();
      for (int k = 0; k < exchange.times; ++k) {
        const int number = static_cast<int>(8 * e) + k;
        in.push_back(buffer(gathers ? exchange.count : all, 2 * number));
        out.push_back(buffer(scatters ? exchange.count : all, 2 * number + 1));
      }
      writes.insert(writes.end(), in.begin(), in.end());
    }
    const bool sends = last && !result_.empty();
    if (sends && phase.after.empty()) writes.push_back(result_);
    if (sends && !phase.after.empty()) outputs.back().back() = result_;
    const Regions reads = std::exchange(carried_, {});
    builder_.compute({print(action), computation_kind(action.work), phase.ns}, reads, writes);
    for (std::size_t e = 0; e < phase.after.size(); ++e) {
      const StepExchange& exchange = phase.after[e];
      for (std::size_t k = 0; k < inputs[e].size(); ++k) {
        embed(exchange.collective, exchange.along, exchange.count,
              exchange.along == Along::tp ? tp_lane : sp_lane, {inputs[e][k]}, {outputs[e][k]});
        carried_.push_back(outputs[e][k]);
      }
    }
  }

  /// Embeds a collective of which `output` results.
  void embed(Collective collective, Along along, std::int64_t count, int lane, const Regions& input,
             const Regions& output) {
    const Parts::Part& part = parts_.of(collective, along, count);
    builder_.lane(lane);
    builder_.embed(part.schedule, part.group.ranks, input, output);
  }
  /// Memory of this length, used again.
  Region buffer(std::int64_t length, int number) {
    const auto [found, added] = buffers_.try_emplace({length, number});
    if (added) found->second = builder_.scratch(length);
    return found->second;
  }

  // --- gradients and sharded state -------------------------------------------------------------

  void reduce(std::size_t u) {
    if (divides_ == 1) return;
    Unit& unit = units_[u];
    if (layout_.stage) {
      embed(Collective::reduce_scatter, Along::state, unit.shard, sums_lane, {unit.gradient},
            {unit.reduced});
      return;
    }
    const auto bytes = static_cast<std::int64_t>(size_of(plan_.model.type));
    if (pending_ > 0 && (pending_ + unit.its.elements) * bytes > plan_.bucket_bytes) flush();
    bucket_.push_back(unit.gradient);
    sums_.push_back(unit.reduced);
    pending_ += unit.its.elements;
  }
  void flush() {
    if (pending_ > 0)
      embed(Collective::all_reduce, Along::state, pending_, sums_lane, bucket_, sums_);
    bucket_.clear();
    sums_.clear();
    pending_ = 0;
  }
  /// The parameters of a unit, before it is used.
  void gather(std::size_t u) {
    if (!gathers()) return;
    Unit& unit = units_[u];
    embed(Collective::all_gather, Along::state, unit.shard, gathers_lane, {unit.part},
          {unit.whole});
    carried_.push_back(unit.whole);
  }
  /// The unit after the next one may be gathered from now on: so one is gathered ahead.
  void write_token(Regions& writes) {
    if (gathers() && used_ + 2 < uses_.size()) writes.push_back(units_[uses_[used_ + 2]].part);
  }

  void update() {
    Regions reads, writes;
    for (const Unit& unit : units_) {
      const bool table = unit.its.kind != StepUnit::Kind::block;
      if (table && layout_.pp > 1) reads.push_back(sum_of_ends(unit));
      reads.push_back(divides_ > 1 ? unit.reduced : unit.gradient);
      if (layout_.stage) writes.push_back(unit.part);
    }
    reads.insert(reads.end(), carried_.begin(), carried_.end());
    std::int64_t parameters = 0;
    for (const Unit& unit : units_) parameters += layout_.stage ? unit.shard : unit.its.elements;
    const double ns = plan_.times.optimizer_ns * static_cast<double>(parameters);
    builder_.compute({"optimizer", ComputationKind::optimizer, std::llround(ns)}, reads, writes);
    if (divides_ == 1 || !layout_.stage || gathers()) return;
    for (const Unit& unit : units_)
      embed(Collective::all_gather, Along::state, unit.shard, gathers_lane, {unit.part},
            {unit.whole});
  }
  /// The gradient of the token embedding, which the first and the last stage have.
  Region sum_of_ends(const Unit& unit) {
    const std::int64_t d = plan_.model.gpt2.d_model;
    const std::int64_t table = (plan_.model.gpt2.vocabulary + layout_.tp - 1) / layout_.tp * d;
    const std::int64_t elements = layout_.stage ? (table + divides_ - 1) / divides_ : table;
    const Region from = divides_ > 1 ? unit.reduced : unit.gradient;
    const Region sum = builder_.scratch(elements);
    embed(Collective::all_reduce, Along::ends, elements, ends_lane,
          {contiguous(from.buffer, from.offset, elements)}, {sum});
    return sum;
  }

  const StepPlan& plan_;
  const StepLayout& layout_;
  StepPlace place_;
  StepShare share_;
  ScheduleBuilder builder_;
  Parts parts_;
  int divides_;  // ranks over which gradients are summed
  std::vector<PipelineStep> steps_;
  std::vector<Unit> units_;
  std::vector<std::size_t> uses_;    // units in the order of their use
  std::size_t used_ = 0;             // of these
  std::map<int, std::size_t> last_;  // of each stage, the step that completes its gradients
  bool reduces_ = false;             // gradients are reduced behind the current action
  Region result_;                    // of the current action, to be sent; or empty
  Regions carried_;                  // what the next computation waits for
  std::map<std::pair<std::int64_t, int>, Region> buffers_;
  Regions bucket_, sums_;
  std::int64_t pending_ = 0;
};

}  // namespace

StepPlan step_plan(const StepModel& model, const StepLayout& layout, const ComputeTimes& times,
                   const CollectiveChoice& choice) {
  if (const std::string why = refusal(model, layout); !why.empty())
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}", print(layout), why));
  const PipelineProblem problem{layout.pp, layout.micro_batches, layout.stages_per_rank};
  return {model, layout, times, choice, pipeline_schedule(layout.schedule, problem)};
}

Schedule program_of(const StepPlan& plan, int rank) { return StepWriter(plan, rank).write(); }

}  // namespace baton::transformer
