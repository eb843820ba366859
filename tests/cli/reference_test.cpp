#include "cli/measure/reference.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

using namespace baton;
using namespace baton::cli;
using namespace baton::cli::measure;

namespace {

constexpr int ranks = 5;

Case case_of(Collective collective, std::int64_t elements, Datatype type, OpKind op) {
  return flat_case(collective, ranks, elements, type, op, 1);
}

/// The inputs of all ranks.
template <class T>
std::vector<std::vector<T>> inputs(const Case& subject, const Values& values) {
  std::vector<std::vector<T>> all;
  for (int r = 0; r < ranks; ++r) {
    all.emplace_back(static_cast<std::size_t>(subject.input_count(r)));
    values.write(r, 0, subject.input_count(r), all.back().data());
  }
  return all;
}

template <class T>
std::vector<T> folded(const std::vector<std::vector<T>>& inputs, const std::vector<int>& order) {
  std::vector<T> sum = inputs[static_cast<std::size_t>(order[0])];
  for (std::size_t k = 1; k < order.size(); ++k) {
    const auto& term = inputs[static_cast<std::size_t>(order[k])];
    for (std::size_t i = 0; i < sum.size(); ++i) {
      if constexpr (is_narrow<T>) {
        sum[i] = from_real<T>(to_real(sum[i]) + to_real(term[i]));
      } else {
        sum[i] = static_cast<T>(sum[i] + term[i]);
      }
    }
  }
  return sum;
}

}  // namespace

TEST_CASE("an exact sum is the same in every order, and one wrong element is counted") {
  const Case e = case_of(Collective::all_reduce, 10000, Datatype::f32, OpKind::sum);
  const Values values(Fill::exact, e.op, e.type, ranks);
  const auto in = inputs<float>(e, values);
  auto sum = folded(in, {0, 1, 2, 3, 4});
  CHECK(sum == folded(in, {4, 2, 0, 1, 3}));
  const Reference reference(e, values, 3);
  CHECK(reference.wrong(sum.data()) == 0);
  sum[9999] = std::nextafter(sum[9999], 1e9F);
  sum[4096] += 1;
  CHECK(reference.wrong(sum.data()) == 2);
  CHECK(reference.wrong(in[0].data()) > 9000);
}

TEST_CASE_TEMPLATE("values that round pass in every order, and not if a contribution is missing", T,
                   float, double, bf16) {
  const Case e = case_of(Collective::all_reduce, 5000, datatype_of<T>, OpKind::sum);
  const Values values(Fill::random, e.op, e.type, ranks);
  const auto in = inputs<T>(e, values);
  const Reference reference(e, values, 0);
  const auto forward = folded(in, {0, 1, 2, 3, 4}), other = folded(in, {3, 0, 4, 2, 1});
  CHECK(!std::ranges::equal(std::as_bytes(std::span(forward)), std::as_bytes(std::span(other))));
  CHECK(reference.wrong(forward.data()) == 0);
  CHECK(reference.wrong(other.data()) == 0);
  CHECK(reference.wrong(folded(in, {0, 1, 2, 3}).data()) > 4500);
  auto spoilt = forward;
  spoilt[17] = from_real<T>(std::numeric_limits<double>::quiet_NaN());
  CHECK(reference.wrong(spoilt.data()) == 1);
}

TEST_CASE_TEMPLATE("8-bit floats: sums that round pass in any order, exact ones miss no rank", T,
                   f8e4m3, f8e5m2) {
  const Case e = case_of(Collective::all_reduce, 5000, datatype_of<T>, OpKind::sum);
  for (const Fill fill : {Fill::random, Fill::exact}) {
    const Values values(fill, e.op, e.type, ranks);
    const auto in = inputs<T>(e, values);
    const Reference reference(e, values, 0);
    const auto forward = folded(in, {0, 1, 2, 3, 4}), other = folded(in, {3, 0, 4, 2, 1});
    CHECK((forward == other) == (fill == Fill::exact));
    CHECK(reference.wrong(forward.data()) == 0);
    CHECK(reference.wrong(other.data()) == 0);
    if (fill == Fill::exact) CHECK(reference.wrong(folded(in, {0, 1, 2, 3}).data()) > 3000);
    auto spoilt = forward;
    spoilt[17] = from_real<T>(std::numeric_limits<double>::quiet_NaN());
    CHECK(reference.wrong(spoilt.data()) == 1);
  }
}

TEST_CASE("the tolerance of an average takes underflow in") {
  // 1.5 of the smallest numbers, rounded to 2 of them.
  const Case e = flat_case(Collective::all_reduce, 2, 1 << 16, Datatype::f8e4m3, OpKind::avg, 0);
  const Values values(Fill::random, e.op, e.type, 2);
  std::vector<f8e4m3> left(1 << 16), right(1 << 16);
  values.write(0, 0, 1 << 16, left.data());
  values.write(1, 0, 1 << 16, right.data());
  int underflows = 0;
  for (std::size_t i = 0; i < left.size(); ++i) {
    const double sum = to_real(from_real<f8e4m3>(to_real(left[i]) + to_real(right[i])));
    left[i] = from_real<f8e4m3>(sum / 2);
    underflows += to_real(left[i]) != sum / 2 && std::abs(sum) <= 0x3p-9;
  }
  CHECK(underflows > 0);
  CHECK(Reference(e, values, 0).wrong(left.data()) == 0);
}

TEST_CASE("a tolerance is no wider than a few roundings") {
  const Case e = case_of(Collective::all_reduce, 100, Datatype::f32, OpKind::sum);
  const Values values(Fill::random, e.op, e.type, ranks);
  const Reference reference(e, values, 0);
  auto sum = folded(inputs<float>(e, values), {0, 1, 2, 3, 4});
  for (float& x : sum) x += 3e-6F;  // at most 4 folds of 2^-24 of at most 5, so 1.2e-6
  CHECK(reference.wrong(sum.data()) == 100);
}

TEST_CASE("integers wrap, and their average is truncated toward zero") {
  const Case e = case_of(Collective::reduce_scatter, 500, Datatype::i8, OpKind::avg);
  const Values values(Fill::exact, e.op, e.type, ranks);
  const auto in = inputs<std::int8_t>(e, values);
  const auto sum = folded(in, {0, 1, 2, 3, 4});
  std::vector<std::int8_t> own;
  for (std::size_t i = 200; i < 300; ++i) own.push_back(static_cast<std::int8_t>(sum[i] / ranks));
  CHECK(Reference(e, values, 2).wrong(own.data()) == 0);
  ++own[50];
  CHECK(Reference(e, values, 2).wrong(own.data()) == 1);
}

TEST_CASE("a scan ends with the own rank, an exscan before it") {
  for (const Collective c : {Collective::scan, Collective::exscan}) {
    const Case e = case_of(c, 64, Datatype::i32, OpKind::sum);
    const Values values(Fill::exact, e.op, e.type, ranks);
    const auto in = inputs<std::int32_t>(e, values);
    const auto two = folded(in, {0, 1}), three = folded(in, {0, 1, 2});
    const Reference reference(e, values, 2);
    CHECK((reference.wrong(three.data()) == 0) == (c == Collective::scan));
    CHECK((reference.wrong(two.data()) == 0) == (c == Collective::exscan));
  }
}

TEST_CASE("data that moves must be the same bits") {
  const Case gather = case_of(Collective::all_gather, 35, Datatype::u8, OpKind::sum);
  const Values values(Fill::bits, gather.op, gather.type, ranks);
  const auto in = inputs<std::uint8_t>(gather, values);
  std::vector<std::uint8_t> joined;
  for (const auto& part : in) joined.insert(joined.end(), part.begin(), part.end());
  CHECK(joined.size() == 35);
  CHECK(Reference(gather, values, 4).wrong(joined.data()) == 0);
  std::swap(joined[3], joined[20]);
  CHECK(Reference(gather, values, 4).wrong(joined.data()) == 2);

  const Case broadcast = case_of(Collective::broadcast, 7, Datatype::u8, OpKind::sum);
  std::vector<std::uint8_t> root(7), other(7);
  values.write(1, 0, 7, root.data());
  values.write(0, 0, 7, other.data());
  CHECK(Reference(broadcast, values, 0).wrong(root.data()) == 0);
  CHECK(Reference(broadcast, values, 0).wrong(other.data()) > 0);
}

TEST_CASE("an all_to_all of tensors is cut and joined along its dimensions") {
  // [2, 5] on 5 ranks, scattered along 1 and gathered along 0: rank r gets column r of each rank.
  const Case e = tensor_case(Collective::all_to_all, ranks, Shape{2, 5}, Datatype::u32, 1, 0);
  CHECK(e.tensor->output == Shape{10, 1});
  const Values values(Fill::bits, e.op, e.type, ranks);
  const auto in = inputs<std::uint32_t>(e, values);
  std::vector<std::uint32_t> column;
  for (const auto& part : in) {
    column.push_back(part[3]);
    column.push_back(part[8]);
  }
  CHECK(Reference(e, values, 3).wrong(column.data()) == 0);
  CHECK(Reference(e, values, 2).wrong(column.data()) == 10);
}
