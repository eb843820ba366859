#include <doctest/doctest.h>

#include "support/conformance.hpp"
#include "support/ranks.hpp"

using namespace baton;
using namespace support;

TEST_CASE("uneven counts, zeros among them, and blocks at offsets: every algorithm") {
  for (const int size : {1, 2, 3, 4, 5, 6, 7, 8, 16}) {
    on_ranks(size, [&](Communicator& c) { conformance::uneven(c, brief(size)); });
  }
}
