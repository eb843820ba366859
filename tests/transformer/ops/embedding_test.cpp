/// Embeddings: rows of a table, and of a part of it.

#include <doctest/doctest.h>

#include "support/ranks.hpp"
#include "transformer/compare.hpp"
#include "transformer/ops/ops.hpp"

using namespace baton::transformer;
using support::random_array;

namespace {
Array<std::int32_t> ids_of(const std::vector<std::int32_t>& values) {
  auto ids = Array<std::int32_t>::uninitialized({static_cast<std::int64_t>(values.size())});
  std::copy(values.begin(), values.end(), ids.data());
  return ids;
}
}  // namespace

TEST_CASE_TEMPLATE("rows by ids; those of other parts are zeros", T, float, double) {
  const auto ids = ids_of({4, 7, 4, 3, 9, -1, 8});
  const auto table = random_array<T>({5, 3}, 1);  // rows 4 to 8 of a larger one
  auto y = random_array<T>({7, 3}, 2);
  embedding<T>(ids, table, 4, y.view());
  for (int i = 0; i < 7; ++i) {
    const int row = ids.data()[i] - 4;
    for (int d = 0; d < 3; ++d)
      CHECK(y.view()(i, d) == (row >= 0 && row < 5 ? table.view()(row, d) : T(0)));
  }

  const auto dy = random_array<T>({7, 3}, 3);
  auto dtable = random_array<T>({5, 3}, 4);
  const auto before = dtable.copy();
  embedding_backward<T>(ids, dy, 4, dtable.view());
  for (int d = 0; d < 3; ++d) {
    CHECK(dtable.view()(0, d) == before.view()(0, d) + dy.view()(0, d) + dy.view()(2, d));
    CHECK(dtable.view()(1, d) == before.view()(1, d));
    CHECK(dtable.view()(3, d) == before.view()(3, d) + dy.view()(1, d));
    CHECK(dtable.view()(4, d) == before.view()(4, d) + dy.view()(6, d));
  }
}

TEST_CASE("shapes that do not fit are named") {
  const auto ids = ids_of({0, 1});
  Array<float> table({5, 3}), y({2, 3}), flat({6});
  CHECK(support::holds(
      support::error_of([&] { embedding<float>(ids, table, 0, table.view()); }).what(),
      {"embedding: y", "[2, 3]", "[5, 3]"}));
  CHECK(support::holds(
      support::error_of([&] { embedding_backward<float>(ids, table, 0, table.view()); }).what(),
      {"embedding_backward: dy", "[2, 3]", "[5, 3]"}));
  CHECK(support::holds(support::error_of([&] { embedding<float>(ids, flat, 0, y.view()); }).what(),
                       {"embedding: table", "[*, *]", "[6]"}));
}
