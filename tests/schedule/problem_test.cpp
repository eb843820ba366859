#include "baton/schedule/problem.hpp"

#include <doctest/doctest.h>

#include "baton/error.hpp"
#include "support/schedules.hpp"

using namespace baton;
using support::problem;

TEST_CASE("collectives by name") {
  for (int i = 0; i < collective_count; ++i) {
    const auto collective = static_cast<Collective>(i);
    CHECK(collective_named(name(collective)) == collective);
  }
  try {
    collective_named("allreduce");
    FAIL("expected an Error");
  } catch (const Error& error) {
    CHECK(error.code == ErrorCode::invalid_argument);
    CHECK(std::string(error.what()).find("all_reduce, gather") != std::string::npos);
    CHECK(std::string(error.what()).find("found \"allreduce\"") != std::string::npos);
  }
}

TEST_CASE("collectives that gather and scatter have a block per rank in one buffer only") {
  for (int i = 0; i < collective_count; ++i) {
    Problem p;
    p.collective = static_cast<Collective>(i);
    p.size = 3;
    p.count = 5;
    const std::int64_t input = p.input_extent(), output = p.output_extent();
    CAPTURE(name(p.collective));
    CHECK(gathering(p.collective) == (output == 3 * input));
    CHECK(scattering(p.collective) == (input == 3 * output));
  }
}

TEST_CASE("buffers of each collective: at the root, elsewhere, in place") {
  struct Row {
    Collective collective;
    std::int64_t in_root, out_root, in_other, out_other;  // apart
    std::int64_t in_place_in, in_place_out;               // at the root
  };
  using enum Collective;
  for (const Row& row : {Row{broadcast, 0, 5, 0, 5, 0, 5}, Row{reduce, 5, 5, 5, 0, 0, 5},
                         Row{all_reduce, 5, 5, 5, 5, 0, 5}, Row{gather, 5, 15, 5, 0, 0, 15},
                         Row{scatter, 15, 5, 0, 5, 15, 0}, Row{all_gather, 5, 15, 5, 15, 0, 15},
                         Row{reduce_scatter, 15, 5, 15, 5, 15, 0},
                         Row{all_to_all, 15, 15, 15, 15, 0, 15}, Row{scan, 5, 5, 5, 5, 0, 5},
                         Row{exscan, 5, 5, 5, 5, 0, 5}, Row{barrier, 1, 0, 1, 0, 1, 0}}) {
    CAPTURE(std::string(name(row.collective)));
    const Problem root = problem(row.collective, 3, 0, 5), other = problem(row.collective, 3, 2, 5);
    const Problem in_place = problem(row.collective, 3, 0, 5, true);
    CHECK(root.input_extent() == row.in_root);
    CHECK(root.output_extent() == row.out_root);
    CHECK(other.input_extent() == row.in_other);
    CHECK(other.output_extent() == row.out_other);
    CHECK(in_place.input_extent() == row.in_place_in);
    CHECK(in_place.output_extent() == row.in_place_out);
  }
}

TEST_CASE("in place away from the root is no aliasing") {
  using enum Collective;
  for (const Collective c : {reduce, gather, scatter}) {
    CHECK(problem(c, 3, 0, 5, true).aliased());
    CHECK(!problem(c, 3, 1, 5, true).aliased());
  }
  CHECK(problem(broadcast, 3, 1, 5).aliased());
  CHECK(!problem(barrier, 3, 1, 1, true).aliased());
}

TEST_CASE("uneven blocks") {
  const std::int64_t counts[] = {3, 0, 4}, offsets[] = {6, 100, 1};
  const auto packed = Blocks::packed(counts), placed = Blocks::placed(counts, offsets);
  CHECK(packed->offsets == std::vector<std::int64_t>{0, 3, 3});
  CHECK(packed->total() == 7);
  CHECK(packed->extent() == 7);
  CHECK(placed->extent() == 9);  // the empty block does not count
  Problem p = problem(Collective::all_gather, 3, 0, 3);
  p.output_blocks = placed;
  CHECK(p.uneven());
  CHECK(p.output_extent() == 9);
  CHECK(p.block_count(2) == 4);
  CHECK(p.total_count() == 7);
  CHECK(p.at(2).count == 4);
  CHECK(p.at(2).rank == 2);
}

TEST_CASE("chunks: near-equal, the larger first, laid end to end") {
  for (const std::int64_t count : {0, 1, 6, 7, 100}) {
    for (const int chunks : {1, 2, 3, 7, 8}) {
      std::int64_t end = 0;
      for (int i = 0; i < chunks; ++i) {
        CHECK(chunk_offset(count, chunks, i) == end);
        end += chunk_count(count, chunks, i);
        if (i > 0) CHECK(chunk_count(count, chunks, i) <= chunk_count(count, chunks, i - 1));
        CHECK(chunk_count(count, chunks, 0) - chunk_count(count, chunks, i) <= 1);
      }
      CHECK(end == count);
    }
  }
}

TEST_CASE("ceil_log2 is exact") {
  CHECK(ceil_log2(1) == 0);
  CHECK(ceil_log2(2) == 1);
  CHECK(ceil_log2(3) == 2);
  for (int k = 2; k < 62; ++k) {
    const std::int64_t power = std::int64_t{1} << k;
    CHECK(ceil_log2(power - 1) == k);
    CHECK(ceil_log2(power) == k);
    CHECK(ceil_log2(power + 1) == k + 1);
  }
}

TEST_CASE("ranks around the circle") {
  const Problem p = problem(Collective::all_reduce, 5, 3, 1);
  CHECK(p.rank_after(1) == 4);
  CHECK(p.rank_after(2) == 0);
  CHECK(p.rank_before(4) == 4);
  CHECK(p.rank_before(13) == 0);
  CHECK(p.modulo(-1) == 4);
}

TEST_CASE("the registry: names, lists, refusals") {
  Registry registry = Registry::builtin();
  CHECK(registry.of(Collective::broadcast)[0]->name == "linear");
  const Algorithm ring = registry.find(Collective::all_reduce, "ring");
  const auto says = [&](Algorithm algorithm, std::string_view what) {
    try {
      registry.add(std::move(algorithm));
      FAIL_CHECK("expected an Error");
    } catch (const Error& error) {
      CHECK(std::string(error.what()).find(what) != std::string::npos);
    }
  };
  says(ring, "is registered already");
  Algorithm broken = ring;
  broken.name = "";
  says(broken, "has no name");
  broken.name = "new";
  broken.generate = nullptr;
  says(broken, "has no generator");
  broken.generate = ring.generate;
  broken.cost = nullptr;
  says(broken, "has no cost");
  Problem p = problem(Collective::all_reduce, 5, 0, 5);
  CHECK(refusal(ring, p).empty());
  p.commutative = false;
  CHECK(refusal(ring, p).find("rank order") != std::string::npos);
  const Algorithm& neighbors = registry.find(Collective::all_gather, "neighbor_exchange");
  CHECK(refusal(neighbors, problem(Collective::all_gather, 5, 0, 5)).find("found 5") !=
        std::string::npos);
  CHECK(refusal(neighbors, problem(Collective::all_gather, 6, 0, 5)).empty());
}
