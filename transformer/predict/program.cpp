/// The step of one rank, written in the order in which its thread acts. One class, and so one file
/// of more than 500 lines, since gradients, gathers, pieces and messages share what the rank waits
/// for.

#include "program.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <utility>

#include "../pipeline/program.hpp"
#include "../pipeline/steps.hpp"
#include "baton/error.hpp"

namespace baton::transformer {
namespace {

// Lanes: messages of one lane between two ranks stay in order, so what is independent has others.
// A double tree takes two.
constexpr int activations_lane = 0, gradients_lane = 1, exchanges_lane = 2, sums_lane = 4,
              gathers_lane = 6;

/// Elements of this many bytes.
std::int64_t elements_of(std::int64_t bytes, std::size_t element) {
  return (bytes + static_cast<std::int64_t>(element) - 1) / static_cast<std::int64_t>(element);
}

/// Gradients that are reduced together: a bucket, or what a unit's parameters that the same ranks
/// divide are laid end to end in.
struct Summed {
  Axes along;
  std::int64_t elements = 0;
  Region gradient, sum;
  Region part, whole;  ///< of parameters that are gathered
  std::size_t unit = 0;
  int params = 0, complete = 0;
  bool started = false;
};

/// The use of a unit's parameters.
struct UnitUse {
  std::size_t unit = 0;
  std::vector<std::size_t> before, after;  ///< units that are gathered for it; then, ahead
};

class StepWriter {
 public:
  StepWriter(const StepPlan& plan, int rank)
      : plan_(plan),
        layout_(plan.layout),
        place_(place_of(plan.layout, rank)),
        share_(transformer::share_of(plan.model, plan.layout)),
        times_(parts_of(plan.model, plan.layout, plan.times)),
        builder_(problem(plan, rank)),
        parts_(plan.choice, plan.layout, rank),
        rank_(rank),
        element_(size_of(plan.model.type)),
        units_(units_of(plan.model, plan.layout, place_.pp)) {
    steps_ = steps_of(plan.pipeline, place_.pp);
    for (std::size_t i = 0; i < steps_.size(); ++i)
      if (steps_[i].kind == PipelineStepKind::compute && completes(steps_[i].action.work))
        last_[steps_[i].action.stage] = i;
    if (layout_.stage) {
      lay_end_to_end();
    } else {
      fill_buckets();
    }
    if (gathers()) plan_gathers();
  }

  StepProgram write() {
    if (pipelined()) control(Axis::pp, 2 * 8 * std::int64_t{layout_.stages()});
    for (std::size_t i = 0; i < steps_.size(); ++i) step(i);
    if (pipelined()) control(all_axes, 8);
    finish_gradients();
    if (layout_.stages() > 1) sum_tables();
    control(all_axes, 8);  // the loss
    update();
    StepProgram program{builder_.build(plan_.pipeline.name), std::move(exchanges_)};
    place(program);
    return program;
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
  bool pipelined() const { return layout_.pp > 1; }
  bool gathers() const { return layout_.stage == ShardingStage::parameters; }
  bool divides_gradients() const { return layout_.stage >= ShardingStage::gradients; }
  bool alone(Axes along) const { return size_of(layout_, along) == 1; }

  // --- gradients ---------------------------------------------------------------------------------

  void add_param(Summed& summed, std::size_t unit, std::size_t param) {
    summed.elements += units_[unit].params[param].elements;
    ++summed.params;
    summed_of_[{unit, param}] = &summed - summed_.data();
  }
  /// FullyShardedDataParallel's.
  void lay_end_to_end() {
    for (std::size_t u = 0; u < units_.size(); ++u) {
      const auto begin = static_cast<std::ptrdiff_t>(summed_.size());
      for (std::size_t p = 0; p < units_[u].params.size(); ++p) {
        const StepParam& param = units_[u].params[p];
        const Axes along = without_ones(layout_, param.partial);
        auto found = std::find_if(summed_.begin() + begin, summed_.end(), [&](const Summed& s) {
          return s.along == along &&
                 shared_[static_cast<std::size_t>(&s - summed_.data())] == param.shared;
        });
        if (found == summed_.end()) {
          summed_.emplace_back().along = along;
          summed_.back().unit = u;
          shared_.push_back(param.shared);
          found = summed_.end() - 1;
        }
        add_param(*found, u, p);
      }
    }
    for (Summed& summed : summed_) {
      const std::int64_t own = own_of(summed);
      summed.gradient = builder_.scratch(summed.elements);
      summed.sum = builder_.scratch(own);
      summed.part = builder_.scratch(own);
      summed.whole = builder_.scratch(summed.elements);
    }
  }
  /// This rank's elements.
  std::int64_t own_of(const Summed& summed) const {
    if (!layout_.stage) return summed.elements;
    const StepGroup group = group_of(layout_, rank_, summed.along);
    return shard_of(summed.elements, static_cast<int>(group.ranks.size()), group.own).size();
  }
  /// The parameters of a rank, by unit and place, as Model::params() has them: in the order in
  /// which backward completes their gradients.
  std::vector<std::pair<std::size_t, std::size_t>> all_params() const {
    std::vector<std::pair<std::size_t, std::size_t>> all;
    const auto add = [&](std::size_t unit, std::initializer_list<std::size_t> params) {
      for (const std::size_t p : params) all.emplace_back(unit, p);
    };
    using Kind = StepUnit::Kind;
    for (std::size_t end = units_.size(); end > 0;) {
      std::size_t begin = end;
      while (begin > 0 && units_[begin - 1].stage == units_[end - 1].stage) --begin;
      const bool whole = units_[begin].kind == Kind::embeddings && units_[begin].params.size() == 4;
      if (units_[end - 1].kind == Kind::head) add(end - 1, {2, 0, 1});
      if (whole) add(begin, {0, 1});
      for (std::size_t u = end; u-- > begin;)
        if (units_[u].kind == Kind::block)
          for (std::size_t p = 0; p < units_[u].params.size(); ++p) add(u, {p});
      if (whole) add(begin, {2, 3});
      if (units_[begin].kind == Kind::embeddings && !whole) add(begin, {0, 1});
      end = begin;
    }
    return all;
  }
  /// GradientBuckets'.
  void fill_buckets() {
    const auto params = all_params();
    summed_.reserve(params.size());
    std::map<unsigned, std::size_t> open;  // by axes
    for (const auto& [u, p] : params) {
      const StepParam& param = units_[u].params[p];
      const Axes along = without_ones(layout_, param.partial);
      const auto found = open.find(along.bits());
      const auto fits = [&](const Summed& summed) {
        return (summed.elements + param.elements) * static_cast<std::int64_t>(element_) <=
               plan_.bucket_bytes;
      };
      if (found == open.end() || !fits(summed_[found->second])) {
        open[along.bits()] = summed_.size();
        summed_.emplace_back().along = along;
      }
      add_param(summed_[open[along.bits()]], u, p);
    }
    for (Summed& summed : summed_) {
      summed.gradient = builder_.scratch(summed.elements);
      summed.sum = builder_.scratch(summed.elements);
    }
  }

  /// A gradient is complete; returns what is to be reduced behind the current piece, if anything.
  Summed* complete(std::size_t unit, int param) {
    const auto found = summed_of_.find({unit, static_cast<std::size_t>(param)});
    Summed& summed = summed_[static_cast<std::size_t>(found->second)];
    if (++summed.complete < summed.params || alone(summed.along)) return nullptr;
    summed.complete = 0;
    return &summed;
  }
  void reduce(Summed& summed) {
    summed.started = true;
    if (alone(summed.along)) return;
    const bool divided = layout_.stage.has_value();
    exchange({divided ? Collective::reduce_scatter : Collective::all_reduce, summed.along,
              summed.elements, divided},
             sums_lane, {summed.gradient}, {summed.sum});
    under_way_.push_back(summed.sum);
    // The memory of gradients that are divided at once stays small.
    constexpr std::size_t most = 1;
    while (divides_gradients() && under_way_.size() > most) wait_for_sum();
  }
  void wait_for_sum() {
    carried_.push_back(under_way_.front());
    under_way_.pop_front();
  }
  void finish_gradients() {
    for (std::size_t i = summed_.size(); i-- > 0;) {
      // Buckets start in their order, what is divided in the reverse one.
      Summed& summed = summed_[layout_.stage ? i : summed_.size() - 1 - i];
      if (!summed.started) reduce(summed);
    }
    while (!under_way_.empty()) wait_for_sum();
  }
  /// The gradient of the token embedding, which the first and the last stage have.
  void sum_tables() {
    const int last = (layout_.pp - 1), other = place_.pp == 0 ? last : 0;
    if ((place_.pp != 0 && place_.pp != last) || last == 0) return;
    StepPlace there = place_;
    there.pp = other;
    const int peer = rank_at(layout_, there);
    for (std::size_t u = 0; u < units_.size(); ++u) {
      for (std::size_t p = 0; p < units_[u].params.size(); ++p) {
        if (!units_[u].params[p].shared) continue;
        const auto s = static_cast<std::size_t>(summed_of_.at({u, p}));
        const std::int64_t elements =
            layout_.stage ? own_of(summed_[s]) : units_[u].params[p].elements;
        const Region its = builder_.scratch(elements);
        const Region from = alone(summed_[s].along) ? summed_[s].gradient : summed_[s].sum;
        const Region sent = contiguous(from.buffer, from.offset, elements);
        // Behind all sums.
        compute("", ComputationKind::other, 0, false, {sent});
        message(StepKind::send, peer, gathers_lane, sent);
        message(StepKind::recv, peer, gathers_lane, its);
        carried_.push_back(its);
      }
    }
  }

  // --- gathers -----------------------------------------------------------------------------------

  /// Which units are gathered when: for each use those that are not there, and the next use's.
  void plan_gathers() {
    std::vector<std::vector<std::size_t>> sequences;
    for (const PipelineStep& step : steps_) {
      if (step.kind != PipelineStepKind::compute ||
          step.action.work == PipelineWork::backward_weight)
        continue;
      const auto uses = uses_of(step.action);
      // Each micro-batch by itself, or those of a pipeline together.
      const bool follows =
          !sequences.empty() && (pipelined() || step.action.work != PipelineWork::forward);
      if (!follows) sequences.emplace_back();
      sequences.back().insert(sequences.back().end(), uses.begin(), uses.end());
    }
    std::vector<bool> there(units_.size(), false);
    for (const auto& sequence : sequences) {
      for (std::size_t i = 0; i < sequence.size(); ++i) {
        UnitUse& use = uses_.emplace_back();
        use.unit = sequence[i];
        if (!there[use.unit]) use.before.push_back(use.unit);
        there[use.unit] = true;
        const bool more = i + 1 < sequence.size();
        if (more && !there[sequence[i + 1]]) use.after.push_back(sequence[i + 1]);
        if (more) there[sequence[i + 1]] = true;
        if (!more || sequence[i + 1] != use.unit) there[use.unit] = false;
      }
    }
  }
  /// The units that an action uses, each as often as it reports it.
  std::vector<std::size_t> uses_of(const PipelineAction& action) const {
    std::vector<std::size_t> uses;
    for (const Part& part : parts_of_action(action))
      if (part.enters) uses.push_back(part.unit);
    return uses;
  }
  void gather(std::size_t unit) {
    for (Summed& summed : summed_) {
      if (summed.unit != unit || alone(summed.along)) continue;
      exchange({Collective::all_gather, summed.along, summed.elements, true}, gathers_lane,
               {summed.part}, {summed.whole});
    }
  }
  void wait_for_unit(std::size_t unit) {
    for (const Summed& summed : summed_)
      if (summed.unit == unit && !alone(summed.along)) carried_.push_back(summed.whole);
  }
  void enter(std::size_t unit) {
    if (!gathers()) return;
    const UnitUse& use = uses_[used_++];
    for (const std::size_t u : use.before) gather(u);
    wait_for_unit(unit);
    if (use.after.empty()) return;
    compute("", ComputationKind::other, 0, false, shards_of(use.after));
    for (const std::size_t u : use.after) gather(u);
  }
  /// Written when these units may be gathered.
  Regions shards_of(const std::vector<std::size_t>& units) const {
    Regions regions;
    for (const std::size_t u : units)
      for (const Summed& summed : summed_)
        if (summed.unit == u && !summed.part.empty()) regions.push_back(summed.part);
    return regions;
  }
  /// Of the units that are gathered for the next use.
  Regions next_shards() const {
    if (!gathers() || used_ >= uses_.size()) return {};
    return shards_of(uses_[used_].before);
  }

  // --- computations ------------------------------------------------------------------------------

  /// A unit's share of an action.
  struct Part {
    std::size_t unit = 0;
    StepUnit::Kind kind = StepUnit::Kind::block;  ///< of the head of one stage: head
    bool enters = true;                           ///< reports the use of its unit
  };
  std::vector<Part> parts_of_action(const PipelineAction& action) const {
    std::vector<Part> parts;
    for (std::size_t u = 0; u < units_.size(); ++u)
      if (units_[u].stage == action.stage) parts.push_back({u, units_[u].kind});
    const bool one = layout_.stages() == 1;
    if (one) parts.push_back({0, StepUnit::Kind::head});
    if (action.work != PipelineWork::forward) {
      std::reverse(parts.begin(), parts.end());
      if (one) parts.back().enters = false;
    }
    return parts;
  }

  void step(std::size_t i) {
    const PipelineStep& step = steps_[i];
    const PipelineAction& action = step.action;
    const bool activation = action.work == PipelineWork::forward;
    const auto lane = activation ? activations_lane : gradients_lane;
    switch (step.kind) {
      case PipelineStepKind::recv:
        carried_.push_back(builder_.scratch(share_.boundary));
        message(StepKind::recv, at_stage(step.peer), lane, carried_.back());
        break;
      case PipelineStepKind::send:
        break;  // behind its computation
      case PipelineStepKind::compute: {
        const bool sends = i + 1 < steps_.size() && steps_[i + 1].kind == PipelineStepKind::send;
        result_ = sends ? builder_.scratch(share_.boundary) : Region{};
        reduces_ = last_[action.stage] == i || (divides_gradients() && completes(action.work));
        compute(action);
        if (!sends) break;
        message(StepKind::send, at_stage(steps_[i + 1].peer), lane, result_);
        compute("", ComputationKind::other, 0, true, {});  // messages advance
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
    const std::vector<Part> parts = parts_of_action(action);
    for (std::size_t k = 0; k < parts.size(); ++k) {
      const Part& part = parts[k];
      const bool weights = action.work == PipelineWork::backward_weight;
      if (part.enters && !weights) enter(part.unit);
      run(name_of(action, part), computation_kind(action.work), pieces(action.work, part),
          part.unit, k + 1 == parts.size());
    }
  }
  std::string name_of(const PipelineAction& action, const Part& part) const {
    if (pipelined()) return print(action);
    const bool forward = action.work == PipelineWork::forward;
    const std::string use =
        fmt::format("{}{}{}", part.unit, forward ? 'F' : 'B', action.micro_batch);
    return part.enters ? use : "embeddings of " + use;
  }
  const std::vector<StepPiece>& pieces(PipelineWork work, const Part& part) {
    const bool keeps = completes(work) && reduces_;
    const auto [found, added] = pieces_.try_emplace({work, part.kind, keeps});
    if (!added) return found->second;
    const bool one = layout_.stages() == 1;
    std::vector<StepPiece> all;
    if (work == PipelineWork::forward) {
      all = forward_pieces(plan_.model, layout_, part.kind, times_);
    } else {
      const BackwardPart which = work == PipelineWork::backward         ? BackwardPart::all
                                 : work == PipelineWork::backward_input ? BackwardPart::input
                                                                        : BackwardPart::weights;
      all = backward_pieces(plan_.model, layout_, part.kind, times_, which, one);
    }
    if (!keeps)
      for (StepPiece& piece : all) piece.completes.clear();
    return found->second = joined(std::move(all));
  }

  /// The pieces of a unit. The last one of an action makes what is sent.
  void run(const std::string& name, ComputationKind kind, const std::vector<StepPiece>& pieces,
           std::size_t unit, bool last_unit) {
    std::vector<Region> results;  // of exchanges
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      const StepPiece& piece = pieces[i];
      const bool last = i + 1 == pieces.size();
      for (const int e : piece.waits) carried_.push_back(results[static_cast<std::size_t>(e)]);
      Regions writes, inputs;
      for (const StepCollective& call : piece.starts) {
        const std::int64_t whole = call.collective == Collective::all_reduce
                                       ? call.count
                                       : size_of(layout_, call.along) * call.count;
        const bool gathers = call.collective == Collective::all_gather;
        const bool scatters = call.collective == Collective::reduce_scatter;
        const int number = 2 * static_cast<int>(results.size());
        inputs.push_back(buffer(gathers ? call.count : whole, number));
        results.push_back(buffer(scatters ? call.count : whole, number + 1));
      }
      writes = inputs;
      // No message is received before its exchange begins.
      writes.insert(writes.end(), results.end() - std::ssize(inputs), results.end());
      std::vector<Summed*> sums;
      for (const int param : piece.completes)
        if (Summed* const summed = complete(unit, param)) sums.push_back(summed);
      for (const Summed* const summed : sums)
        writes.insert(writes.end(), {summed->gradient, summed->sum});
      if (last) {
        const Regions next = next_shards();
        writes.insert(writes.end(), next.begin(), next.end());
        if (last_unit && !result_.empty()) writes.push_back(result_);
      }
      compute(name, kind, piece.ns, piece.advances, writes);
      const std::size_t first = results.size() - inputs.size();
      for (std::size_t e = 0; e < inputs.size(); ++e)
        exchange(piece.starts[e], exchanges_lane, {inputs[e]}, {results[first + e]});
      for (Summed* const summed : sums) reduce(*summed);
    }
  }
  /// A computation that waits for all that is carried.
  void compute(const std::string& name, ComputationKind kind, std::int64_t ns, bool advances,
               const Regions& writes) {
    const Regions reads = std::exchange(carried_, {});
    builder_.compute({name, kind, ns, advances}, reads, writes);
  }
  /// Memory of this length, used again.
  Region buffer(std::int64_t length, int number) {
    const auto [found, added] = buffers_.try_emplace({length, number});
    if (added) found->second = builder_.scratch(length);
    return found->second;
  }

  void update() {
    Regions writes;
    std::int64_t parameters = 0;
    for (const Summed& summed : summed_) {
      parameters += own_of(summed);
      if (layout_.stage && !summed.part.empty()) writes.push_back(summed.part);
    }
    const double ns = plan_.times.optimizer_ns * static_cast<double>(parameters);
    compute("optimizer", ComputationKind::optimizer, std::llround(ns), false, writes);
    if (!layout_.stage || gathers()) return;
    for (const Summed& summed : summed_) {
      if (alone(summed.along)) continue;
      exchange({Collective::all_gather, summed.along, summed.elements, true}, gathers_lane,
               {summed.part}, {summed.whole});
    }
  }

  // --- messages ----------------------------------------------------------------------------------

  /// A few bytes that all ranks wait for.
  void control(Axes along, std::int64_t bytes) {
    const Axes axes = without_ones(layout_, along);
    if (axes.empty()) return;
    const std::int64_t count = elements_of(bytes, element_);
    const Region in = builder_.scratch(count), out = builder_.scratch(count);
    compute("", ComputationKind::other, 0, false, {in});
    exchange({Collective::all_reduce, axes, count}, exchanges_lane, {in}, {out});
    carried_.push_back(out);
  }
  void exchange(const StepCollective& call, int lane, const Regions& input, const Regions& output) {
    const Parts::Part& part = parts_.of(call);
    builder_.end_round();
    const int first = builder_.round();
    builder_.lane(lane);
    builder_.embed(part.schedule, part.group.ranks, input, output);
    const bool blocks = call.collective != Collective::all_reduce && !call.uneven;
    exchanges_.push_back({std::string(name(call.collective)), part.group, part.choice,
                          blocks ? std::ssize(part.group.ranks) * call.count : call.count,
                          static_cast<std::uint32_t>(first),
                          static_cast<std::uint32_t>(builder_.round())});
  }
  void message(StepKind kind, int peer, int lane, const Region& region) {
    builder_.end_round();
    const int first = builder_.round();
    builder_.lane(lane);
    const bool sends = kind == StepKind::send;
    if (sends) {
      builder_.send(peer, region);
    } else {
      builder_.recv(peer, region);
    }
    builder_.end_round();
    exchanges_.push_back(
        {sends ? "send" : "recv",
         {sends ? std::vector<int>{rank_, peer} : std::vector<int>{peer, rank_}, sends ? 0 : 1},
         {},
         region.block,
         static_cast<std::uint32_t>(first),
         static_cast<std::uint32_t>(builder_.round())});
  }
  /// From rounds to steps.
  static void place(StepProgram& program) {
    const auto steps = program.schedule.steps();
    const auto step_of = [&](std::uint32_t round) {
      const auto found = std::partition_point(steps.begin(), steps.end(), [&](const Step& step) {
        return static_cast<std::uint32_t>(step.round) < round;
      });
      return static_cast<std::uint32_t>(found - steps.begin());
    };
    for (StepExchange& exchange : program.exchanges) {
      exchange.first = step_of(exchange.first);
      exchange.last = step_of(exchange.last);
    }
  }

  const StepPlan& plan_;
  const StepLayout& layout_;
  StepPlace place_;
  StepShare share_;
  const PartTimes times_;
  ScheduleBuilder builder_;
  Parts parts_;
  const int rank_;
  const std::size_t element_;  // bytes
  std::vector<StepUnit> units_;
  std::vector<PipelineStep> steps_;
  std::map<int, std::size_t> last_;  // of each stage, the step that completes its gradients
  std::vector<Summed> summed_;
  std::vector<bool> shared_;                                                 // of each of these
  std::map<std::pair<std::size_t, std::size_t>, std::ptrdiff_t> summed_of_;  // unit, parameter
  std::deque<Region> under_way_;                                             // sums
  std::vector<UnitUse> uses_;  // in the order of the step
  std::size_t used_ = 0;       // of these
  std::map<std::tuple<PipelineWork, StepUnit::Kind, bool>, std::vector<StepPiece>> pieces_;
  bool reduces_ = false;  // gradients are reduced behind the current action
  Region result_;         // of the current action, to be sent; or empty
  Regions carried_;       // what the next computation waits for
  std::map<std::pair<std::int64_t, int>, Region> buffers_;
  std::vector<StepExchange> exchanges_;
};

}  // namespace

StepPlan step_plan(const StepModel& model, const StepLayout& layout, const ComputeTimes& times,
                   const CollectiveChoice& choice) {
  if (const std::string why = refusal(model, layout); !why.empty())
    throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}", print(layout), why));
  const PipelineProblem problem{layout.pp, layout.micro_batches, layout.stages_per_rank};
  return {model, layout, times, choice, pipeline_schedule(layout.schedule, problem)};
}

StepProgram step_program(const StepPlan& plan, int rank) { return StepWriter(plan, rank).write(); }
Schedule program_of(const StepPlan& plan, int rank) { return step_program(plan, rank).schedule; }

}  // namespace baton::transformer
