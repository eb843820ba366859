#include "batch.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "../accelerator.hpp"
#include "../exchange.hpp"
#include "../instantiation.hpp"
#include "../param.hpp"
#include "../random.hpp"
#include "../shape_guard.hpp"

namespace baton::transformer {

Range slice_of(std::int64_t n, int parts, int part) {
  const std::int64_t least = n / parts, longer = n % parts;
  const std::int64_t begin = part * least + std::min<std::int64_t>(part, longer);
  return {begin, begin + least + (part < longer ? 1 : 0)};
}

template <class T>
Array<T> samples_of(const Array<T>& all, const Range& range) {
  const Shape& shape = all.shape();
  return all.part(range.begin * shape.product(1, shape.rank()), shape.with(0, range.size()));
}

template <class T>
Array<T> joined_samples(const std::vector<Array<T>>& slices) {
  if (slices.size() == 1) return slices[0];
  std::int64_t samples = 0;
  for (const Array<T>& slice : slices) samples += slice.extent(0);
  auto all = Array<T>::uninitialized(slices.at(0).shape().with(0, samples));
  std::int64_t at = 0;
  for (const Array<T>& slice : slices) {
    assign<T>(slice, all.view().slice(0, at, at + slice.extent(0)));
    at += slice.extent(0);
  }
  return all;
}

template <class T>
Batch<T> samples_of(const Batch<T>& batch, const Range& range) {
  expect_shape("target", batch.target.shape(), batch.target.shape().with(0, batch.samples()));
  return {Array<T>::copy_of(batch.x.view().slice(0, range.begin, range.end)),
          Array<T>::copy_of(batch.target.view().slice(0, range.begin, range.end))};
}

template <class T>
std::vector<Batch<T>> split_batch(const Batch<T>& batch, int parts) {
  std::vector<Batch<T>> slices;
  for (int part = 0; part < parts; ++part)
    slices.push_back(samples_of(batch, slice_of(batch.samples(), parts, part)));
  return slices;
}

template <class T>
Share<T> whole_of(const Batch<T>& batch) {
  return {batch, 0, static_cast<double>(batch.target.size()), {}};
}

template <class T>
Share<T> share_of(const Batch<T>& batch, const Mesh& mesh, bool sequence_parallel) {
  Share<T> share = whole_of(batch);
  share.others = Axis::dp | Axis::sp;
  if (sequence_parallel) share.others = share.others | Axis::tp;
  if (mesh.size(Axis::dp) > 1) {
    const Range range = slice_of(batch.samples(), mesh.size(Axis::dp), mesh.rank(Axis::dp));
    share.batch = samples_of(batch, range);
    share.first_sample = range.begin;
  }
  for (const Axis axis : {Axis::sp, Axis::tp}) {
    if (!share.others.has(axis) || mesh.size(axis) == 1) continue;
    expect_shape("share_of: x", share.batch.x.shape(), {any, any, any});
    share.batch.x = part_of<T>(share.batch.x, {1, axis}, mesh);
    share.batch.target = part_of<T>(share.batch.target, {1, axis}, mesh);
  }
  return share;
}

TokenBatch samples_of(const TokenBatch& batch, const Range& range) {
  const std::int64_t length = batch.shape[1];
  const auto part = [&](const std::vector<std::int32_t>& from) {
    return std::vector<std::int32_t>(from.begin() + range.begin * length,
                                     from.begin() + range.end * length);
  };
  return {{range.size(), length}, part(batch.ids), part(batch.targets), batch.padding};
}

TokenBatch positions_of(const TokenBatch& batch, const Mesh& mesh) {
  const std::int64_t length = batch.shape[1], parts = mesh.size(Axis::sp);
  expect_multiple("share_of: positions", length, parts, "ranks of axis sp");
  const std::int64_t each = length / parts;
  TokenBatch share;
  share.shape = {batch.shape[0], each};
  share.padding = batch.padding;
  for (std::int64_t sample = 0; sample < batch.shape[0]; ++sample) {
    const std::int64_t first = sample * length + mesh.rank(Axis::sp) * each;
    const auto append = [&](const std::vector<std::int32_t>& from, std::vector<std::int32_t>& to) {
      to.insert(to.end(), from.begin() + first, from.begin() + first + each);
    };
    append(batch.ids, share.ids);
    append(batch.targets, share.targets);
  }
  return share;
}

TokenBatch share_of(const TokenBatch& batch, const Mesh& mesh) {
  expect_shape("share_of: tokens", batch.shape, {any, any});
  const int ranks = mesh.size(Axis::dp), rank = mesh.rank(Axis::dp);
  return positions_of(samples_of(batch, slice_of(batch.shape[0], ranks, rank)), mesh);
}

template <class T>
Array<T> whole_of_shares(const Array<T>& own, const Shape& whole, Axes others, const Mesh& mesh) {
  Array<T> samples = own;
  for (const Axis axis : {Axis::tp, Axis::sp}) {
    if (others.has(axis)) samples = Exchange::gather_parallel(mesh.group(axis), 1).forward(samples);
  }
  const Group dp = mesh.group(others & Axis::dp);
  if (dp.size() == 1) return samples;
  std::vector<std::int64_t> counts;
  const std::int64_t each = whole.product(1, whole.rank());
  for (int rank = 0; rank < dp.size(); ++rank)
    counts.push_back(slice_of(whole[0], dp.size(), rank).size() * each);
  auto all = Array<T>::uninitialized(whole);
  Call call = calls::all_gather(samples.span(), all.span());
  call.recv_counts = counts;
  dp.start(call).wait();
  return all;
}

template <class T>
Batch<T> two_moons(std::int64_t n, double noise, std::uint64_t seed) {
  std::vector<T> x, target;
  const Random random = Random{seed}.of("two_moons");
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t moon = i % 2, points = (n + 1 - moon) / 2;
    const std::int64_t place = i / 2, last = std::max<std::int64_t>(points - 1, 1);
    const double angle = std::numbers::pi * static_cast<double>(place) / static_cast<double>(last);
    const double along = std::cos(angle), above = std::sin(angle);
    const auto at = static_cast<std::uint64_t>(2 * i);
    const auto push = [](std::vector<T>& to, double value) {
      to.push_back(narrow<T>(static_cast<Wide<T>>(value)));
    };
    push(x, (moon == 0 ? along : 1 - along) + noise * random.normal(at));
    push(x, (moon == 0 ? above : 0.5 - above) + noise * random.normal(at + 1));
    push(target, static_cast<double>(moon));
  }
  return {from_host<T>(View<const T>(x.data(), {n, 2})),
          from_host<T>(View<const T>(target.data(), {n, 1}))};
}

template <class T>
Batch<T> create_batch(std::uint64_t seed, const Shape& x, const Shape& target) {
  Batch<T> batch{Array<T>::uninitialized(x), Array<T>::uninitialized(target)};
  fill_normal(batch.x.view(), Random{seed}.of("x"), 1);
  fill_normal(batch.target.view(), Random{seed}.of("target"), 1);
  return batch;
}

#define BATON_INSTANTIATE(T)                                                                 \
  template BATON_INSTANTIATION Array<T> samples_of(const Array<T>&, const Range&);           \
  template BATON_INSTANTIATION Array<T> joined_samples(const std::vector<Array<T>>&);        \
  template BATON_INSTANTIATION Batch<T> samples_of(const Batch<T>&, const Range&);           \
  template BATON_INSTANTIATION std::vector<Batch<T>> split_batch(const Batch<T>&, int);      \
  template BATON_INSTANTIATION Share<T> whole_of(const Batch<T>&);                           \
  template BATON_INSTANTIATION Share<T> share_of(const Batch<T>&, const Mesh&, bool);        \
  template BATON_INSTANTIATION Array<T> whole_of_shares(const Array<T>&, const Shape&, Axes, \
                                                        const Mesh&);                        \
  template BATON_INSTANTIATION Batch<T> two_moons(std::int64_t, double, std::uint64_t);      \
  template BATON_INSTANTIATION Batch<T> create_batch(std::uint64_t, const Shape&, const Shape&);
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(double)
BATON_INSTANTIATE(bf16)
#undef BATON_INSTANTIATE

}  // namespace baton::transformer
