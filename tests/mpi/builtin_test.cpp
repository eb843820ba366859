#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "communicators.hpp"
#include "support/values.hpp"

using namespace baton;
using namespace support;

namespace {

/// What the MPI library's own collective says of the same data.
class Comparison {
 public:
  explicit Comparison(std::int64_t count) : c(world()), n(count), wide(n * c.size()) {
    for (std::int64_t i = 0; i < wide; ++i) {
      ints.push_back(value(1, c.rank(), i));
      doubles.push_back(std::ldexp(value(2, c.rank(), i), -3));  // sums are exact
    }
  }

  void run() {
    const int count = static_cast<int>(n), root = c.size() - 1;
    const std::vector<int> in(ints.begin(), ints.begin() + count);
    const std::vector<double> real(doubles.begin(), doubles.begin() + count);
    using Ints = std::vector<int>;
    const auto compare = [&](const char* what, std::int64_t length, const auto& ours,
                             const auto& theirs) {
      Ints a(static_cast<std::size_t>(length), -7), b = a;
      ours(a);
      REQUIRE(theirs(b) == MPI_SUCCESS);
      CHECK_MESSAGE(a == b, std::string(what), " of ", n);
    };
    compare(
        "broadcast", n,
        [&](Ints& out) {
          if (c.rank() == root) out = in;
          c.broadcast(out, root);
        },
        [&](Ints& out) {
          if (c.rank() == root) out = in;
          return MPI_Bcast(out.data(), count, MPI_INT, root, MPI_COMM_WORLD);
        });
    struct Both {
      Op ours;
      MPI_Op theirs;
    };
    for (const Both& op : {Both{sum, MPI_SUM}, Both{max, MPI_MAX}, Both{min, MPI_MIN},
                           Both{bit_xor, MPI_BXOR}, Both{logical_and, MPI_LAND}}) {
      compare(
          "all_reduce", n, [&](Ints& out) { c.all_reduce(in, out, op.ours); },
          [&](Ints& out) {
            return MPI_Allreduce(in.data(), out.data(), count, MPI_INT, op.theirs, MPI_COMM_WORLD);
          });
    }
    compare(
        "reduce", n, [&](Ints& out) { c.reduce(in, out, sum, root); },
        [&](Ints& out) {
          return MPI_Reduce(in.data(), out.data(), count, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
        });
    compare(
        "scan", n, [&](Ints& out) { c.scan(in, out, sum); },
        [&](Ints& out) {
          return MPI_Scan(in.data(), out.data(), count, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        });
    compare(
        "exscan", c.rank() == 0 ? 0 : n,
        [&](Ints& out) {
          Ints room(in.size());
          c.exscan(in, c.rank() == 0 ? room : out, sum);
        },
        [&](Ints& out) {
          Ints room(in.size());
          return MPI_Exscan(in.data(), c.rank() == 0 ? room.data() : out.data(), count, MPI_INT,
                            MPI_SUM, MPI_COMM_WORLD);
        });
    compare(
        "gather", c.rank() == root ? wide : 0, [&](Ints& out) { c.gather(in, out, root); },
        [&](Ints& out) {
          return MPI_Gather(in.data(), count, MPI_INT, out.data(), count, MPI_INT, root,
                            MPI_COMM_WORLD);
        });
    compare(
        "scatter", n, [&](Ints& out) { c.scatter(ints, out, root); },
        [&](Ints& out) {
          return MPI_Scatter(ints.data(), count, MPI_INT, out.data(), count, MPI_INT, root,
                             MPI_COMM_WORLD);
        });
    compare(
        "all_gather", wide, [&](Ints& out) { c.all_gather(in, out); },
        [&](Ints& out) {
          return MPI_Allgather(in.data(), count, MPI_INT, out.data(), count, MPI_INT,
                               MPI_COMM_WORLD);
        });
    compare(
        "reduce_scatter", n, [&](Ints& out) { c.reduce_scatter(ints, out, sum); },
        [&](Ints& out) {
          return MPI_Reduce_scatter_block(ints.data(), out.data(), count, MPI_INT, MPI_SUM,
                                          MPI_COMM_WORLD);
        });
    compare(
        "all_to_all", wide, [&](Ints& out) { c.all_to_all(ints, out); },
        [&](Ints& out) {
          return MPI_Alltoall(ints.data(), count, MPI_INT, out.data(), count, MPI_INT,
                              MPI_COMM_WORLD);
        });
    std::vector<double> a(real.size()), b(real.size());
    c.all_reduce(real, a, sum);
    REQUIRE(MPI_Allreduce(real.data(), b.data(), count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD) ==
            MPI_SUCCESS);
    CHECK(a == b);
    uneven();
  }

 private:
  /// Rank r has r + 1 elements for everybody.
  void uneven() {
    std::vector<int> counts, offsets, mine, mine_offsets;
    for (int r = 0; r < c.size(); ++r) {
      counts.push_back(r + 1);
      offsets.push_back(r * (r + 1) / 2);
      mine.push_back(c.rank() + 1);
      mine_offsets.push_back(r * (c.rank() + 1));
    }
    const Counts wide_counts(counts.begin(), counts.end()), wide_mine(mine.begin(), mine.end());
    const auto all = static_cast<std::size_t>(offsets.back() + counts.back());
    const std::vector<int> in(ints.begin(),
                              ints.begin() + std::min<std::int64_t>(wide, c.rank() + 1));
    if (static_cast<int>(in.size()) != c.rank() + 1) return;  // not enough test data
    std::vector<int> a(all), b(all);
    c.all_gather_v(in, a, wide_counts);
    REQUIRE(MPI_Allgatherv(in.data(), c.rank() + 1, MPI_INT, b.data(), counts.data(),
                           offsets.data(), MPI_INT, MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(a == b);
    std::vector<int> many(static_cast<std::size_t>(c.size() * (c.rank() + 1)));
    std::iota(many.begin(), many.end(), 1000 * c.rank());
    c.all_to_all_v(many, wide_mine, a, wide_counts);
    REQUIRE(MPI_Alltoallv(many.data(), mine.data(), mine_offsets.data(), MPI_INT, b.data(),
                          counts.data(), offsets.data(), MPI_INT, MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(a == b);
    std::vector<int> part(in.size()), theirs(in.size());
    c.reduce_scatter_v(a, part, wide_counts, sum);
    REQUIRE(MPI_Reduce_scatter(a.data(), theirs.data(), counts.data(), MPI_INT, MPI_SUM,
                               MPI_COMM_WORLD) == MPI_SUCCESS);
    CHECK(part == theirs);
  }

  Communicator c;
  std::int64_t n, wide;
  std::vector<int> ints;
  std::vector<double> doubles;
};

}  // namespace

TEST_CASE("a million elements") {
  Communicator c = world();
  constexpr int n = 1'000'000;
  std::vector<int> in(n), ours(n), theirs(n);
  for (int i = 0; i < n; ++i) in[static_cast<std::size_t>(i)] = value(1, c.rank(), i);
  c.all_reduce(in, ours, sum);
  REQUIRE(MPI_Allreduce(in.data(), theirs.data(), n, MPI_INT, MPI_SUM, MPI_COMM_WORLD) ==
          MPI_SUCCESS);
  CHECK(ours == theirs);
  if (c.rank() != 0) std::fill(ours.begin(), ours.end(), 0);
  c.broadcast(ours, 0);
  CHECK(ours == theirs);
}

TEST_CASE("the MPI library's own collectives agree") {
  for (const std::int64_t n : {1, 10, 1'000, 30'000}) Comparison(n).run();
}
