#include <doctest/doctest.h>

#include <random>

#include "memory/samples.hpp"
#include "support/conformance.hpp"
#include "support/ops.hpp"
#include "support/ranks.hpp"
#include "support/sanitizer.hpp"

using namespace baton;
using namespace support;

namespace {

using samples::Bytes;

constexpr std::int64_t count = 1003;
constexpr Datatype float_types[] = {Datatype::f8e4m3, Datatype::f8e5m2, Datatype::f16,
                                    Datatype::bf16,   Datatype::f32,    Datatype::f64};
constexpr OpKind float_ops[] = {OpKind::sum, OpKind::avg, OpKind::prod, OpKind::min, OpKind::max};

/// Infinities, NaNs with payloads, signed zeros, subnormals, and numbers whose sums round.
Bytes wild(Datatype type, int rank, std::int64_t elements = count) {
  std::mt19937_64 generator(static_cast<std::uint64_t>(rank) + 1);
  return samples::random(type, static_cast<std::size_t>(elements), generator);
}

Data data_of(Bytes& bytes, Datatype type) {
  return {bytes.data(), static_cast<std::int64_t>(bytes.size() / size_of(type)), type};
}

using Results = std::vector<Bytes>;  // by rank

/// Every rank's result of one all_reduce.
Results all_reduced(int size, Datatype type, const std::function<Op(int rank)>& op,
                    const Choice& choice, const ThreadOptions& disturbed = {}) {
  Results results(static_cast<std::size_t>(size));
  on_ranks(
      size,
      [&](Communicator& c) {
        Bytes mine = wild(type, c.rank());
        c.all_reduce(data_of(mine, type), op(c.rank()), choice);
        results[static_cast<std::size_t>(c.rank())] = std::move(mine);
      },
      test_options(), disturbed);
  return results;
}

void check_equal(const Results& results, const Bytes& expected, const std::string& context) {
  for (std::size_t rank = 0; rank < results.size(); ++rank) {
    CHECK_MESSAGE(results[rank] == expected, context, ": rank ", rank);
  }
}

}  // namespace

TEST_CASE("wild floats: all_reduce gives the same bits on all ranks, for every algorithm") {
  for (const int size : {2, 3, 5, 8}) {
    if (under_sanitizer && size == 8) continue;
    on_ranks(size, [&](Communicator& c) {
      for (const Datatype type : float_types) {
        for (const OpKind op : float_ops) {
          const Problem problem = conformance::problem_of(c, Collective::all_reduce);
          conformance::for_choices(c, problem, Scope{{}, {0, 256}, {}}, [&](const Choice& choice) {
            Bytes mine = wild(type, c.rank());
            c.all_reduce(data_of(mine, type), op, choice);
            Bytes all(mine.size() * static_cast<std::size_t>(size));
            c.all_gather(mine, all);
            bool same = true;
            for (int rank = 0; rank < size; ++rank) {
              same =
                  same && std::equal(mine.begin(), mine.end(),
                                     all.begin() + rank * static_cast<std::ptrdiff_t>(mine.size()));
            }
            CHECK_MESSAGE(same, name(op), " of ", name(type), ", ",
                          conformance::where(c, Collective::all_reduce, choice, count));
          });
        }
      }
    });
  }
}

TEST_CASE("wild floats: order matters, so equal bits are no accident") {
  const auto ring = all_reduced(3, Datatype::f32, [](int) { return sum; }, {"ring", 0});
  const auto gathered =
      all_reduced(3, Datatype::f32, [](int) { return sum; }, {"gather_broadcast", 0});
  CHECK(ring[0] != gathered[0]);
}

TEST_CASE("wild floats: the same bits from run to run, whatever the delays") {
  const Registry registry = Registry::builtin();
  for (const Algorithm& algorithm : registry.all()) {
    if (algorithm.collective != Collective::all_reduce) continue;
    for (const int size : {3, 4, 6}) {
      if (algorithm.hierarchical && size == 3) continue;
      if (under_sanitizer && size == 6) continue;
      ThreadOptions threads;
      if (algorithm.hierarchical) {
        for (int r = 0; r < size; ++r) threads.hosts.push_back(r % 2);
      }
      const Choice choice{algorithm.name, 512};
      for (const Datatype type : {Datatype::f32, Datatype::bf16, Datatype::f8e4m3}) {
        const auto quiet = all_reduced(
            size, type, [](int) { return sum; }, choice, threads);
        check_equal(quiet, quiet[0], algorithm.name);
        for (const std::uint64_t seed : {11, 12, 13}) {
          ThreadOptions delayed = threads;
          delayed.seed = seed;
          delayed.eager_bytes = 256;
          check_equal(all_reduced(
                          size, type, [](int) { return sum; }, choice, delayed),
                      quiet[0], algorithm.name + ", delayed");
        }
      }
    }
  }
}

TEST_CASE("wild floats: the same bits with another instruction set on every rank") {
  const int levels = host::simd_level_count();
  REQUIRE(levels >= 1);
  for (const Datatype type : float_types) {
    for (const OpKind kind : {OpKind::sum, OpKind::prod, OpKind::min, OpKind::max}) {
      std::vector<AtLevel> at;
      for (int level = 0; level < levels; ++level) at.emplace_back(kind, type, level);
      for (const char* algorithm : {"ring", "recursive_doubling", "circulant"}) {
        const Choice choice{algorithm, 0};
        const auto uniform = all_reduced(
            5, type, [&](int) { return Op(kind); }, choice);
        const auto varied = all_reduced(
            5, type, [&](int rank) { return at[static_cast<std::size_t>(rank % levels)].op(); },
            choice);
        check_equal(varied, uniform[0], algorithm);
      }
    }
  }
}

TEST_CASE("wild floats: reduce, reduce_scatter and scan from run to run") {
  const int size = 5;
  const auto run = [&](const ThreadOptions& disturbed) {
    Results results(static_cast<std::size_t>(size));
    on_ranks(
        size,
        [&](Communicator& c) {
          Bytes& all = results[static_cast<std::size_t>(c.rank())];
          Bytes mine = wild(Datatype::f32, c.rank(), 200 * size);
          const Data in = data_of(mine, Datatype::f32);
          const auto append = [&](std::int64_t n, const auto& call) {
            Bytes out(static_cast<std::size_t>(n) * 4);
            call(data_of(out, Datatype::f32));
            all.insert(all.end(), out.begin(), out.end());
          };
          append(in.count, [&](Data out) { c.reduce(in, out, sum, 2); });
          append(in.count / size, [&](Data out) { c.reduce_scatter(in, out, sum); });
          append(in.count, [&](Data out) { c.scan(in, out, sum); });
          append(in.count, [&](Data out) { c.exscan(in, out, sum); });
        },
        test_options(), disturbed);
    return results;
  };
  const Results quiet = run({});
  CHECK(run({.seed = 5}) == quiet);
  CHECK(run({.seed = 6, .eager_bytes = 0}) == quiet);
}

TEST_CASE("rank order: with an algorithm in rank order, bits are those of the plain loop") {
  const int size = 4;
  for (const Datatype type : float_types) {
    for (const OpKind op : float_ops) {
      Bytes expected = wild(type, 0);
      for (int rank = 1; rank < size; ++rank) {
        const Bytes next = wild(type, rank);
        host::reference_fold(op, type)(expected.data(), expected.data(), next.data(), count);
      }
      if (op == OpKind::avg) host::reference_divide(type)(expected.data(), count, size);
      check_equal(all_reduced(size, type, [&](int) { return Op(op); }, {"gather_broadcast", 0}),
                  expected, std::string(name(op)));
    }
  }
}
