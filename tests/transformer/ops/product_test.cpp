/// Products of small matrices against plain loops.

#include <doctest/doctest.h>

#include "transformer/compare.hpp"
#include "transformer/ops/kernels.hpp"

using namespace baton::transformer;
using support::converted;
using support::difference;
using support::random_array;

TEST_CASE_TEMPLATE("products are those of loops", T, float, double) {
  const double tolerance = sizeof(T) == 4 ? 1e-5 : 1e-13;
  // Every number of rows and of columns that vectors and blocks leave over.
  for (std::int64_t rows = 1; rows <= 14; ++rows)
    for (std::int64_t columns = 1; columns <= 150; columns += columns < 20 ? 1 : 13)
      for (const std::int64_t inner : {1, 5, 64}) {
        const std::int64_t gap = 3;  // elements between rows, which must stay as they are
        const auto a = random_array<T>({rows, inner}, 1),
                   b = random_array<T>({inner, columns + gap}, 2);
        const auto a_turned = Array<T>::copy_of(a.view().transposed(0, 1));
        for (const bool turned : {false, true})
          for (const bool add : {false, true}) {
            CAPTURE(rows);
            CAPTURE(columns);
            CAPTURE(inner);
            CAPTURE(turned);
            CAPTURE(add);
            auto c = random_array<T>({rows, columns + gap}, 3);
            auto expected = converted<double>(c);
            for (std::int64_t i = 0; i < rows; ++i)
              for (std::int64_t j = 0; j < columns; ++j) {
                double sum = 0;
                for (std::int64_t n = 0; n < inner; ++n)
                  sum += static_cast<double>(a.view()(i, n)) * b.view()(n, j);
                double& to = expected.view()(i, j);
                to = 0.75 * sum + (add ? to : 0);
              }
            ops::kernels<ops::ProductKernels<T>>().product(
                {rows, columns, inner, T(0.75), turned ? a_turned.data() : a.data(),
                 turned ? 1 : inner, turned ? rows : 1, b.data(), columns + gap, add, c.data(),
                 columns + gap});
            CHECK(difference(c, expected) < tolerance);
          }
      }
}
