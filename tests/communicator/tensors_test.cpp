#include <doctest/doctest.h>

#include "support/conformance.hpp"
#include "support/ranks.hpp"

using namespace baton;
using namespace support;

TEST_CASE("all_gather along every dimension of tensors of rank 1 to 4") {
  for (const int size : {1, 2, 3, 4, 5, 8}) on_ranks(size, conformance::tensor_all_gather);
}

TEST_CASE("all_to_all for every pair of dimensions of tensors of rank 1 to 4") {
  for (const int size : {1, 2, 3, 4, 5, 8}) on_ranks(size, conformance::tensor_all_to_all);
}

TEST_CASE("all_to_all in place, where both dimensions are one") {
  on_ranks(3, [](Communicator& c) {
    Guarded<std::int32_t> data = Guarded<std::int32_t>::of(1, c.rank(), 2 * 6 * 2);
    Guarded<std::int32_t> expected(data.size());
    c.all_to_all(ConstTensor(data.span().data(), Shape{2, 6, 2}),
                 Tensor(expected.span().data(), Shape{2, 6, 2}), 1, 1);
    const Tensor same(data.span().data(), Shape{2, 6, 2});
    c.all_to_all(same, same, 1, 1);
    data.check(expected.span(), [] { return std::string("in place"); });
  });
}

TEST_CASE("all_to_all in place, where the dimensions differ") {
  on_ranks(2, [](Communicator& c) {
    const auto original = Guarded<std::int32_t>::of(1, c.rank(), 24);
    for (const char* algorithm : {"spread_out", "pairwise", "bruck"}) {
      Guarded<std::int32_t> data = original, expected(data.size());
      c.all_to_all(ConstTensor(data.span().data(), Shape{2, 4, 3}),
                   Tensor(expected.span().data(), Shape{4, 2, 3}), 1, 0);
      try {
        c.all_to_all(ConstTensor(data.span().data(), Shape{2, 4, 3}),
                     Tensor(data.span().data(), Shape{4, 2, 3}), 1, 0, {algorithm, 0});
        data.check(expected.span(), [&] { return std::string(algorithm); });
      } catch (const Error& error) {  // it may be refused, but not be wrong
        CHECK(error.code == ErrorCode::invalid_argument);
        CHECK(holds(error.what(), {"all_to_all", "in place"}));
        data.check(original.span(), [&] { return std::string(algorithm); });
      }
    }
  });
}
