#include "vocab.hpp"

#include <fmt/format.h>

#include <cmath>

#include "baton/error.hpp"
#include "ops/ops.hpp"
#include "shape_guard.hpp"

namespace baton::transformer {
namespace {

void expect_within(std::string_view what, View<const std::int32_t> ids, std::int64_t vocabulary) {
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
  const Array<T> whole = leave_.backward(dy);
  expect_shape(table.name + ": gradient of the output", whole.shape(),
               {ids.extent(0), ids.extent(1), table.value.extent(1)});
  embedding_backward<T>(ids.reshaped({ids.size()}), whole.view().rows(), first_, table.grad.view());
}

template <class T>
double vocab_parallel_cross_entropy(View<const T> logits_shard, View<const std::int32_t> targets,
                                    double elements, Communicator* communicator,
                                    View<std::type_identity_t<T>> dlogits_shard) {
  expect_shape("cross-entropy: logits", logits_shard.shape(), {targets.size(), any});
  const std::int64_t n = targets.size(), classes = logits_shard.extent(1);
  const int ranks = communicator ? communicator->size() : 1;
  const std::int64_t first = communicator ? communicator->rank() * classes : 0;
  expect_within("cross-entropy", targets, classes * ranks);
  if (!dlogits_shard.empty())
    expect_shape("cross-entropy: gradient of logits", dlogits_shard.shape(), logits_shard.shape());

  const auto most = Array<T>::uninitialized({n});
  for (std::int64_t i = 0; i < n; ++i) {
    const View<const T> row = logits_shard.select(0, i);
    T high = row(0);
    for (std::int64_t j = 1; j < classes; ++j) high = std::max(high, row(j));
    most.data()[i] = high;
  }
  if (ranks > 1) communicator->all_reduce(Data(most), max);

  const Array<T> sums({2, n});  // of exponentials, and the targets' logits less the maximum
  for (std::int64_t i = 0; i < n; ++i) {
    const View<const T> row = logits_shard.select(0, i);
    T total = 0;
    for (std::int64_t j = 0; j < classes; ++j) total += std::exp(row(j) - most.data()[i]);
    sums.view()(0, i) = total;
    const std::int64_t own = targets.data()[i] - first;
    if (own >= 0 && own < classes) sums.view()(1, i) = row(own) - most.data()[i];
  }
  if (ranks > 1) communicator->all_reduce(Data(sums), sum);

  double loss = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double total = static_cast<double>(sums.view()(0, i));
    loss += std::log(total) - static_cast<double>(sums.view()(1, i));
    if (dlogits_shard.empty()) continue;
    const T scale = static_cast<T>(1 / (total * elements));
    for (std::int64_t j = 0; j < classes; ++j)
      dlogits_shard(i, j) = std::exp(logits_shard(i, j) - most.data()[i]) * scale;
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
