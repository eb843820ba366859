#include "transformer/linear_layers.hpp"

#include <doctest/doctest.h>

#include "transformer/training/batch.hpp"
#include "worlds.hpp"

using namespace baton;
using namespace baton::transformer;
using namespace support;

namespace {

const Random seed{7};

/// What a layer gives and what its backward gives for one x and dy.
template <class T>
struct Passed {
  Array<T> y, dx;
};
template <class T>
Passed<T> pass(Module<T>& layer, const Array<T>& x, const Array<T>& dy) {
  Context context;
  const Array<T> y = layer.forward(x, context);
  const Array<T> dx = layer.backward(dy, context);
  CHECK(context.kept() == 0);
  return {y, dx};
}

/// x [2, 5, in] and dy [2, 5, out], and a whole layer that has had both.
template <class T>
struct Reference {
  Reference(std::int64_t in, std::int64_t out, bool with_bias)
      : batch(create_batch<T>(3, {2, 5, in}, {2, 5, out})),
        layer("fc", in, out, with_bias, seed),
        passed(pass<T>(layer, batch.x, batch.target)) {}
  Batch<T> batch;
  Linear<T> layer;
  Passed<T> passed;
};

template <class T>
Array<T> own(const Array<T>& whole, const Mesh& mesh) {
  return part_of<T>(whole, {whole.shape().rank() - 1, Axis::tp}, mesh);
}

template <class T, class Layer>
void check_params(Layer& layer, const Linear<T>& whole, const Mesh& mesh) {
  CHECK(equal(layer.weight.value, part_of<T>(whole.weight.value, layer.weight.placement, mesh), 0));
  CHECK(equal(layer.weight.grad, part_of<T>(whole.weight.grad, layer.weight.placement, mesh)));
  CHECK(equal(whole_grad(layer.weight, mesh), whole.weight.grad));
  CHECK(layer.bias.empty() == whole.bias.empty());
  if (!whole.bias.empty()) {
    CHECK(equal(whole_value(layer.bias, mesh), whole.bias.value, 0));
    CHECK(equal(whole_grad(layer.bias, mesh), whole.bias.grad));
    CHECK_FALSE(layer.bias.decays);
  }
  const Params<T> all = layer.params();
  CHECK(all.size() == (whole.bias.empty() ? 1u : 2u));
  for (const Param<T>* param : all) CHECK(param->partial == (Axis::dp | Axis::sp));
}

}  // namespace

TEST_CASE("Linear: gradients are what differences of its output say") {
  Reference<double> r(3, 4, true);
  // The sum of y · dy, by a parameter or an input.
  const auto value = [&] {
    Context context;
    context.keeps = false;
    const Array<double> y = r.layer.forward(r.batch.x, context);
    double sum = 0;
    for (std::int64_t i = 0; i < y.size(); ++i) sum += y.data()[i] * r.batch.target.data()[i];
    return sum;
  };
  const auto check = [&](Array<double>& of, const Array<double>& gradient) {
    for (std::int64_t i = 0; i < of.size(); ++i) {
      const double was = of.data()[i], step = 1e-3;
      of.data()[i] = was + step;
      const double above = value();
      of.data()[i] = was - step;
      const double below = value();
      of.data()[i] = was;
      CHECK((above - below) / (2 * step) == doctest::Approx(gradient.data()[i]).epsilon(1e-9));
    }
  };
  check(r.layer.weight.value, r.layer.weight.grad);
  check(r.layer.bias.value, r.layer.bias.grad);
  check(r.batch.x, r.passed.dx);
}

TEST_CASE("Linear: weights lie within 1/sqrt(in), and differ between names") {
  const Linear<double> a("a", 16, 50, true, seed), b("b", 16, 50, true, seed);
  double largest = 0;
  for (const double w : a.weight.value.span()) largest = std::max(largest, std::abs(w));
  CHECK(largest <= 0.25);
  CHECK(largest > 0.24);
  CHECK_FALSE(equal(a.weight.value, b.weight.value, 0.1));
  CHECK(a.weight.name == "a.weight");
  CHECK(a.bias.name == "a.bias");
}

TEST_CASE_TEMPLATE("ColumnParallelLinear: output, input gradient and gradients of Linear", T, float,
                   double) {
  on_worlds([](Communicator& world) {
    const Mesh mesh(world, {{Axis::tp, world.size()}});
    for (const bool with_bias : {false, true}) {
      Reference<T> r(7, 6 * world.size(), with_bias);
      const Array<T> part = own(r.batch.target, mesh);
      ColumnParallelLinear<T> cut("fc", 7, 6 * world.size(), with_bias, seed, mesh, false);
      const Passed<T> of_part = pass<T>(cut, r.batch.x, part);
      CHECK(equal(of_part.y, own(r.passed.y, mesh)));
      CHECK(equal(of_part.dx, r.passed.dx));
      check_params<T>(cut, r.layer, mesh);

      ColumnParallelLinear<T> gathered(r.layer, mesh, true);
      const Passed<T> of_whole = pass<T>(gathered, r.batch.x, r.batch.target);
      CHECK(equal(of_whole.y, r.passed.y));
      CHECK(equal(of_whole.dx, r.passed.dx));
      check_params<T>(gathered, r.layer, mesh);
    }
  });
}

TEST_CASE_TEMPLATE("RowParallelLinear: output, input gradient and gradients of Linear", T, float,
                   double) {
  on_worlds([](Communicator& world) {
    const Mesh mesh(world, {{Axis::tp, world.size()}});
    for (const bool with_bias : {false, true}) {
      Reference<T> r(6 * world.size(), 7, with_bias);
      RowParallelLinear<T> cut("fc", 6 * world.size(), 7, with_bias, seed, mesh, true);
      const Passed<T> of_part = pass<T>(cut, own(r.batch.x, mesh), r.batch.target);
      CHECK(equal(of_part.y, r.passed.y));
      CHECK(equal(of_part.dx, own(r.passed.dx, mesh)));
      check_params<T>(cut, r.layer, mesh);

      RowParallelLinear<T> splitting(r.layer, mesh, false);
      const Passed<T> of_whole = pass<T>(splitting, r.batch.x, r.batch.target);
      CHECK(equal(of_whole.y, r.passed.y));
      CHECK(equal(of_whole.dx, r.passed.dx));
      check_params<T>(splitting, r.layer, mesh);
    }
  });
}

TEST_CASE("BroadcastParallel and GatherParallel: an operator and its derivative") {
  on_worlds([](Communicator& world) {
    const Mesh mesh(world, {{Axis::tp, world.size()}});
    const int ranks = world.size();
    const Array<double> x = create_batch<double>(1, {3, 2}, {}).x;
    BroadcastParallel<double> broadcast(mesh);
    const Passed<double> through = pass<double>(broadcast, x, x);
    CHECK(equal(through.y, x, 0));
    Array<double> sum = x.copy();
    for (double& element : sum.span()) element *= ranks;
    CHECK(equal(through.dx, sum, 1e-15));

    const Array<double> whole = create_batch<double>(2, {3, 2 * ranks}, {}).x;
    GatherParallel<double> gather(mesh);
    const Passed<double> joined = pass<double>(gather, own(whole, mesh), whole);
    CHECK(equal(joined.y, whole, 0));
    CHECK(equal(joined.dx, own(whole, mesh), 0));
  });
}

TEST_CASE("backward computes while the input gradient's all-reduce is under way") {
  on_worlds([](Communicator& world) {
    const Mesh mesh(world, {{Axis::tp, world.size()}});
    Reference<float> r(64, 32 * world.size(), false);
    ColumnParallelLinear<float> cut(r.layer, mesh, true);
    Context context;
    int called = 0, completed = 0;
    context.meanwhile = [&] { ++called; };
    context.completed = [&](const ParamInfo& param) {
      ++completed;
      CHECK(param.name == "fc.weight");
    };
    cut.forward(r.batch.x, context);
    cut.backward(r.batch.target, context);
    CHECK(called > 0);
    CHECK(completed == 1);
  });
}

TEST_CASE("without its all-reduce, a parallel layer is not what Linear is") {
  on_worlds([](Communicator& world) {
    if (world.size() == 1) return;
    const Mesh mesh(world, {{Axis::tp, world.size()}});
    const std::int64_t inner = 6 * world.size();
    // Layers with this rank's part of a weight that communicate nothing.
    Reference<double> column(7, inner, false), row(inner, 7, false);
    Linear<double> alone("fc", 7, 6, false, seed), other("fc", 6, 7, false, seed);
    alone.weight.value = part_of<double>(column.layer.weight.value, {0, Axis::tp}, mesh);
    other.weight.value = part_of<double>(row.layer.weight.value, {1, Axis::tp}, mesh);
    const auto of_column = pass<double>(alone, column.batch.x, own(column.batch.target, mesh));
    CHECK(equal(of_column.y, own(column.passed.y, mesh)));
    CHECK_FALSE(equal(of_column.dx, column.passed.dx));
    const auto of_row = pass<double>(other, own(row.batch.x, mesh), row.batch.target);
    CHECK_FALSE(equal(of_row.y, row.passed.y));
  });
}

TEST_CASE("what does not fit is one sentence on every rank") {
  on_worlds([](Communicator& world) {
    const Mesh mesh(world, {{Axis::tp, world.size()}});
    Linear<float> layer("fc", 3, 4, false, seed);
    Context context;
    CHECK(holds(error_of([&] {
                  layer.forward(Array<float>({2, 5}), context);
                }).what(),
                {"fc.weight: input: expected shape [*, 3], found [2, 5]"}));
    if (world.size() == 1) return;
    const std::int64_t odd = world.size() + 1;
    const auto error =
        error_of([&] { ColumnParallelLinear<float>("fc", 3, odd, true, seed, mesh, false); });
    CHECK(holds(error.what(), {"fc.weight: outputs", "multiple of", std::to_string(world.size()),
                               "tp", std::to_string(odd)}));
    const Linear<float> wide("fc", odd, 4, false, seed);
    CHECK(holds(error_of([&] { RowParallelLinear<float>(wide, mesh, true); }).what(),
                {"fc.weight: inputs", std::to_string(odd)}));
  });
}

TEST_CASE("time spent with exchanges is counted, and no other") {
  on_worlds([](Communicator& world) {
    const Mesh mesh(world, {{Axis::tp, world.size()}});
    ColumnParallelLinear<float> layer("fc", 5, 2 * world.size(), false, seed, mesh, false);
    const double before = seconds_in_exchanges();
    Context context;
    const Array<float> y = layer.forward(Array<float>({3, 5}), context);
    CHECK(seconds_in_exchanges() == before);  // nothing is sent
    layer.backward(y, context);
    CHECK((seconds_in_exchanges() > before) == (world.size() > 1));
  });
}
