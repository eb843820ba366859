#include "linear_layers.hpp"

#include <array>
#include <cmath>
#include <span>

#include "ops/ops.hpp"
#include "shape_guard.hpp"
#include "weight_gradient.hpp"

namespace baton::transformer {
namespace {

constexpr Placement everywhere{};
constexpr Placement by_rows{0, Axis::tp};     // of a weight: outputs; of a bias: its elements
constexpr Placement by_columns{1, Axis::tp};  // inputs

/// Other ranks along these axes have other samples and positions, and gradients of those.
template <class T>
Param<T> with_axes(Param<T> param) {
  param.partial = Axis::dp | Axis::sp;
  return param;
}

/// This rank's part of a parameter that is uniform within `bound`.
template <class T>
Param<T> drawn(const std::string& name, const Shape& whole, double bound, const Random& random,
               const Placement& placement, const Mesh& mesh) {
  Shape part = whole;
  Piece piece{whole};
  if (placement.dim >= 0) {
    const int parts = mesh.size(placement.axis);
    expect_multiple(name + (placement.dim == 0 ? ": outputs" : ": inputs"), whole[placement.dim],
                    parts, baton::transformer::name(placement.axis));
    const std::int64_t each = whole[placement.dim] / parts;
    part = whole.with(placement.dim, each);
    piece.first[static_cast<std::size_t>(placement.dim)] = mesh.rank(placement.axis) * each;
  }
  auto value = Array<T>::uninitialized(part);
  fill_uniform(value.view(), random.of(name), -bound, bound, piece);
  return with_axes(Param<T>(name, value, placement));
}

template <class T>
Param<T> drawn_weight(const std::string& layer, std::int64_t in, std::int64_t out,
                      const Random& random, const Placement& placement, const Mesh& mesh) {
  return drawn<T>(layer + ".weight", {out, in}, 1 / std::sqrt(static_cast<double>(in)), random,
                  placement, mesh);
}

template <class T>
Param<T> drawn_bias(const std::string& layer, std::int64_t in, std::int64_t out, bool there,
                    const Random& random, const Placement& placement, const Mesh& mesh) {
  if (!there) return {};
  return drawn<T>(layer + ".bias", {out}, 1 / std::sqrt(static_cast<double>(in)), random, placement,
                  mesh);
}

template <class T>
Param<T> cut(const Param<T>& whole, const Placement& placement, const Mesh& mesh) {
  if (whole.empty()) return {};
  if (placement.dim >= 0) {
    expect_multiple(whole.name + (placement.dim == 0 ? ": outputs" : ": inputs"),
                    whole.value.extent(placement.dim), mesh.size(placement.axis),
                    name(placement.axis));
  }
  Param<T> part(whole.name, part_of<T>(whole.value, placement, mesh), placement);
  part.decays = whole.decays;
  return with_axes(std::move(part));
}

template <class T>
Params<T> those_there(Param<T>& weight, Param<T>& bias) {
  if (bias.empty()) return {&weight};
  return {&weight, &bias};
}

/// x · weightᵀ + bias, which may be an empty view.
template <class T>
Array<T> product(const Array<T>& x, const Param<T>& weight, View<T> bias) {
  const int rank = std::max(x.shape().rank(), 1);
  std::array<std::int64_t, Shape::max_rank> expected;
  expected.fill(any);
  expected[static_cast<std::size_t>(rank - 1)] = weight.value.extent(1);
  expect_shape(
      weight.name + ": input", x.shape(),
      Shape(std::span<const std::int64_t>(expected.data(), static_cast<std::size_t>(rank))));
  auto y = Array<T>::uninitialized(x.shape().with(rank - 1, weight.value.extent(0)));
  linear<T>(x, weight.value, bias, y.view());
  return y;
}

template <class T>
Array<T> input_gradient(const Array<T>& dy, const Param<T>& weight, const Shape& input) {
  auto dx = Array<T>::uninitialized(input);
  linear_backward_input<T>(dy, weight.value, dx.view());
  return dx;
}

}  // namespace

// --- whole ---------------------------------------------------------------------------------------

template <class T>
Linear<T>::Linear(const std::string& name, std::int64_t in, std::int64_t out, bool with_bias,
                  const Random& random)
    : weight(drawn_weight<T>(name, in, out, random, everywhere, {})),
      bias(drawn_bias<T>(name, in, out, with_bias, random, everywhere, {})) {}

template <class T>
Array<T> Linear<T>::forward(const Array<T>& x, Context& context) {
  context.push(Saved{x});
  return product(x, weight, bias.value.view());
}

template <class T>
Array<T> Linear<T>::backward(const Array<T>& dy, Context& context) {
  const auto saved = context.pop<Saved>();
  Array<T> dx = input_gradient(dy, weight, saved.x.shape());
  weight_gradient(saved.x, dy, weight, bias, context, context.meanwhile);
  return dx;
}

template <class T>
Params<T> Linear<T>::params() {
  return those_there(weight, bias);
}

// --- cut by outputs ------------------------------------------------------------------------------

template <class T>
ColumnParallelLinear<T>::ColumnParallelLinear(const std::string& name, std::int64_t in,
                                              std::int64_t out, bool with_bias,
                                              const Random& random, const Mesh& mesh,
                                              bool gather_output)
    : weight(drawn_weight<T>(name, in, out, random, by_rows, mesh)),
      bias(drawn_bias<T>(name, in, out, with_bias, random, by_rows, mesh)),
      broadcast_(Exchange::broadcast_parallel(mesh.group(Axis::tp))),
      gather_(Exchange::gather_parallel(gather_output ? mesh.group(Axis::tp) : Group(), -1)) {}

template <class T>
ColumnParallelLinear<T>::ColumnParallelLinear(const Linear<T>& whole, const Mesh& mesh,
                                              bool gather_output)
    : weight(cut(whole.weight, by_rows, mesh)),
      bias(cut(whole.bias, by_rows, mesh)),
      broadcast_(Exchange::broadcast_parallel(mesh.group(Axis::tp))),
      gather_(Exchange::gather_parallel(gather_output ? mesh.group(Axis::tp) : Group(), -1)) {}

template <class T>
Array<T> ColumnParallelLinear<T>::forward(const Array<T>& x, Context& context) {
  context.push(Saved{x});
  return gather_.forward(product(broadcast_.forward(x), weight, bias.value.view()));
}

template <class T>
Array<T> ColumnParallelLinear<T>::backward(const Array<T>& dy, Context& context) {
  const auto saved = context.pop<Saved>();
  const Array<T> part = gather_.backward(dy);
  Pending<T> dx = broadcast_.start_backward(input_gradient(part, weight, saved.x.shape()));
  weight_gradient(saved.x, part, weight, bias, context, advancing(context, dx, broadcast_));
  return dx.wait();
}

template <class T>
Params<T> ColumnParallelLinear<T>::params() {
  return those_there(weight, bias);
}

// --- cut by inputs -------------------------------------------------------------------------------

template <class T>
RowParallelLinear<T>::RowParallelLinear(const std::string& name, std::int64_t in, std::int64_t out,
                                        bool with_bias, const Random& random, const Mesh& mesh,
                                        bool input_is_parallel)
    : weight(drawn_weight<T>(name, in, out, random, by_columns, mesh)),
      bias(drawn_bias<T>(name, in, out, with_bias, random, everywhere, mesh)),
      split_(Exchange::split_parallel(input_is_parallel ? Group() : mesh.group(Axis::tp), -1)),
      reduce_(Exchange::reduce_parallel(mesh.group(Axis::tp))) {}

template <class T>
RowParallelLinear<T>::RowParallelLinear(const Linear<T>& whole, const Mesh& mesh,
                                        bool input_is_parallel)
    : weight(cut(whole.weight, by_columns, mesh)),
      bias(cut(whole.bias, everywhere, mesh)),
      split_(Exchange::split_parallel(input_is_parallel ? Group() : mesh.group(Axis::tp), -1)),
      reduce_(Exchange::reduce_parallel(mesh.group(Axis::tp))) {}

template <class T>
Array<T> RowParallelLinear<T>::forward(const Array<T>& x, Context& context) {
  const Array<T> part = split_.forward(x);
  context.push(Saved{part});
  Array<T> y = reduce_.forward(product(part, weight, View<T>()));
  if (!bias.empty()) add_to_rows<T>(bias.value, y.view());
  return y;
}

template <class T>
Array<T> RowParallelLinear<T>::backward(const Array<T>& dy, Context& context) {
  const auto saved = context.pop<Saved>();
  const Array<T> sum = reduce_.backward(dy);
  Pending<T> dx = split_.start_backward(input_gradient(sum, weight, saved.x.shape()));
  weight_gradient(saved.x, sum, weight, bias, context, advancing(context, dx, split_));
  return dx.wait();
}

template <class T>
Params<T> RowParallelLinear<T>::params() {
  return those_there(weight, bias);
}

#define BATON_INSTANTIATE(T)              \
  template class Linear<T>;               \
  template class ColumnParallelLinear<T>; \
  template class RowParallelLinear<T>;
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(double)
BATON_INSTANTIATE(bf16)
#undef BATON_INSTANTIATE

}  // namespace baton::transformer
