#include "transformer/mesh.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <numeric>

#include "support/ranks.hpp"
#include "transformer/param.hpp"

using namespace baton;
using namespace baton::transformer;
using namespace support;

TEST_CASE("ranks of a mesh know their place along every axis") {
  on_ranks(8, [](Communicator& world) {
    const Mesh mesh(world, {{Axis::dp, 2}, {Axis::sp, 2}, {Axis::tp, 2}});
    CHECK(mesh.rank(Axis::tp) == world.rank() % 2);
    CHECK(mesh.rank(Axis::sp) == world.rank() / 2 % 2);
    CHECK(mesh.rank(Axis::dp) == world.rank() / 4);
    CHECK(mesh.size(Axis::dp | Axis::tp) == 4);
    CHECK(mesh.along(Axis::dp | Axis::tp)->name() ==
          "dp x tp of sp " + std::to_string(mesh.rank(Axis::sp)));
    CHECK(mesh.along(Axis::dp | Axis::tp | Axis::sp)->name() == "dp x tp x sp");
    for (unsigned bits = 1; bits < 8; ++bits) {
      Axes axes;
      for (const Axis axis : {Axis::dp, Axis::tp, Axis::sp})
        if ((bits >> static_cast<unsigned>(axis) & 1u) != 0) axes = axes | axis;
      // The sum of the world's ranks along these axes, worked out from their places.
      std::int64_t expected = 0;
      for (int r = 0; r < 8; ++r) {
        const int place[] = {r / 4, r % 2, r / 2 % 2};  // dp, tp, sp
        bool along = true;
        for (const Axis axis : {Axis::dp, Axis::tp, Axis::sp})
          along =
              along && (axes.has(axis) || place[static_cast<std::size_t>(axis)] == mesh.rank(axis));
        if (along) expected += r;
      }
      std::vector<std::int64_t> found{world.rank()};
      REQUIRE(mesh.along(axes) != nullptr);
      mesh.along(axes)->all_reduce(found, sum);
      CHECK(found[0] == expected);
    }
  });
}

TEST_CASE("ranks of four axes differ in layers, too") {
  on_ranks(16, [](Communicator& world) {
    const Mesh mesh(world, {{Axis::pp, 2}, {Axis::dp, 2}, {Axis::sp, 2}, {Axis::tp, 2}});
    CHECK(mesh.rank(Axis::pp) == world.rank() / 8);
    std::vector<std::int64_t> found{world.rank()};
    mesh.along(Axis::pp)->all_reduce(found, sum);
    CHECK(found[0] == 2 * (world.rank() % 8) + 8);
    found = {1};
    mesh.along(Axis::dp | Axis::tp | Axis::sp | Axis::pp)->all_reduce(found, sum);
    CHECK(found[0] == 16);
  });
  CHECK(name(Axis::pp) == "pp");
}

TEST_CASE("axes of one rank have no communicator, and change no other") {
  on_ranks(3, [](Communicator& world) {
    const Mesh mesh(world, {{Axis::dp, 1}, {Axis::tp, 3}});
    CHECK(mesh.along(Axis::dp) == nullptr);
    CHECK(mesh.along(Axis::sp) == nullptr);
    CHECK(mesh.along(Axis::dp | Axis::tp) == mesh.along(Axis::tp));
  });
  CHECK(Mesh().along(Axis::tp) == nullptr);
  CHECK(Mesh().size(Axis::dp | Axis::tp | Axis::sp) == 1);
}

TEST_CASE("sizes that do not multiply to the ranks are refused on every rank") {
  on_ranks(4, [](Communicator& world) {
    CHECK(holds(error_of([&] {
                  Mesh(world, {{Axis::dp, 3}, {Axis::tp, 2}});
                }).what(),
                {"multiply to 4 ranks", "dp 3 x tp 2 = 6"}));
    CHECK(holds(error_of([&] {
                  Mesh(world, {{Axis::tp, 2}, {Axis::tp, 2}});
                }).what(),
                {"each axis once", "tp 2 x tp 2"}));
    CHECK(holds(error_of([&] { Mesh(world, {{Axis::tp, 0}}); }).what(), {"at least 1", "tp 0"}));
    world.barrier();
  });
}

TEST_CASE("gradients are summed over the axes along which they are partial, and no others") {
  on_ranks(4, [](Communicator& world) {
    const Mesh mesh(world, {{Axis::dp, 2}, {Axis::tp, 2}});
    const int dp = mesh.rank(Axis::dp), tp = mesh.rank(Axis::tp);
    const auto make = [&](const char* name, std::int64_t n, Axes partial) {
      Param<double> param(name, Array<double>({n}));
      param.partial = partial;
      for (std::int64_t i = 0; i < n; ++i) param.grad.data()[i] = 1 + 10 * dp + 100 * tp;
      return param;
    };
    for (const std::int64_t bucket : {1, 64, 1 << 20}) {
      auto none = make("none", 3, {}), over_dp = make("dp", 5, Axis::dp),
           over_tp = make("tp", 1, Axis::tp), both = make("both", 17, Axis::dp | Axis::tp),
           sp = make("sp", 2, Axis::sp), again = make("again", 9, Axis::dp);
      sync_grads<double>({&none, &over_dp, &over_tp, &both, &sp, &again}, mesh, bucket);
      CHECK(none.grad.data()[2] == 1 + 10 * dp + 100 * tp);
      CHECK(sp.grad.data()[1] == 1 + 10 * dp + 100 * tp);
      CHECK(over_dp.grad.data()[4] == 2 + 10 + 200 * tp);
      CHECK(again.grad.data()[8] == 2 + 10 + 200 * tp);
      CHECK(over_tp.grad.data()[0] == 2 + 20 * dp + 100);
      CHECK(both.grad.data()[16] == 4 + 20 + 200);
    }
  });
}

TEST_CASE("the norm of all gradients has every stage, and a copy once") {
  on_ranks(4, [](Communicator& world) {
    const Mesh mesh(world, {{Axis::pp, 2}, {Axis::tp, 2}});
    const int stage = mesh.rank(Axis::pp), tp = mesh.rank(Axis::tp);
    Param<double> part("part", Array<double>({2}), {0, Axis::tp});
    part.grad.data()[0] = 1 + stage, part.grad.data()[1] = 3 + tp;
    Param<double> table("table", Array<double>({1}));
    table.grad.data()[0] = 7;
    table.copy = stage == 1;
    // part: 1, 3, 1, 4 on the first stage, 2, 3, 2, 4 on the second.
    const double norm = std::sqrt(1 + 9 + 1 + 16 + 4 + 9 + 4 + 16 + 49);
    CHECK(clip_gradients<double>({&part, &table}, mesh, 100) == doctest::Approx(norm));
    CHECK(clip_gradients<double>({&part, &table}, mesh, norm / 2) == doctest::Approx(norm));
    CHECK(table.grad.data()[0] == doctest::Approx(3.5));  // of a copy, too
  });
}

TEST_CASE("buckets start when their gradients are complete") {
  on_ranks(2, [](Communicator& world) {
    const Mesh mesh(world, {{Axis::dp, 2}});
    std::vector<Param<float>> params;
    Params<float> all;
    for (int p = 0; p < 4; ++p) {
      params.emplace_back("p" + std::to_string(p), Array<float>({10}));
      params.back().partial = Axis::dp;
    }
    for (auto& param : params) all.push_back(&param);
    GradientBuckets<float> buckets(all, mesh, 80);  // two each
    for (int step = 0; step < 2; ++step) {
      for (auto& param : params) {
        std::fill_n(param.grad.data(), 10, 1.0f);
        buckets.ready(param);
        buckets.progress();
      }
      buckets.finish();
      for (auto& param : params) CHECK(param.grad.data()[9] == 2);
    }
    for (int p = 0; p < 2; ++p) {  // before its bucket is full, and after
      buckets.ready(params[0]);
      if (p == 1) buckets.ready(params[1]);
      CHECK(holds(error_of([&] { buckets.ready(params[0]); }).what(), {"p0", "reported once"}));
      buckets.finish();
    }
  });
}

TEST_CASE("parts and wholes of parameters") {
  on_ranks(3, [](Communicator& world) {
    const Mesh mesh(world, {{Axis::tp, 3}});
    Array<float> whole({6, 9});
    std::iota(whole.data(), whole.data() + whole.size(), 0.0f);
    for (const int dim : {-1, 0, 1}) {
      const Placement placement{dim, Axis::tp};
      const Param<float> part("w", part_of<float>(whole, placement, mesh), placement);
      if (dim == 0) CHECK(part.value.view()(1, 2) == whole.view()(2 * world.rank() + 1, 2));
      if (dim == 1) CHECK(part.value.view()(1, 2) == whole.view()(1, 3 * world.rank() + 2));
      const Array<float> back = whole_value(part, mesh);
      CHECK(std::equal(back.data(), back.data() + back.size(), whole.data()));
    }
    const Array<float> four({4});
    CHECK(holds(error_of([&] {
                  part_of<float>(four, {0, Axis::tp}, mesh);
                }).what(),
                {"dimension 0", "multiple of 3", "found 4"}));
    world.barrier();
  });
}
