#include "exchange.hpp"

#include <fmt/core.h>

#include "accelerator.hpp"
#include "instantiation.hpp"
#include "shape_guard.hpp"

namespace baton::transformer {

std::string_view name(Operator op) {
  constexpr std::string_view names[] = {"identity",       "all_reduce", "all_gather",
                                        "reduce_scatter", "split",      "all_to_all"};
  return names[static_cast<std::size_t>(op)];
}

namespace {
thread_local std::chrono::steady_clock::duration in_exchanges{};
}

double seconds_in_exchanges() { return std::chrono::duration<double>(in_exchanges).count(); }

void advance(Communicator& communicator) {
  const ExchangeTimer timer;
  communicator.progress();
}

ExchangeTimer::~ExchangeTimer() { in_exchanges += std::chrono::steady_clock::now() - start_; }

template <class T>
Array<T> Pending<T>::wait() {
  if (!under_way()) return std::move(result_);
  const ExchangeTimer timer;
  call_.wait();
  used_.clear();
  return std::move(result_);
}

Exchange Exchange::broadcast_parallel(Group g) {
  return {Operator::identity, Operator::all_reduce, g};
}
Exchange Exchange::reduce_parallel(Group g) {
  return {Operator::all_reduce, Operator::identity, g};
}
Exchange Exchange::gather_parallel(Group g, int dim) {
  return {Operator::all_gather, Operator::split, g, dim};
}
Exchange Exchange::split_parallel(Group g, int dim) {
  return {Operator::split, Operator::all_gather, g, dim};
}
Exchange Exchange::gather_sequence(Group g, int dim) {
  return {Operator::all_gather, Operator::reduce_scatter, g, dim};
}
Exchange Exchange::scatter_sequence(Group g, int dim) {
  return {Operator::reduce_scatter, Operator::all_gather, g, dim};
}
Exchange Exchange::exchange(Group g, int cut, int join) {
  return {Operator::all_to_all, Operator::all_to_all, g, cut, join};
}

Shape Exchange::output(const Shape& x) const {
  const int parts = ranks();
  const auto at = [&](int d) { return d < 0 ? d + x.rank() : d; };
  const auto cut = [&](const Shape& shape, int d) {
    expect_multiple(fmt::format("{}: dimension {} of {}", name(forward_op), d, x.text()), shape[d],
                    parts, "ranks");
    return shape.with(d, shape[d] / parts);
  };
  const auto joined = [&](const Shape& shape, int d) { return shape.with(d, shape[d] * parts); };
  switch (forward_op) {
    case Operator::all_gather:
      return joined(x, at(dim));
    case Operator::reduce_scatter:
    case Operator::split:
      return cut(x, at(dim));
    case Operator::all_to_all:
      return joined(cut(x, at(dim)), at(join_dim));
    default:
      return x;
  }
}

template <class T>
Array<T> part_along(View<const std::type_identity_t<T>> x, int dim, int part, int parts,
                    std::string_view of) {
  const std::int64_t extent = x.extent(dim);
  expect_multiple(fmt::format("dimension {} of {}", dim, x.shape().text()), extent, parts, of);
  const std::int64_t each = extent / parts;
  return Array<T>::copy_of(x.slice(dim, part * each, (part + 1) * each));
}

namespace {

/// Parts along `dim` one after the other: what a reduce-scatter of blocks takes.
template <class T>
Array<T> parts_in_turn(const Array<T>& x, int dim, int parts) {
  const int d = dim < 0 ? dim + x.shape().rank() : dim;
  if (x.shape().product(0, d) == 1) return x;  // they lie so
  const std::int64_t each = x.extent(d) / parts;
  const Shape part = x.shape().with(d, each);
  auto all = Array<T>::uninitialized({x.size()});
  for (int p = 0; p < parts; ++p) {
    assign<T>(x.view().slice(d, p * each, (p + 1) * each),
              View<T>(all.data() + p * part.elements(), part));
  }
  return all;
}

}  // namespace

template <class T>
Call Exchange::call(const Array<T>& x, Array<T>& y) const {
  switch (forward_op) {
    case Operator::all_reduce:
      return calls::all_reduce(x.span(), y.span(), sum);
    case Operator::all_gather:
      return calls::all_gather(x.tensor(), y.tensor(), dim);
    case Operator::reduce_scatter:
      return calls::reduce_scatter(x.span(), y.span(), sum);
    default:
      return calls::all_to_all(x.tensor(), y.tensor(), dim, join_dim);
  }
}

template <class T>
Pending<T> Exchange::start(Array<T> x, bool beside) const {
  if (ranks() == 1 || forward_op == Operator::identity) return Pending<T>(std::move(x));
  const ExchangeTimer timer;
  if (forward_op == Operator::split)
    return Pending<T>(part_along<T>(x, dim, group.rank(), ranks()));
  const Shape shape = output(x.shape());
  const bool in_place = forward_op == Operator::all_reduce && x.alone();
  Array<T> y = in_place ? x : Array<T>::uninitialized(shape);
  if (forward_op == Operator::reduce_scatter) x = parts_in_turn(x, dim, ranks());
  Started started = group.start(call(x, y), beside);
  return {y, {std::move(x)}, std::move(started)};
}

template <class T>
Exchange::Planned Exchange::planned(const Shape& x) const {
  if (ranks() == 1 || forward_op == Operator::identity || forward_op == Operator::split) return {};
  const AcceleratorScope on_host(nullptr);
  auto y = Array<T>::uninitialized(output(x));
  const Call one = call(Array<T>::uninitialized(x), y);
  return {group.host->chosen(one), group.host->traffic(one)};
}

#define BATON_INSTANTIATE(T)                                                        \
  template class Pending<T>;                                                        \
  template Pending<T> Exchange::start(Array<T>, bool) const;                        \
  template Exchange::Planned Exchange::planned<T>(const Shape&) const;              \
  template BATON_INSTANTIATION Array<T> part_along<T>(View<const T>, int, int, int, \
                                                      std::string_view);
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(double)
BATON_INSTANTIATE(bf16)
#undef BATON_INSTANTIATE

}  // namespace baton::transformer
