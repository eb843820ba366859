#include "layout.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <climits>

#include "../pipeline/schedule.hpp"
#include "../pipeline/split.hpp"
#include "baton/error.hpp"
#include "baton/schedule.hpp"

namespace baton::transformer {

int StepLayout::ranks() const {
  std::int64_t all = dp;
  for (const int size : {tp, sp, pp}) all = std::min<std::int64_t>(all * size, INT_MAX);
  return static_cast<int>(all);
}

std::string print(const StepLayout& layout) {
  std::string text;
  const auto axis = [&](const char* name, int size) {
    if (size > 1) text += fmt::format("{}{} {}", text.empty() ? "" : " x ", name, size);
  };
  axis("dp", layout.dp);
  axis("tp", layout.tp);
  axis("sp", layout.sp);
  axis("pp", layout.pp);
  if (text.empty()) text = "1 rank";
  if (layout.stage) text += fmt::format(", stage {}", static_cast<int>(*layout.stage));
  if (layout.sequence_parallel) text += ", sequence parallel";
  return text;
}

std::string refusal(const StepModel& model, const StepLayout& layout) {
  const Gpt2Config& gpt2 = model.gpt2;
  const auto divides = [](std::int64_t whole, std::int64_t parts, const char* what,
                          const char* of) {
    if (whole % parts == 0) return std::string();
    return fmt::format("expected {} that {} {} divide, found {}", what, parts, of, whole);
  };
  std::string why =
      divides(gpt2.heads, std::int64_t{layout.tp} * layout.sp, "heads", "ranks of tp x sp");
  const std::int64_t parts = std::int64_t{layout.sp} * (layout.sequence_parallel ? layout.tp : 1);
  if (why.empty()) why = divides(model.seq, parts, "positions", "parts of a sample");
  if (why.empty() && layout.stages() > gpt2.layers) {
    why = fmt::format("expected at most {} stages, one for each layer, found {}", gpt2.layers,
                      layout.stages());
  }
  if (why.empty() && model.batch < std::int64_t{layout.dp} * layout.micro_batches) {
    why = fmt::format(
        "expected a sample or more for each of {} micro-batches on {} ranks of dp, "
        "found {} samples",
        layout.micro_batches, layout.dp, model.batch);
  }
  if (why.empty() && !layout.cuts.empty() &&
      static_cast<int>(layout.cuts.size()) + 1 != layout.stages()) {
    why = fmt::format("expected the first layers of {} stages but the first, found {}",
                      layout.stages(), layout.cuts.size());
  }
  if (why.empty() && layout.sequence_parallel && layout.tp == 1)
    why = "expected axis tp for sequence parallelism, found none";
  if (!why.empty() || layout.pp == 1) return why;
  const PipelineProblem problem{layout.pp, layout.micro_batches, layout.stages_per_rank};
  why = refusal(pipeline_algorithm(layout.schedule), problem);
  return why.empty() ? why : fmt::format("the schedule {} {}", layout.schedule, why);
}

StepPlace place_of(const StepLayout& layout, int rank) {
  StepPlace place;
  place.tp = rank % layout.tp;
  place.sp = rank / layout.tp % layout.sp;
  place.dp = rank / layout.tp / layout.sp % layout.dp;
  place.pp = rank / layout.tp / layout.sp / layout.dp;
  return place;
}

int rank_at(const StepLayout& layout, const StepPlace& place) {
  return ((place.pp * layout.dp + place.dp) * layout.sp + place.sp) * layout.tp + place.tp;
}

StepGroup group_of(const StepLayout& layout, int rank, Axes along) {
  StepGroup group;
  StepPlace place = place_of(layout, rank);
  const auto each = [&](Axis axis, int& at, int size, const auto& next) {
    if (!along.has(axis)) return next();
    const int own = at;
    for (at = 0; at < size; ++at) next();
    at = own;
  };
  const auto add = [&] {
    if (rank_at(layout, place) == rank) group.own = static_cast<int>(group.ranks.size());
    group.ranks.push_back(rank_at(layout, place));
  };
  each(Axis::pp, place.pp, layout.pp, [&] {
    each(Axis::dp, place.dp, layout.dp, [&] {
      each(Axis::sp, place.sp, layout.sp, [&] { each(Axis::tp, place.tp, layout.tp, add); });
    });
  });
  return group;
}

int size_of(const StepLayout& layout, Axes along) {
  return (along.has(Axis::dp) ? layout.dp : 1) * (along.has(Axis::tp) ? layout.tp : 1) *
         (along.has(Axis::sp) ? layout.sp : 1) * (along.has(Axis::pp) ? layout.pp : 1);
}

Axes without_ones(const StepLayout& layout, Axes along) {
  Axes set;
  for (const Axis axis : {Axis::dp, Axis::tp, Axis::sp, Axis::pp})
    if (along.has(axis) && size_of(layout, axis) > 1) set = set | axis;
  return set;
}

StepShare share_of(const StepModel& model, const StepLayout& layout) {
  const std::int64_t parts = std::int64_t{layout.dp} * layout.micro_batches;
  StepShare share;
  share.samples = (model.batch + parts - 1) / parts;
  share.positions = model.seq / layout.sp;
  share.activations = share.samples * share.positions * model.gpt2.d_model;
  share.boundary = share.activations / (layout.sequence_parallel ? layout.tp : 1);
  return share;
}

std::pair<int, int> layers_of(const StepModel& model, const StepLayout& layout, int stage) {
  const std::vector<Range> all =
      layout.cuts.empty() ? split_by_cost(parameters_of_layers(model.gpt2), layout.stages())
                          : split_by_hand(model.gpt2.layers, layout.cuts);
  const Range own = all[static_cast<std::size_t>(stage)];
  return {static_cast<int>(own.begin), static_cast<int>(own.end)};
}

std::int64_t StepUnit::elements() const {
  std::int64_t all = 0;
  for (const StepParam& param : params) all += param.elements;
  return all;
}

std::vector<StepUnit> units_of(const StepModel& model, const StepLayout& layout, int pp) {
  const std::int64_t d = model.gpt2.d_model, tp = layout.tp;
  const Axes samples = Axis::dp | Axis::sp;
  const bool cut = layout.sequence_parallel && tp > 1, one_stage = layout.stages() == 1;
  // Matrices and their biases are cut, but for the biases behind sums over axis tp, and norms.
  const auto part = [&](std::int64_t elements) { return StepParam{elements / tp, samples}; };
  const StepParam row{d, cut ? samples | Axis::tp : samples};
  const StepParam square = part(d * d), bias = part(d);
  const StepParam table{(model.gpt2.vocabulary + tp - 1) / tp * d, samples, !one_stage};
  const StepParam positions{model.gpt2.context * d, row.partial};
  const std::vector<StepParam> block{row,
                                     part(4 * d * d),
                                     part(4 * d * d),
                                     part(4 * d),
                                     row,
                                     row,
                                     row,
                                     square,
                                     square,
                                     bias,
                                     square,
                                     bias,
                                     square,
                                     bias,
                                     row,
                                     row};
  std::vector<StepUnit> units;
  for (int v = 0; v < layout.stages_per_rank; ++v) {
    const int stage = v * layout.pp + pp;
    using Kind = StepUnit::Kind;
    if (stage == 0) {
      std::vector<StepParam> params{positions, table};
      if (one_stage) params.insert(params.begin(), {row, row});
      units.push_back({Kind::embeddings, -1, stage, std::move(params)});
    }
    const auto [first, last] = layers_of(model, layout, stage);
    for (int layer = first; layer < last; ++layer)
      units.push_back({Kind::block, layer, stage, block});
    if (stage == layout.stages() - 1 && !one_stage)
      units.push_back({Kind::head, -1, stage, {row, row, table}});
  }
  return units;
}

}  // namespace baton::transformer
