#include <doctest/doctest.h>

#include "support/conformance.hpp"
#include "support/ops.hpp"
#include "support/ranks.hpp"
#include "support/sanitizer.hpp"

using namespace baton;
using namespace support;

TEST_CASE("every operation on every datatype") {
  for (const int size : {1, 2, 3, 5, 8}) on_ranks(size, conformance::types);
}

TEST_CASE("users' operations: rank order is kept by every algorithm that says so") {
  for (const int size :
       under_sanitizer ? std::vector{1, 2, 3, 4, 5} : std::vector{1, 2, 3, 4, 5, 6, 7, 8, 16}) {
    on_ranks(size, conformance::user_operations);
  }
}

TEST_CASE("an operation that does not commute is refused by an algorithm without rank order") {
  on_ranks(3, [](Communicator& c) {
    std::vector<std::uint64_t> data(9, 1), chunk(3);
    const Error error = error_of([&] { c.all_reduce(data, affine_maps, {"ring", 0}); });
    CHECK(error.code == ErrorCode::invalid_argument);
    CHECK(holds(error.what(), {"all_reduce", "ring", "rank order", "does not commute"}));
    CHECK(error_of([&] {
            c.reduce_scatter(data, chunk, matrices, {"circulant", 0});
          }).code == ErrorCode::invalid_argument);
    c.all_reduce(data, sum);
    CHECK(data == std::vector<std::uint64_t>(9, 3));
  });
}

TEST_CASE("test values: order is seen") {
  CHECK(composed(7ull << 32 | 1, 3ull << 32 | 2) != composed(3ull << 32 | 2, 7ull << 32 | 1));
  CHECK(matrix_product(0x0001000200030004, 0x0005000600070008) !=
        matrix_product(0x0005000600070008, 0x0001000200030004));
}
