#include "analysis.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "baton/error.hpp"
#include "baton/schedule.hpp"

namespace baton::transformer {
namespace {

/// So that no product of sizes overflows: all that is kept and sent for a parameter has less than
/// 2^13 bytes.
constexpr std::int64_t most_elements = 1'000'000'000'000'000;

[[noreturn]] void refuse(const std::string& sentence) {
  throw Error(ErrorCode::invalid_argument, "analysis: " + sentence);
}

std::int64_t width(std::string_view what, Datatype type) {
  for (const Datatype known : {Datatype::f16, Datatype::bf16, Datatype::f32, Datatype::f64})
    if (type == known) return static_cast<std::int64_t>(size_of(type));
  refuse(fmt::format("{}: expected f16, bf16, f32 or f64, found {}", what, name(type)));
}

void expect_rank(int ranks, int rank) {
  if (ranks < 1) refuse(fmt::format("expected 1 rank or more, found {}", ranks));
  if (rank < 0 || rank >= ranks)
    refuse(fmt::format("expected a rank from 0 to {}, found {}", ranks - 1, rank));
}

void check(const AnalyzedModel& model, int rank) {
  expect_rank(model.ranks, rank);
  std::int64_t left = most_elements;
  for (const std::int64_t piece : model.pieces) {
    if (piece < 0 || piece > left)
      refuse(fmt::format("expected pieces of 0 to {} parameters in all, found one of {}",
                         most_elements, piece));
    left -= piece;
  }
}

/// Elements of a piece where it is cut.
std::int64_t extended(std::int64_t piece, const AnalyzedModel& model) {
  return model.padded ? chunk_count(piece, model.ranks, 0) * model.ranks : piece;
}

}  // namespace

ParameterBytes parameter_bytes(Datatype parameters, Datatype gradients, int states) {
  ParameterBytes bytes;
  bytes.value = width("parameters", parameters);
  bytes.gradient = width("gradients", gradients);
  if (states < 0) refuse(fmt::format("expected 0 states or more, found {}", states));
  constexpr std::int64_t single = sizeof(float);
  const std::int64_t master = bytes.value < single ? single : 0;
  bytes.optimizer = master + states * std::max(bytes.value, single);
  return bytes;
}

HeldBytes held_bytes(const AnalyzedModel& model, Sharding sharding, int rank) {
  check(model, rank);
  HeldBytes held;
  for (const std::int64_t piece : model.pieces) {
    const bool cut = sharding != Sharding::none;
    const std::int64_t whole = cut ? extended(piece, model) : piece;
    const auto elements = [&](Sharding from) {
      return sharding < from ? whole : chunk_count(whole, model.ranks, rank);
    };
    held.parameters += elements(Sharding::parameters) * model.bytes.value;
    held.gradients += elements(Sharding::gradients) * model.bytes.gradient;
    held.optimizer += elements(Sharding::optimizer) * model.bytes.optimizer;
  }
  return held;
}

SentBytes sent_bytes(const AnalyzedModel& model, Sharding sharding, int rank) {
  check(model, rank);
  SentBytes sent;
  const int gathers = sharding == Sharding::parameters ? 2 : 1;
  for (const std::int64_t piece : model.pieces) {
    const auto elements = [&](Collective collective, std::int64_t of) {
      return ring_sent(collective, of, model.ranks, rank);
    };
    if (sharding == Sharding::none) {
      sent.gradients += elements(Collective::all_reduce, piece) * model.bytes.gradient;
      continue;
    }
    const std::int64_t whole = extended(piece, model);
    sent.gradients += elements(Collective::reduce_scatter, whole) * model.bytes.gradient;
    sent.parameters += gathers * elements(Collective::all_gather, whole) * model.bytes.value;
  }
  return sent;
}

SentBytes most_sent_bytes(const AnalyzedModel& model, Sharding sharding) {
  // A rank leaves out one chunk of its own place or of the two after it. Larger chunks come first,
  // so one of the last three ranks leaves out the least.
  SentBytes most = sent_bytes(model, sharding, model.ranks - 1);
  for (int rank = std::max(0, model.ranks - 3); rank < model.ranks - 1; ++rank) {
    const SentBytes sent = sent_bytes(model, sharding, rank);
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
      return elements - chunk(rank);
    case Collective::all_gather:
      return elements - chunk(rank + 1);
    default:
      refuse(fmt::format("expected all_reduce, reduce_scatter or all_gather, found {}",
                         name(collective)));
  }
}

std::int64_t boundary_bytes(const Shape& activations, Datatype type) {
  std::int64_t elements = 1;
  for (int d = 0; d < activations.rank(); ++d) {
    const std::int64_t extent = activations[d];
    if (extent > 0 && elements > most_elements / extent)
      refuse(fmt::format("expected activations of 0 to {} elements, found {}", most_elements,
                         activations.text()));
    elements *= extent;
  }
  return elements * width("activations", type);
}

std::int64_t pipeline_sent_bytes(std::int64_t boundary, int ranks, int rank) {
  expect_rank(ranks, rank);
  return boundary * ((rank < ranks - 1 ? 1 : 0) + (rank > 0 ? 1 : 0));
}

double transfer_seconds(std::int64_t bytes, double gigabits_per_second) {
  return static_cast<double>(bytes) * 8e-9 / gigabits_per_second;
}

}  // namespace baton::transformer
