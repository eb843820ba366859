#include "vocab.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "baton/error.hpp"
#include "ops/kernels.hpp"
#include "ops/ops.hpp"
#include "shape_guard.hpp"

namespace baton::transformer {
namespace {

void expect_within(std::string_view what, View<const std::int32_t> ids, std::int64_t vocabulary) {
  if (!ids.contiguous()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: expected contiguous ids, found {} with strides", what,
                            ids.shape().text()));
  }
  for (std::int64_t i = 0; i < ids.size(); ++i) {
    const std::int32_t id = ids.data()[i];
    if (id >= 0 && id < vocabulary) continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{}: expected ids from 0 to {}, found {} at position {}", what,
                            vocabulary - 1, id, i));
  }
}

}  // namespace

template <class T>
VocabParallelEmbedding<T>::VocabParallelEmbedding(std::int64_t vocabulary, std::int64_t d,
                                                  const Mesh& mesh, const Random& random,
                                                  bool sequence_parallel, double deviation,
                                                  std::string name)
    : vocabulary_(vocabulary) {
  const int ranks = mesh.size(Axis::tp), rank = mesh.rank(Axis::tp);
  expect_multiple(name + ": vocabulary", vocabulary, ranks, "ranks of axis tp");
  const Shape part{vocabulary / ranks, d};
  first_ = rank * part[0];
  Array<T> values = Array<T>::uninitialized(part);
  fill_normal(values.view(), random.of(name), deviation, {{vocabulary, d}, {first_}});
  table = Param<T>(std::move(name), std::move(values), {0, Axis::tp});
  table.partial = Axis::dp | Axis::sp;
  leave_ = sequence_parallel ? Exchange::scatter_sequence(mesh.along(Axis::tp), 1)
                             : Exchange::reduce_parallel(mesh.along(Axis::tp));
}

template <class T>
Array<T> VocabParallelEmbedding<T>::forward(View<const std::int32_t> ids) {
  expect_shape(table.name + ": ids", ids.shape(), {any, any});
  expect_within(table.name, ids, vocabulary_);
  auto y = Array<T>::uninitialized({ids.extent(0), ids.extent(1), table.value.extent(1)});
  embedding<T>(ids.reshaped({ids.size()}), table.value, first_, y.view().rows());
  return leave_.forward(std::move(y));
}

template <class T>
void VocabParallelEmbedding<T>::backward(View<const std::int32_t> ids, const Array<T>& dy) {
  expect_shape(table.name + ": ids", ids.shape(), {any, any});
  expect_within(table.name, ids, vocabulary_);
  expect_shape(table.name + ": gradient of the output", dy.shape(),
               leave_.output({ids.extent(0), ids.extent(1), table.value.extent(1)}));
  const Array<T> whole = leave_.backward(dy);
  embedding_backward<T>(ids.reshaped({ids.size()}), whole.view().rows(), first_, table.grad.view());
}

template <class T>
double vocab_parallel_cross_entropy(View<const T> logits_shard, View<const std::int32_t> targets,
                                    double elements, Communicator* communicator,
                                    View<std::type_identity_t<T>> dlogits_shard) {
  expect_shape("cross-entropy: targets", targets.shape(), {any});
  expect_shape("cross-entropy: logits", logits_shard.shape(), {targets.size(), any});
  for (const View<const T>& view : {logits_shard, View<const T>(dlogits_shard)}) {
    if (view.empty() || view.contiguous()) continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("cross-entropy: expected contiguous logits, found {} with strides",
                            view.shape().text()));
  }
  const std::int64_t n = targets.size(), classes = logits_shard.extent(1);
  const int ranks = communicator ? communicator->size() : 1;
  const std::int64_t first = communicator ? communicator->rank() * classes : 0;
  expect_within("cross-entropy", targets, classes * ranks);
  if (!dlogits_shard.empty())
    expect_shape("cross-entropy: gradient of logits", dlogits_shard.shape(), logits_shard.shape());

  const auto& kernel = kernels<SoftmaxKernels<T>>();
  const auto most = Array<T>::uninitialized({n});
  for (std::int64_t i = 0; i < n; ++i)
    most.data()[i] = kernel.maximum(classes, &logits_shard(i, 0));
  if (ranks > 1) communicator->all_reduce(Data(most), max);

  const Array<T> sums({2, n});  // of exponentials, and the targets' logits less the maximum
  const Array<T> scratch = Array<T>::uninitialized({classes});
  const auto exponentials = [&](std::int64_t i) {
    return dlogits_shard.empty() ? scratch.data() : &dlogits_shard(i, 0);
  };
  for (std::int64_t i = 0; i < n; ++i) {
    const T* const row = &logits_shard(i, 0);
    sums.view()(0, i) = kernel.exponentials(classes, row, most.data()[i], exponentials(i));
    const std::int64_t own = targets.data()[i] - first;
    if (own >= 0 && own < classes) sums.view()(1, i) = row[own] - most.data()[i];
  }
  if (ranks > 1) communicator->all_reduce(Data(sums), sum);

  double loss = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double total = static_cast<double>(sums.view()(0, i));
    loss += std::log(total) - static_cast<double>(sums.view()(1, i));
    if (dlogits_shard.empty()) continue;
    kernel.scale(classes, static_cast<T>(1 / (total * elements)), &dlogits_shard(i, 0));
    const std::int64_t own = targets.data()[i] - first;
    if (own >= 0 && own < classes) dlogits_shard(i, own) -= static_cast<T>(1 / elements);
  }
  return loss / elements;
}

#define BATON_INSTANTIATE(T)                                                                    \
  template class VocabParallelEmbedding<T>;                                                     \
  template double vocab_parallel_cross_entropy(View<const T>, View<const std::int32_t>, double, \
                                               Communicator*, View<T>);
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(double)
#undef BATON_INSTANTIATE

}  // namespace baton::transformer
