#include "layout.hpp"

#include <fmt/core.h>

#include "../pipeline/schedule.hpp"
#include "baton/error.hpp"
#include "baton/schedule.hpp"

namespace baton::transformer {

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
  const int parts = layout.sp * (layout.sequence_parallel ? layout.tp : 1);
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

StepGroup group_of(const StepLayout& layout, int rank, Along along) {
  const StepPlace own = place_of(layout, rank);
  StepGroup group;
  const auto add = [&](const StepPlace& place) {
    if (rank_at(layout, place) == rank) group.own = static_cast<int>(group.ranks.size());
    group.ranks.push_back(rank_at(layout, place));
  };
  StepPlace place = own;
  switch (along) {
    case Along::tp:
      for (place.tp = 0; place.tp < layout.tp; ++place.tp) add(place);
      break;
    case Along::sp:
      for (place.sp = 0; place.sp < layout.sp; ++place.sp) add(place);
      break;
    case Along::state:
      for (place.dp = 0; place.dp < layout.dp; ++place.dp)
        for (place.sp = 0; place.sp < layout.sp; ++place.sp) add(place);
      break;
    case Along::ends:
      for (const int pp : {0, layout.pp - 1}) {
        place.pp = pp;
        add(place);
      }
      break;
  }
  return group;
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
  const auto first = chunk_offset(model.gpt2.layers, layout.stages(), stage);
  return {static_cast<int>(first),
          static_cast<int>(first + chunk_count(model.gpt2.layers, layout.stages(), stage))};
}

std::vector<StepUnit> units_of(const StepModel& model, const StepLayout& layout, int pp) {
  const std::int64_t d = model.gpt2.d_model, tp = layout.tp;
  const std::int64_t table = (model.gpt2.vocabulary + tp - 1) / tp * d, norm = 2 * d;
  // Matrices and their biases are cut, but for the biases behind sums over axis tp, and norms.
  const std::int64_t block = (12 * d * d + 7 * d) / tp + 6 * d;
  const bool one_rank = layout.stages() == 1;
  std::vector<StepUnit> units;
  for (int v = 0; v < layout.stages_per_rank; ++v) {
    const int stage = v * layout.pp + pp;
    using Kind = StepUnit::Kind;
    if (stage == 0)
      units.push_back(
          {Kind::embeddings, -1, stage, table + model.gpt2.context * d + (one_rank ? norm : 0)});
    const auto [first, last] = layers_of(model, layout, stage);
    for (int layer = first; layer < last; ++layer)
      units.push_back({Kind::block, layer, stage, block});
    if (stage == layout.stages() - 1 && !one_rank)
      units.push_back({Kind::head, -1, stage, table + norm});
  }
  return units;
}

}  // namespace baton::transformer
