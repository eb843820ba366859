/// Views and arrays.

#include "transformer/tensor.hpp"

#include <doctest/doctest.h>

#include <numeric>
#include <thread>

#include "compare.hpp"
#include "support/ranks.hpp"
#include "transformer/accelerator.hpp"

using namespace baton::transformer;
using baton::Shape;

namespace {

/// 0, 1, 2, …
Array<float> counted(const Shape& shape) {
  auto a = Array<float>::uninitialized(shape);
  std::iota(a.data(), a.data() + a.size(), 0.0f);
  return a;
}

std::vector<float> elements(View<const float> view) {
  const auto copy = Array<float>::copy_of(view);
  return {copy.data(), copy.data() + copy.size()};
}

std::string sentence(const std::function<void()>& call) { return support::error_of(call).what(); }

}  // namespace

TEST_CASE("a contiguous view is row-major") {
  auto a = counted({2, 3, 4});
  const View<float> v = a.view();
  CHECK(v.stride(0) == 12);
  CHECK(v.stride(-2) == 4);
  CHECK(v.stride(2) == 1);
  CHECK(v.extent(-1) == 4);
  CHECK(v(1, 2, 3) == 23);
  CHECK(v.contiguous());
  v(1, 0, 2) = -1;
  CHECK(a.data()[14] == -1);
}

TEST_CASE("slices, single indexes and transposes are views of the same elements") {
  const auto a = counted({2, 3, 4});
  const auto middle = a.view().slice(1, 1, 3);
  CHECK(middle.shape() == Shape{2, 2, 4});
  CHECK_FALSE(middle.contiguous());
  CHECK(middle(1, 0, 2) == 18);
  CHECK(a.view().slice(0, 1, 2).contiguous());
  CHECK(a.view().slice(-1, 4, 4).size() == 0);

  const auto one = a.view().select(1, 2);
  CHECK(one.shape() == Shape{2, 4});
  CHECK(elements(one) == std::vector<float>{8, 9, 10, 11, 20, 21, 22, 23});
  CHECK(a.view().select(-1, 3).select(0, 1).stride(0) == 4);

  const auto turned = a.view().slice(2, 0, 2).transposed(0, -1);
  CHECK(turned.shape() == Shape{2, 3, 2});
  CHECK(elements(turned) == std::vector<float>{0, 12, 4, 16, 8, 20, 1, 13, 5, 17, 9, 21});
  CHECK(turned.data() == a.data());
}

TEST_CASE("where extents are 1, strides do not matter") {
  const auto a = counted({3, 1, 4});
  CHECK(a.view().transposed(0, 1).contiguous());
  CHECK(a.view().slice(0, 1, 2).transposed(0, 1).contiguous());
  CHECK_FALSE(a.view().transposed(0, 2).contiguous());
}

TEST_CASE("contiguous elements in another shape") {
  auto a = counted({2, 3, 4});
  const Array<float> none({3, 2, 0});
  CHECK(a.view().reshaped({4, 6})(3, 5) == 23);
  CHECK(a.view().rows().shape() == Shape{6, 4});
  CHECK(none.view().rows().shape() == Shape{6, 0});
  CHECK(View<float>(a.data(), Shape{}).rows().shape() == Shape{1, 1});
  auto other = a.reshaped({24});
  other.data()[5] = -2;
  CHECK(a.view()(0, 1, 1) == -2);
}

template <class From, class To>
constexpr bool converts = std::is_convertible_v<From, To>;
static_assert(std::is_same_v<decltype(std::declval<Array<float>&>().data()), float*>);
static_assert(std::is_same_v<decltype(std::declval<const Array<float>&>().data()), const float*>);
static_assert(std::is_same_v<decltype(std::declval<Array<float>&>().view()), View<float>>);
static_assert(
    std::is_same_v<decltype(std::declval<const Array<float>&>().view()), View<const float>>);
// Implicit: reading an array, or a writable view. Explicit: writing, copying.
static_assert(converts<const Array<float>&, View<const float>>);
static_assert(converts<View<float>, View<const float>>);
static_assert(!converts<Array<float>&, View<float>>);
static_assert(!converts<View<const float>, View<float>>);
static_assert(!std::is_constructible_v<View<float>, const Array<float>&>);
static_assert(!std::is_constructible_v<Array<float>, View<const float>>);
// A view of a temporary array would outlive its elements.
static_assert(!converts<Array<float>, View<const float>>);
static_assert(!std::is_constructible_v<View<const float>, const Array<float>>);
// What collectives are told to write.
static_assert(std::is_constructible_v<baton::Data, decltype(std::declval<Array<float>&>().span())>);
static_assert(
    !std::is_constructible_v<baton::Data, decltype(std::declval<const Array<float>&>().span())>);
static_assert(!converts<baton::ConstTensor, baton::Tensor>);
static_assert(
    std::is_same_v<decltype(std::declval<const Array<float>&>().tensor()), baton::ConstTensor>);
// Operands of accelerators, likewise.
static_assert(converts<View<const float>, ConstOperand> && converts<Operand, ConstOperand>);
static_assert(!converts<View<const float>, Operand> && !converts<ConstOperand, Operand>);

TEST_CASE("assignment between any strides; shapes must be equal") {
  const auto a = counted({3, 4});
  Array<float> b({4, 3}), c({3, 4});
  assign<float>(a.view().transposed(0, 1), b.view());
  CHECK(b.view()(3, 1) == 7);
  assign<float>(b.view().transposed(0, 1), c.view());
  CHECK(elements(c) == elements(a));
  assign<float>(a.view().select(0, 1), b.view().reshaped({3, 4}).select(0, 0));
  CHECK(b.data()[3] == 7);
  CHECK(support::holds(sentence([&] { assign<float>(a, b.view()); }), {"[4, 3]", "[3, 4]"}));
}

TEST_CASE("copies of an array are the same elements until they are copied") {
  Array<double> a({2, 2});
  CHECK(a.alone());
  CHECK(std::all_of(a.data(), a.data() + 4, [](double x) { return x == 0; }));
  {
    Array<double> same = a;
    CHECK_FALSE(a.alone());
    same.data()[3] = 5;
  }
  CHECK(a.alone());
  CHECK(a.data()[3] == 5);
  auto other = a.copy();
  other.data()[3] = 6;
  CHECK(a.data()[3] == 5);
  CHECK(Array<double>().empty());
  CHECK_FALSE(Array<double>({0}).empty());
}

TEST_CASE(
    "arrays begin at cache lines, are zeros unless asked otherwise, and outlive their threads") {
  for (const std::int64_t n : {1, 7, 1000, 1 << 18, 1 << 20}) {
    for (int again = 0; again < 3; ++again) {
      Array<float> a({n});
      CHECK(reinterpret_cast<std::uintptr_t>(a.data()) % 64 == 0);
      CHECK(std::count(a.data(), a.data() + n, 0.0f) == n);
      std::fill_n(a.data(), n, 1.0f);  // for whoever gets these bytes next
    }
  }
  std::vector<Array<float>> made(4);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < made.size(); ++t) {
    threads.emplace_back([&made, t] {
      for (int i = 0; i < 50; ++i) {
        auto a = Array<float>::uninitialized({(1 << 18) + i});
        std::fill_n(a.data(), a.size(), static_cast<float>(t));
        made[t] = a;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (std::size_t t = 0; t < made.size(); ++t)
    CHECK(std::count(made[t].data(), made[t].data() + made[t].size(), static_cast<float>(t)) ==
          made[t].size());
}

TEST_CASE("what does not fit is named") {
  const auto a = counted({2, 3});
  const View<const float> v = a;
  CHECK(support::holds(sentence([&] { v.slice(1, 1, 4); }), {"dimension 1 of [2, 3]", "[1, 4)"}));
  CHECK(support::holds(sentence([&] { v.slice(0, 2, 1); }), {"dimension 0 of [2, 3]", "[2, 1)"}));
  CHECK(support::holds(sentence([&] { v.select(1, 3); }), {"dimension 1 of [2, 3]", "3"}));
  CHECK(support::holds(sentence([&] { v.extent(2); }), {"dimension of [2, 3]", "2"}));
  CHECK(support::holds(sentence([&] { v.extent(-3); }), {"dimension of [2, 3]", "-3"}));
  CHECK(support::holds(sentence([&] { v.reshaped({4}); }), {"6 elements", "[2, 3]", "[4]"}));
  CHECK(support::holds(sentence([&] { v.transposed(0, 1).reshaped({6}); }),
                       {"contiguous", "[3, 2]", "[6]", "strides"}));
  CHECK(support::holds(sentence([&] { a.reshaped({7}); }), {"6 elements", "[7]"}));
}

#ifdef BATON_CHECK_INDEXES
TEST_CASE("debug builds check indexes") {
  const auto a = counted({2, 3});
  CHECK(support::holds(sentence([&] { a.view()(1, 3); }), {"dimension 1 of [2, 3]", "3"}));
  CHECK(support::holds(sentence([&] { a.view()(-1, 0); }), {"dimension 0 of [2, 3]", "-1"}));
  CHECK(support::holds(sentence([&] { a.view()(1, 1, 0); }), {"dimension 2 of [2, 3]", "0"}));
}
#endif

TEST_CASE("sizes that no memory holds are refused, also where their product overflows") {
  for (const Shape& shape : {Shape{1 << 30, 1 << 30, 16}, Shape{std::int64_t{1} << 45, 8}}) {
    const baton::Error error = support::error_of([&] { Array<double>::uninitialized(shape); });
    CHECK(error.code == baton::ErrorCode::unsupported);
    CHECK(support::holds(error.what(), {"expected memory for a tensor of " + shape.text(), "8 B"}));
  }
}

TEST_CASE("convert between f32 and bf16, of any strides") {
  const auto from = support::random_array<float>({3, 4}, 1);
  auto narrow = Array<baton::bf16>::uninitialized({4, 3});
  convert<float>(from.view().transposed(0, 1), narrow.view());
  Array<float> back({3, 4, 2});
  convert<baton::bf16>(narrow.view().transposed(0, 1), back.view().select(2, 1));
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 4; ++j) {
      CHECK(narrow.view()(j, i) == baton::to_bf16(from.view()(i, j)));
      CHECK(back.view()(i, j, 1) == baton::to_float(narrow.view()(j, i)));
      CHECK(back.view()(i, j, 0) == 0);
    }
  }
  CHECK(support::holds(support::error_of([&] { convert<float>(from, narrow.view()); }).what(),
                       {"convert", "[4, 3]", "[3, 4]"}));
  const Array<float> none({0, 3});
  Array<float> dense(narrow.shape());
  Array<float> scalar{Shape()};
  *scalar.data() = 1.5;
  convert<baton::bf16>(narrow, dense.view());
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 4; ++j) CHECK(dense.view()(j, i) == baton::to_float(narrow.view()(j, i)));
  Array<baton::bf16> narrow_none({0, 3}), narrow_scalar{Shape()};
  convert<float>(none, narrow_none.view());
  convert<float>(scalar, narrow_scalar.view());
  CHECK(*narrow_scalar.data() == baton::to_bf16(1.5));
}
