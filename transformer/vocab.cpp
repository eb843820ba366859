#include "vocab.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "accelerator.hpp"
#include "baton/error.hpp"
#include "emulated.hpp"
#include "instantiation.hpp"
#include "ops/kernels.hpp"
#include "ops/widened.hpp"
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

/// Those of the host's memory, where ops take them from.
class Ids {
 public:
  explicit Ids(View<const std::int32_t> ids) : view_(ids.reshaped({ids.size()})) {
    if (accelerator()) view_ = copy_ = from_host<std::int32_t>(view_);
  }
  View<const std::int32_t> view() const { return view_; }

 private:
  Array<std::int32_t> copy_;
  View<const std::int32_t> view_;
};

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
  leave_ = sequence_parallel ? Exchange::scatter_sequence(mesh.group(Axis::tp), 1)
                             : Exchange::reduce_parallel(mesh.group(Axis::tp));
}

template <class T>
Array<T> VocabParallelEmbedding<T>::forward(View<const std::int32_t> ids) {
  expect_shape(table.name + ": ids", ids.shape(), {any, any});
  expect_within(table.name, ids, vocabulary_);
  auto y = Array<T>::uninitialized({ids.extent(0), ids.extent(1), table.value.extent(1)});
  embedding<T>(Ids(ids).view(), table.value, first_, y.view().rows());
  return leave_.forward(std::move(y));
}

template <class T>
void VocabParallelEmbedding<T>::backward(View<const std::int32_t> ids, const Array<T>& dy) {
  expect_shape(table.name + ": ids", ids.shape(), {any, any});
  expect_within(table.name, ids, vocabulary_);
  expect_shape(table.name + ": gradient of the output", dy.shape(),
               leave_.output({ids.extent(0), ids.extent(1), table.value.extent(1)}));
  const Array<T> whole = leave_.backward(dy);
  embedding_backward<T>(Ids(ids).view(), whole.view().rows(), first_, table.grad.view());
}

namespace {

/// This rank's classes of a vocabulary.
struct Cut {
  std::int64_t first;
  Group group;

  void all_reduce(const Data& data, Op op) const {
    if (group.size() > 1) group.start(calls::all_reduce(data, data, op)).wait();
  }
};

template <class T>
double on_host(View<const T> logits, View<const std::int32_t> targets, double elements,
               const Cut& cut, View<T> dlogits) {
  const std::int64_t n = targets.size(), classes = logits.extent(1);
  const auto& kernel = ops::kernels<ops::SoftmaxKernels<T>>();
  auto most = Array<T>::uninitialized({n});
  for (std::int64_t i = 0; i < n; ++i) most.data()[i] = kernel.maximum(classes, &logits(i, 0));
  cut.all_reduce(most.span(), max);

  Array<T> sums({2, n});  // of exponentials, and the targets' logits less the maximum
  Array<T> scratch = Array<T>::uninitialized({classes});
  const auto exponentials = [&](std::int64_t i) {
    return dlogits.empty() ? scratch.data() : &dlogits(i, 0);
  };
  for (std::int64_t i = 0; i < n; ++i) {
    const T* const row = &logits(i, 0);
    sums.view()(0, i) = kernel.exponentials(classes, row, most.data()[i], exponentials(i));
    const std::int64_t own = targets.data()[i] - cut.first;
    if (own >= 0 && own < classes) sums.view()(1, i) = row[own] - most.data()[i];
  }
  cut.all_reduce(sums.span(), sum);

  double loss = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const double total = static_cast<double>(sums.view()(0, i));
    loss += std::log(total) - static_cast<double>(sums.view()(1, i));
    if (dlogits.empty()) continue;
    kernel.scale(classes, static_cast<T>(1 / (total * elements)), &dlogits(i, 0));
    const std::int64_t own = targets.data()[i] - cut.first;
    if (own >= 0 && own < classes) dlogits(i, own) -= static_cast<T>(1 / elements);
  }
  return loss / elements;
}

/// The exchanges alone.
template <class T>
double emulated(std::int64_t targets, const Cut& cut) {
  std::vector<T> most(static_cast<std::size_t>(targets)), sums(2 * most.size());
  cut.all_reduce(most, max);
  cut.all_reduce(sums, sum);
  return 0;
}

double on_device(Accelerator& device, const ConstOperand& logits, View<const std::int32_t> targets,
                 double elements, const Cut& cut, const Operand& dlogits) {
  const Ids ids(targets);
  auto most = Array<float>::uninitialized({targets.size()});
  device.row_maximum(logits, most.view());
  cut.all_reduce(most.span(), max);
  auto sums = Array<float>::uninitialized({2, targets.size()});
  device.exponential_sums(logits, ids.view(), cut.first, most.view(), sums.view());
  cut.all_reduce(sums.span(), sum);
  return device.cross_entropy_of_sums(logits, ids.view(), cut.first, most.view(), sums.view(),
                                      elements, dlogits);
}

}  // namespace

template <class T>
double vocab_parallel_cross_entropy(View<const T> logits_shard, View<const std::int32_t> targets,
                                    double elements, Group group,
                                    View<std::type_identity_t<T>> dlogits_shard) {
  expect_shape("cross-entropy: targets", targets.shape(), {any});
  expect_shape("cross-entropy: logits", logits_shard.shape(), {targets.size(), any});
  for (const View<const T>& view : {logits_shard, View<const T>(dlogits_shard)}) {
    if (view.empty() || view.contiguous()) continue;
    throw Error(ErrorCode::invalid_argument,
                fmt::format("cross-entropy: expected contiguous logits, found {} with strides",
                            view.shape().text()));
  }
  const std::int64_t classes = logits_shard.extent(1);
  expect_within("cross-entropy", targets, classes * group.size());
  if (!dlogits_shard.empty())
    expect_shape("cross-entropy: gradient of logits", dlogits_shard.shape(), logits_shard.shape());
  const Cut cut{group.rank() * classes, group};
  if (Accelerator* const device = accelerator())
    return on_device(*device, logits_shard, targets, elements, cut, dlogits_shard);
  if (emulates()) return emulated<Wide<T>>(targets.size(), cut);
  double loss = 0;
  ops::widened(
      [&](auto logits, auto dlogits) {
        loss = on_host<Wide<T>>(logits, targets, elements, cut, dlogits);
      },
      logits_shard, dlogits_shard);
  return loss;
}

#define BATON_INSTANTIATE(T)                                        \
  template class VocabParallelEmbedding<T>;                         \
  template BATON_INSTANTIATION double vocab_parallel_cross_entropy( \
      View<const T>, View<const std::int32_t>, double, Group, View<T>);
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(double)
BATON_INSTANTIATE(bf16)
#undef BATON_INSTANTIATE

}  // namespace baton::transformer
