#include "transformer/pipeline/described.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <numeric>

#include "baton/error.hpp"
#include "support/ranks.hpp"

using namespace baton;
using namespace baton::transformer;
using namespace support;

namespace {

/// A rank's memory of a call.
struct Elements {
  std::vector<double> in, out;
};

/// The last rank takes part by rank 0's description; on the others, `expected` is the output.
void expect_joined(Communicator& world, Elements mine, const std::vector<double>& expected,
                   const std::function<Call(Elements&)>& call_of) {
  const bool joins = world.rank() + 1 == world.size();
  const Call call = call_of(mine);
  std::vector<std::int64_t> words;
  if (world.rank() == 0) describe(call, words);
  auto size = static_cast<std::int64_t>(words.size());
  world.broadcast(std::span(&size, 1), 0);
  words.resize(static_cast<std::size_t>(size));
  world.broadcast(Data(words), 0);
  if (joins) {
    const Elements before = mine;
    Joined joined(world, words);
    joined.request().wait();
    CHECK(mine.in == before.in);
    CHECK(mine.out == before.out);
  } else {
    world.start(call).wait();
    CHECK(mine.out == expected);
  }
}

}  // namespace

TEST_CASE("a rank takes part with zeros in what another one describes") {
  for (const bool check : {false, true}) {
    for (const int size : {2, 3, 4}) {
      Options options = test_options();
      options.check = check;
      on_ranks(
          size,
          [](Communicator& world) {
            const int p = world.size(), rank = world.rank();
            const auto n = static_cast<std::size_t>(p);
            const std::vector<double> ones(n, 1.0), none(n, -1.0);
            const double others = p - 1;
            expect_joined(world, {ones, none}, std::vector<double>(n, others),
                          [](Elements& e) { return calls::all_reduce(e.in, e.out, sum); });
            expect_joined(world, {{}, ones}, std::vector<double>(n, others),
                          [](Elements& e) { return calls::all_reduce(Data(e.out), sum); });
            expect_joined(world, {{}, ones}, std::vector<double>(n, others), [](Elements& e) {
              static thread_local std::vector<Data> parts;
              parts = {Data(e.out.data(), 1, Datatype::f64),
                       Data(e.out.data() + 1, static_cast<std::int64_t>(e.out.size()) - 1,
                            Datatype::f64)};
              return calls::all_reduce(std::span<const Data>(parts), sum);
            });
            std::vector<double> gathered(n, 1.0);
            gathered.back() = 0;
            expect_joined(world, {{1}, none}, gathered,
                          [](Elements& e) { return calls::all_gather(e.in, e.out); });
            expect_joined(world, {ones, none}, gathered,
                          [](Elements& e) { return calls::all_to_all(e.in, e.out); });
            const auto tensor = [](std::vector<double>& of, const Shape& shape) {
              return Tensor(of.data(), shape);
            };
            expect_joined(world, {ones, none}, gathered, [&](Elements& e) {
              return calls::all_to_all(tensor(e.in, {1, p, 1}), tensor(e.out, {p, 1, 1}), 1, 0);
            });
            expect_joined(world, {{1}, none}, gathered, [&](Elements& e) {
              return calls::all_gather(tensor(e.in, {1, 1}), tensor(e.out, {1, p}), 1);
            });
            expect_joined(world, {ones, {-1}}, {others},
                          [](Elements& e) { return calls::reduce_scatter(e.in, e.out, sum); });
            // Rank r has r + 1 elements.
            std::vector<std::int64_t> counts(n);
            std::iota(counts.begin(), counts.end(), 1);
            const auto all = static_cast<std::size_t>(p * (p + 1) / 2), own = std::size_t(rank) + 1;
            std::vector<double> joined(all, 1.0);
            std::fill_n(joined.rbegin(), p, 0.0);
            expect_joined(world, {std::vector<double>(own, 1.0), std::vector<double>(all, -1.0)},
                          joined,
                          [&](Elements& e) { return calls::all_gather_v(e.in, e.out, counts); });
            expect_joined(world, {std::vector<double>(all, 1.0), std::vector<double>(own, -1.0)},
                          std::vector<double>(own, others), [&](Elements& e) {
                            return calls::reduce_scatter_v(e.in, e.out, counts, sum);
                          });
            expect_joined(world, {{}, ones}, ones,
                          [](Elements& e) { return calls::broadcast(Data(e.out), 0); });
            world.barrier();
          },
          options);
    }
  }
}

TEST_CASE("what a description cannot tell is refused") {
  on_ranks(2, [](Communicator& world) {
    const std::vector<double> in(2);
    std::vector<double> out(4);
    std::vector<std::int64_t> words;
    describe(calls::gather(in, Data(out), 0), words);
    try {
      Joined(world, words);
      FAIL("expected an error");
    } catch (const Error& error) {
      CHECK(error.code == ErrorCode::unsupported);
      CHECK(std::string(error.what()) ==
            "gather: expected a collective whose counts every rank knows, to take part in it after "
            "a failure");
    }
  });
}
