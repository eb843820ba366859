#include "split.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>

#include "../instantiation.hpp"
#include "baton/error.hpp"
#include "failure.hpp"

namespace baton::transformer {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

void expect_partitions(std::int64_t layers, std::int64_t partitions) {
  if (partitions >= 1 && partitions <= layers) return;
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("split: expected at least 1 partition and at most {}, one for each layer, "
                  "found {}",
                  layers, partitions));
}

}  // namespace

std::vector<Range> split_by_cost(const std::vector<double>& costs, int partitions) {
  const std::size_t layers = costs.size();
  expect_partitions(static_cast<std::int64_t>(layers), partitions);
  for (std::size_t l = 0; l < layers; ++l) {
    if (std::isfinite(costs[l]) && costs[l] >= 0) continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("split: expected finite costs of at least 0, found {} for layer {}",
                            costs[l], l));
  }
  // least[n]: the cost of the most expensive of p partitions of the first n layers; begins[p][n]:
  // where the last of these begins.
  std::vector<double> least(layers + 1, infinite);
  least[0] = 0;
  std::vector<std::vector<std::size_t>> begins;
  for (int p = 0; p < partitions; ++p) {
    std::vector<double> next(layers + 1, infinite);
    std::vector<std::size_t>& begin = begins.emplace_back(layers + 1);
    for (std::size_t n = 1; n <= layers; ++n) {
      double last = 0;
      for (std::size_t from = n; from-- > 0;) {
        last += costs[from];
        if (last > next[n]) break;
        const double most = std::max(least[from], last);
        if (most <= next[n]) next[n] = most, begin[n] = from;
      }
    }
    least = std::move(next);
  }
  std::vector<Range> ranges(static_cast<std::size_t>(partitions));
  std::size_t end = layers;
  for (std::size_t p = ranges.size(); p-- > 0; end = begins[p][end])
    ranges[p] = {static_cast<std::int64_t>(begins[p][end]), static_cast<std::int64_t>(end)};
  return ranges;
}

std::vector<Range> split_by_hand(std::int64_t layers, const std::vector<std::int64_t>& begins) {
  expect_partitions(layers, static_cast<std::int64_t>(begins.size()) + 1);
  std::vector<Range> ranges{{0, layers}};
  for (const std::int64_t begin : begins) {
    if (begin <= ranges.back().begin || begin >= layers) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("split: expected partitions to begin with layers that rise from 1 to "
                              "{}, found {} after {}",
                              layers - 1, begin, ranges.back().begin));
    }
    ranges.back().end = begin;
    ranges.push_back({begin, layers});
  }
  return ranges;
}

// --- costs ---------------------------------------------------------------------------------------

namespace {

template <class T>
double elements_of(Model<T>& model) {
  std::int64_t elements = 0;
  for (const Param<T>* param : model.params()) elements += param->value.size();
  return static_cast<double>(elements);
}

/// Seconds of forward, and of backward with the result as the gradient by it; `x` becomes the
/// result.
template <class T, class Forward, class Backward>
double seconds(Model<T>& layer, Array<T>& x, int repeats, const Forward& forward,
               const Backward& backward) {
  if (repeats < 1) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("seconds_of_layers: expected at least 1 repeat, found {}", repeats));
  }
  double least = infinite;
  Array<T> y;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    Context context;
    const auto begin = std::chrono::steady_clock::now();
    y = forward(x, context);
    backward(y, context);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    least = std::min(least, took.count());
  }
  layer.zero_grads();
  x = y;
  return least;
}

template <class T>
double seconds(PipelineStage<T>& stage, Array<T>& x, int repeats) {
  return seconds<T>(
      stage, x, repeats,
      [&](const Array<T>& from, Context& context) {
        return stage.forward(0, from, context).activation;
      },
      [&](const Array<T>& dy, Context& context) { stage.backward(dy, context); });
}

}  // namespace

template <class T>
std::vector<double> parameters_of_layers(Sequential<T>& layers) {
  std::vector<double> costs;
  for (const auto& layer : layers.layers()) costs.push_back(elements_of<T>(*layer.module));
  return costs;
}

std::vector<double> parameters_of_layers(const Gpt2Config& config) {
  const auto d = static_cast<double>(config.d_model);
  const auto tokens = static_cast<double>(config.vocabulary) * d;
  std::vector<double> costs(static_cast<std::size_t>(config.layers), (12 * d + 13) * d);
  if (!costs.empty()) costs.back() += tokens + 2 * d;
  return costs;
}

std::vector<double> parameters_of_layers(const Vgg16Config& config) {
  const auto elements = config.layer_parameters();
  return {elements.begin(), elements.end()};
}

template <class T>
std::vector<double> seconds_of_layers(Sequential<T>& layers, const Array<T>& x, int repeats) {
  std::vector<double> costs;
  Array<T> y = x;
  for (const auto& layer : layers.layers()) {
    Module<T>& module = *layer.module;
    costs.push_back(seconds<T>(
        module, y, repeats,
        [&](const Array<T>& from, Context& context) { return module.forward(from, context); },
        [&](const Array<T>& dy, Context& context) { module.backward(dy, context); }));
  }
  return costs;
}

template <class T>
std::vector<double> seconds_of_layers(const Gpt2Config& config, const TokenShare& share,
                                      int repeats) {
  const Mesh alone;
  std::vector<double> costs;
  Array<T> x;
  for (std::int64_t l = 0; l < config.layers; ++l) {
    Gpt2<T> part(config, {}, alone, false, Range{l, l + 1});
    Gpt2Stage<T> stage(part);
    stage.start(share, 1);
    costs.push_back(seconds<T>(stage, x, repeats));
  }
  return costs;
}

template <class T>
std::vector<double> seconds_of_layers(const Vgg16Config& config, const ImageShare<T>& share,
                                      int repeats) {
  std::vector<double> costs;
  Array<T> x;
  for (std::int64_t l = 0; l < Vgg16<T>::layers; ++l) {
    Vgg16<T> part(config, {}, {l, l + 1});
    Vgg16Stage<T> stage(part);
    stage.start(share, 1);
    costs.push_back(seconds<T>(stage, x, repeats));
  }
  return costs;
}

std::vector<double> costs_of_first_rank(const Mesh& mesh,
                                        const std::function<std::vector<double>()>& measure) {
  Communicator* const ranks = mesh.along(Axis::dp | Axis::tp | Axis::sp | Axis::pp);
  if (!ranks) return measure();
  std::vector<double> costs;
  std::optional<Failure> failure;
  if (ranks->rank() == 0) {
    try {
      costs = measure();
    } catch (const std::exception& error) {
      failure = Failure::of(error, "split");
    }
  }
  if (any_failed(mesh, failure)) raise_first(mesh, failure);
  auto size = static_cast<std::int64_t>(costs.size());
  ranks->broadcast(std::span(&size, 1), 0);
  costs.resize(static_cast<std::size_t>(size));
  ranks->broadcast(Data(costs), 0);
  return costs;
}

// --- partitions ----------------------------------------------------------------------------------

template <class T>
std::vector<Sequential<T>> split_module(const Sequential<T>& layers,
                                        const std::vector<Range>& ranges) {
  const auto& all = layers.layers();
  const auto count = static_cast<std::int64_t>(all.size());
  std::vector<Sequential<T>> rows;
  std::int64_t at = 0;
  for (const Range& range : ranges) {
    if (range.begin != at || range.size() < 1 || range.end > count) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("split_module: expected a range of layers from {} on within {} "
                              "layers, found [{}, {})",
                              at, count, range.begin, range.end));
    }
    Sequential<T>& row = rows.emplace_back();
    for (; at < range.end; ++at) {
      const auto& layer = all[static_cast<std::size_t>(at)];
      row.add(layer.name, layer.module);
    }
  }
  if (at == count) return rows;
  throw Error(ErrorCode::invalid_argument,
              fmt::format("split_module: expected ranges of all {} layers, found {}", count, at));
}

template <class T>
std::vector<Sequential<T>> split_module(Sequential<T>& layers, int partitions) {
  return split_module(layers, split_by_cost(parameters_of_layers(layers), partitions));
}

// --- messages ------------------------------------------------------------------------------------

namespace {

Context keeping_nothing() {
  Context context;
  context.keeps = context.training = false;
  return context;
}

template <class T>
Boundary boundary_of(const Array<T>& activation) {
  return {activation.shape(), static_cast<std::int64_t>(activation.bytes())};
}

}  // namespace

template <class T>
std::vector<Boundary> analyze_communication_with_partitions(std::vector<Sequential<T>>& partitions,
                                                            const Array<T>& x) {
  std::vector<Boundary> boundaries;
  Context context = keeping_nothing();
  Array<T> y = x;
  for (std::size_t p = 0; p + 1 < partitions.size(); ++p) {
    y = partitions[p].forward(y, context);
    boundaries.push_back(boundary_of(y));
  }
  return boundaries;
}

template <class T>
std::vector<Boundary> analyze_communication_with_partitions(
    const std::vector<PipelineStage<T>*>& stages, int micro_batch) {
  std::vector<Boundary> boundaries;
  Context context = keeping_nothing();
  Array<T> y;
  for (std::size_t s = 0; s + 1 < stages.size(); ++s) {
    y = stages[s]->forward(micro_batch, std::move(y), context).activation;
    boundaries.push_back(boundary_of(y));
  }
  return boundaries;
}

template <class T>
std::vector<LayersPart<T>> parts_of(const Sequential<T>& layers, const std::vector<Range>& ranges,
                                    const Array<T>& x) {
  auto rows = split_module(layers, ranges);
  const auto boundaries = analyze_communication_with_partitions(rows, x);
  std::vector<LayersPart<T>> parts(rows.size());
  for (std::size_t p = 0; p < rows.size(); ++p) {
    static_cast<Sequential<T>&>(parts[p]) = std::move(rows[p]);
    if (p > 0) parts[p].input = boundaries[p - 1].shape;
    if (p < boundaries.size()) parts[p].output = boundaries[p].shape;
  }
  return parts;
}

template <class T>
std::vector<LayersStage<T>> stages_of(std::vector<Sequential<T>>& partitions, const Array<T>& x) {
  const auto boundaries = analyze_communication_with_partitions(partitions, x);
  std::vector<LayersStage<T>> stages;
  for (std::size_t p = 0; p < partitions.size(); ++p) {
    stages.emplace_back(partitions[p], p == 0 ? Shape() : boundaries[p - 1].shape,
                        p == boundaries.size() ? Shape() : boundaries[p].shape);
  }
  return stages;
}

#define BATON_INSTANTIATE(T)                                                                       \
  template BATON_INSTANTIATION std::vector<double> parameters_of_layers(Sequential<T>&);           \
  template BATON_INSTANTIATION std::vector<double> seconds_of_layers(Sequential<T>&,               \
                                                                     const Array<T>&, int);        \
  template BATON_INSTANTIATION std::vector<double> seconds_of_layers<T>(const Gpt2Config&,         \
                                                                        const TokenShare&, int);   \
  template BATON_INSTANTIATION std::vector<double> seconds_of_layers(const Vgg16Config&,           \
                                                                     const ImageShare<T>&, int);   \
  template BATON_INSTANTIATION std::vector<Sequential<T>> split_module(const Sequential<T>&,       \
                                                                       const std::vector<Range>&); \
  template BATON_INSTANTIATION std::vector<Sequential<T>> split_module(Sequential<T>&, int);       \
  template BATON_INSTANTIATION std::vector<Boundary> analyze_communication_with_partitions(        \
      std::vector<Sequential<T>>&, const Array<T>&);                                               \
  template BATON_INSTANTIATION std::vector<Boundary> analyze_communication_with_partitions(        \
      const std::vector<PipelineStage<T>*>&, int);                                                 \
  template BATON_INSTANTIATION std::vector<LayersPart<T>> parts_of(                                \
      const Sequential<T>&, const std::vector<Range>&, const Array<T>&);                           \
  template BATON_INSTANTIATION std::vector<LayersStage<T>> stages_of(std::vector<Sequential<T>>&,  \
                                                                     const Array<T>&);
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(double)
BATON_INSTANTIATE(bf16)
#undef BATON_INSTANTIATE

}  // namespace baton::transformer
