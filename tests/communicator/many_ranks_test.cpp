#include <doctest/doctest.h>

#include "support/ranks.hpp"
#include "support/values.hpp"

using namespace baton;
using namespace support;

TEST_CASE("256 ranks: broadcast, all_reduce, all_gather, reduce_scatter, all_to_all") {
  const int size = 256;
  on_ranks(size, [&](Communicator& c) {
    using Ints = Guarded<std::int32_t>;
    const std::int64_t n = 9;
    const auto context = [] { return std::string("256 ranks"); };
    Ints sums(n, 0), chunk(n, 0), all(n * size), mine(n * size);
    for (int rank = 0; rank < size; ++rank) {
      for (std::int64_t i = 0; i < n; ++i) {
        sums[i] += value(1, rank, i);
        chunk[i] += value(2, rank, c.rank() * n + i);
        all[rank * n + i] = value(3, rank, i);
        mine[rank * n + i] = value(4, rank, c.rank() * n + i);
      }
    }
    Ints data = c.rank() == 77 ? Ints::of(9, 77, n) : Ints(n);
    c.broadcast(data.span(), 77);
    data.check(Ints::of(9, 77, n).span(), context);
    data = Ints::of(1, c.rank(), n);
    c.all_reduce(data.span(), sum);
    data.check(sums.span(), context);
    data = Ints(n);
    c.reduce_scatter(Ints::of(2, c.rank(), n * size).span(), data.span(), sum);
    data.check(chunk.span(), context);
    Ints wide(n * size);
    c.all_gather(Ints::of(3, c.rank(), n).span(), wide.span());
    wide.check(all.span(), context);
    c.all_to_all(Ints::of(4, c.rank(), n * size).span(), wide.span());
    wide.check(mine.span(), context);
  });
}
