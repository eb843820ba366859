#pragma once
/// Cuts of a model's layers into partitions, and what goes over the cuts.

#include <cstdint>
#include <functional>
#include <vector>

#include "../models/language.hpp"
#include "../models/vision.hpp"
#include "../training/sequential.hpp"
#include "stages.hpp"

#pragma GCC visibility push(default)
namespace baton {
namespace transformer {

/// Partitions of neighbouring layers, each with at least one layer, such that the most expensive
/// partition costs as little as can be. Of several such cuts, that whose last partitions have the
/// most layers, since the first stages of a pipeline keep more activations. Throws
/// Error(invalid_argument) if there are fewer layers than partitions, no partition, or a cost is
/// negative or not finite.
std::vector<Range> split_by_cost(const std::vector<double>& costs, int partitions);
/// Partitions that begin, but for the first, with these layers. Throws Error(invalid_argument)
/// unless they rise within 1 and layers - 1.
std::vector<Range> split_by_hand(std::int64_t layers, const std::vector<std::int64_t>& begins);

/// Elements of the parameters of each layer.
template <class T>
std::vector<double> parameters_of_layers(Sequential<T>& layers);
/// The same of each block, without the embeddings, whose rows are looked up in no time. The head is
/// the last block's.
std::vector<double> parameters_of_layers(const Gpt2Config& config);
/// The same of each layer with weights.
std::vector<double> parameters_of_layers(const Vgg16Config& config);

/// Seconds of forward and backward of each layer on this rank, with `x` as the input of the first:
/// the least of `repeats`. Sets gradients to zero. Times differ between ranks: those of a pipeline
/// must cut by the times of one of them.
template <class T>
std::vector<double> seconds_of_layers(Sequential<T>& layers, const Array<T>& x, int repeats = 3);
/// The same of each block of a GPT-2, alone on this rank, for one micro-batch. Has one block at a
/// time in memory.
template <class T>
std::vector<double> seconds_of_layers(const Gpt2Config& config, const TokenShare& share,
                                      int repeats = 3);
/// The same of each layer with weights of a VGG16.
template <class T>
std::vector<double> seconds_of_layers(const Vgg16Config& config, const ImageShare<T>& share,
                                      int repeats = 3);

/// The costs that `measure` gives on the first rank of the mesh, where alone it is called, on all
/// ranks. If it throws, all ranks throw an Error of the same sentence. Collective.
std::vector<double> costs_of_first_rank(const Mesh& mesh,
                                        const std::function<std::vector<double>()>& measure);

/// The layers of `ranges`, in rows of their own, which share the layers with `layers`. Throws
/// Error(invalid_argument) unless the ranges are all layers in order.
template <class T>
std::vector<Sequential<T>> split_module(const Sequential<T>& layers,
                                        const std::vector<Range>& ranges);
/// The same for split_by_cost() by parameters. For measured times: split_module(layers,
/// split_by_cost(seconds_of_layers(layers, x), partitions)).
template <class T>
std::vector<Sequential<T>> split_module(Sequential<T>& layers, int partitions);

/// A message from one partition to the next for one micro-batch: an activation forward, and as much
/// back as its gradient.
struct Boundary {
  Shape shape;
  std::int64_t bytes = 0;
  bool operator==(const Boundary&) const = default;
};
/// What every partition but the last sends to the next for `x`: by a forward pass on this rank,
/// which sends nothing and keeps nothing.
template <class T>
std::vector<Boundary> analyze_communication_with_partitions(std::vector<Sequential<T>>& partitions,
                                                            const Array<T>& x);
/// The same for all stages of a model, in one process, for one of their micro-batches. If the model
/// is cut along axes tp or sp, collective over these.
template <class T>
std::vector<Boundary> analyze_communication_with_partitions(
    const std::vector<PipelineStage<T>*>& stages, int micro_batch = 0);

/// The layers of `ranges` with the shapes of their activations, for batches of such an `x`, of any
/// number of samples. If the layers are cut along axes tp or sp, collective over these. Throws like
/// split_module().
template <class T>
std::vector<LayersPart<T>> parts_of(const Sequential<T>& layers, const std::vector<Range>& ranges,
                                    const Array<T>& x);

/// The partitions, which must outlive them, as stages for batches of such an `x`, of any number of
/// samples.
template <class T>
std::vector<LayersStage<T>> stages_of(std::vector<Sequential<T>>& partitions, const Array<T>& x);

}  // namespace transformer
}  // namespace baton
#pragma GCC visibility pop
