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

TEST_CASE("uneven counts in place: a rank's own block lies behind those of the ranks before it") {
  run_threads(3, [](std::unique_ptr<Transport> transport) {
    Communicator world(std::move(transport));
    const std::vector<std::int64_t> counts{2, 0, 3};
    const std::size_t begin = world.rank() == 0 ? 0 : 2;
    std::vector<int> x(5, -1);
    const auto own = static_cast<std::size_t>(counts[static_cast<std::size_t>(world.rank())]);
    for (std::size_t i = 0; i < own; ++i) x[begin + i] = 10 * world.rank() + static_cast<int>(i);
    world.all_gather_v({x.data() + begin, static_cast<std::int64_t>(own), Datatype::i32},
                       {x.data(), 5, Datatype::i32}, counts);
    CHECK(x == std::vector<int>{0, 1, 20, 21, 22});
  });
}
