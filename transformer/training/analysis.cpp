#include "analysis.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "../shape_guard.hpp"
#include "baton/error.hpp"
#include "baton/schedule.hpp"

namespace baton::transformer {
namespace {

// So that no product of sizes overflows.
constexpr std::int64_t most_elements = 10'000'000'000'000;
constexpr std::int64_t single = sizeof(float);  // statistics, masters and optimizers have no less
constexpr int most_ranks = 1'000'000, most_micro_batches = 10'000;

[[noreturn]] void refuse(const std::string& sentence) {
  throw Error(ErrorCode::invalid_argument, "analysis: " + sentence);
}

std::int64_t width(std::string_view what, Datatype type) {
  for (const Datatype known : {Datatype::f16, Datatype::bf16, Datatype::f32, Datatype::f64})
    if (type == known) return static_cast<std::int64_t>(size_of(type));
  refuse(fmt::format("{}: expected f16, bf16, f32 or f64, found {}", what, name(type)));
}

void expect_rank(int ranks, int rank) {
  if (ranks < 1 || ranks > most_ranks)
    refuse(fmt::format("expected 1 to {} ranks, found {}", most_ranks, ranks));
  if (rank < 0 || rank >= ranks)
    refuse(fmt::format("expected a rank from 0 to {}, found {}", ranks - 1, rank));
}

void check(const AnalyzedModel& model, int rank) {
  expect_rank(model.ranks, rank);
  if (model.micro_batches < 1 || model.micro_batches > most_micro_batches)
    refuse(fmt::format("expected 1 to {} micro-batches, found {}", most_micro_batches,
                       model.micro_batches));
  std::int64_t left = most_elements;
  for (const std::int64_t unit : model.units) {
    if (unit < 0 || unit > left)
      refuse(fmt::format("expected units of 0 to {} parameters in all, found one of {}",
                         most_elements, unit));
    left -= unit;
  }
}

/// Elements of a unit, where any of its state is divided.
std::int64_t extended(std::int64_t unit, const AnalyzedModel& model) {
  if (!model.padded) return unit;
  return (unit + model.ranks - 1) / model.ranks * model.ranks;
}

std::int64_t elements_of(const Shape& activations) {
  std::int64_t elements = 1;
  for (int d = 0; d < activations.rank(); ++d) {
    const std::int64_t extent = activations[d];
    if (extent > 0 && elements > most_elements / extent)
      refuse(fmt::format("expected activations of 0 to {} elements, found {}", most_elements,
                         activations.text()));
    elements *= extent;
  }
  return elements;
}

/// Bytes of so many elements and statistics for each position of x.
std::int64_t kept(const Shape& x, std::int64_t elements, std::int64_t statistics, Datatype type) {
  const std::int64_t bytes = width("activations", type);
  const std::int64_t all = elements_of({x[0], x[1], elements + statistics});
  const std::int64_t wide = elements_of({x[0], x[1], statistics});
  return (all - wide) * bytes + wide * std::max(bytes, single);
}

}  // namespace

ParameterBytes parameter_bytes(Datatype parameters, Datatype gradients, int states) {
  ParameterBytes bytes;
  bytes.value = width("parameters", parameters);
  bytes.gradient = width("gradients", gradients);
  if (states < 0) refuse(fmt::format("expected 0 states or more, found {}", states));
  const std::int64_t master = bytes.value < single ? single : 0;
  bytes.optimizer = master + states * std::max(bytes.value, single);
  return bytes;
}

HeldBytes held_bytes(const AnalyzedModel& model, std::optional<ShardingStage> stage, int rank) {
  check(model, rank);
  HeldBytes held;
  for (const std::int64_t unit : model.units) {
    const std::int64_t whole = stage ? extended(unit, model) : unit;
    const auto elements = [&](ShardingStage divides) {
      return stage >= divides ? shard_of(whole, model.ranks, rank).size() : whole;
    };
    held.parameters += elements(ShardingStage::parameters) * model.bytes.value;
    held.gradients += elements(ShardingStage::gradients) * model.bytes.gradient;
    held.optimizer += elements(ShardingStage::optimizer) * model.bytes.optimizer;
  }
  return held;
}

HeldBytes most_held_bytes(const AnalyzedModel& model, std::optional<ShardingStage> stage) {
  return held_bytes(model, stage, model.ranks - 1);
}

SentBytes sent_bytes(const AnalyzedModel& model, std::optional<ShardingStage> stage, int rank) {
  check(model, rank);
  const std::int64_t reductions = stage >= ShardingStage::gradients ? model.micro_batches : 1;
  const std::int64_t gathers = stage >= ShardingStage::parameters ? 2 * model.micro_batches : 1;
  SentBytes sent;
  for (const std::int64_t unit : model.units) {
    const auto bytes = [&](Collective collective, std::int64_t elements, std::int64_t width) {
      return ring_sent(collective, elements, model.ranks, rank) * width;
    };
    if (!stage) {
      sent.gradients += bytes(Collective::all_reduce, unit, model.bytes.gradient);
      continue;
    }
    const std::int64_t whole = extended(unit, model);
    sent.gradients += reductions * bytes(Collective::reduce_scatter, whole, model.bytes.gradient);
    sent.parameters += gathers * bytes(Collective::all_gather, whole, model.bytes.value);
  }
  return sent;
}

SentBytes most_sent_bytes(const AnalyzedModel& model, std::optional<ShardingStage> stage) {
  SentBytes most = sent_bytes(model, stage, 0);
  for (int rank = 1; rank < model.ranks; ++rank) {
    const SentBytes sent = sent_bytes(model, stage, rank);
    if (sent.total() > most.total()) most = sent;
  }
  return most;
}

std::int64_t ring_sent(Collective collective, std::int64_t elements, int ranks, int rank) {
  expect_rank(ranks, rank);
  const auto chunk = [&](int i) { return chunk_count(elements, ranks, i % ranks); };
  switch (collective) {
    case Collective::all_reduce:
      return 2 * elements - chunk(rank + 1) - chunk(rank + 2);
    case Collective::reduce_scatter:
      return elements - shard_of(elements, ranks, rank).size();
    case Collective::all_gather:
      return elements - shard_of(elements, ranks, (rank + 1) % ranks).size();
    default:
      refuse(fmt::format("expected all_reduce, reduce_scatter or all_gather, found {}",
                         name(collective)));
  }
}

std::int64_t block_kept_bytes(const BlockConfig& block, const Shape& x, Datatype type) {
  block.check();
  expect_shape("analysis: x", x, {any, any, block.d_model});
  const std::int64_t d = block.d_model, keys = block.key_heads() * block.head_size();
  const int of_feed_forward = derivable_from_result(block.activation) ? 1 : 2;
  // x, norm1, q, attention's result, h, norm2; k, v; before and after the activation function.
  const std::int64_t each = 6 * d + 2 * keys + of_feed_forward * block.d_ff;
  return kept(x, each, 4 + block.heads, type);
}

std::int64_t head_kept_bytes(std::int64_t vocabulary, const Shape& x, Datatype type) {
  expect_shape("analysis: x", x, {any, any, any});
  return kept(x, 2 * x[2] + vocabulary, 2, type);
}

std::int64_t boundary_bytes(const Shape& activations, Datatype type) {
  return elements_of(activations) * width("activations", type);
}

std::int64_t pipeline_sent_bytes(std::int64_t boundary, int ranks, int rank) {
  expect_rank(ranks, rank);
  return boundary * ((rank < ranks - 1 ? 1 : 0) + (rank > 0 ? 1 : 0));
}

double transfer_seconds(std::int64_t bytes, double gigabits_per_second) {
  return static_cast<double>(bytes) * 8e-9 / gigabits_per_second;
}

}  // namespace baton::transformer
