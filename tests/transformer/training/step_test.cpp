#include "transformer/training/step.hpp"
#include "baton/timeline.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "transformer/linear_layers.hpp"
#include "transformer/training/finite.hpp"
#include "transformer/training/replace_to_tp.hpp"
#include "transformer/training/single_step.hpp"
#include "transformer/worlds.hpp"

using namespace baton;
using namespace baton::transformer;
using namespace support;

namespace {

constexpr std::int64_t hidden = 24;  // of which 1, 2, 3, 4 and 8 ranks have equal parts
const Random seed{11};
const std::map<std::string, Cut> megatron = {{"fc1", Cut::column}, {"fc2", Cut::row}};

template <class T>
std::unique_ptr<Optimizer<T>> optimizer_of(Module<T>& model, bool adamw) {
  if (adamw) return std::make_unique<AdamW<T>>(model.params(), AdamWOptions{.learning_rate = 0.01});
  return std::make_unique<Sgd<T>>(model.params(), 0.1);
}

/// Whole weights and gradients of all parameters, compared with those of a whole model.
template <class T>
bool equal_params(Module<T>& model, Module<T>& whole, const Mesh& mesh,
                  double tolerance = rounding<T>) {
  const Params<T> found = model.params(), expected = whole.params();
  REQUIRE(found.size() == expected.size());
  bool all = true;
  for (std::size_t p = 0; p < found.size(); ++p) {
    CHECK(found[p]->name == expected[p]->name);
    const bool weights = equal(whole_value(*found[p], mesh), expected[p]->value, tolerance);
    const bool gradients = equal(whole_grad(*found[p], mesh), expected[p]->grad, tolerance);
    all = all && weights && gradients;
  }
  return all;
}

}  // namespace

TEST_CASE_TEMPLATE("dp_step: the full batch's step, however uneven the slices are", T, float,
                   double) {
  on_worlds([](Communicator& world) {
    const Mesh mesh(world, {{Axis::dp, world.size()}});
    for (const std::int64_t n : {1, 7, 8, 13}) {
      for (const bool adamw : {false, true}) {
        SimpleMLP<T> model(2, hidden, 1, seed), whole(2, hidden, 1, seed);
        const auto optimizer = optimizer_of<T>(model, adamw),
                   reference = optimizer_of<T>(whole, adamw);
        const Batch<T> batch = two_moons<T>(n, 0.1, 3);
        const StepResult<T> step = dp_step(model, batch, *optimizer, mesh);
        const StepResult<T> expected = reference_step(whole, batch, *reference);
        CHECK(equal(step.loss, expected.loss, rounding<T>));
        CHECK(equal(whole_of_shares(step.output, batch.target.shape(), Axis::dp, mesh),
                    expected.output));
        CHECK(equal_params<T>(model, whole, mesh));
      }
    }
  });
}

TEST_CASE("dp_step: one all-reduce of all gradients, and one of the loss") {
  on_worlds([](Communicator& world) {
    if (world.size() == 1) return;
    world.start_recording();
    {
      const Mesh mesh(world, {{Axis::dp, world.size()}});
      SimpleMLP<float> model(2, hidden, 1, seed);
      Sgd<float> sgd(model.params(), 0.1);
      dp_step(model, two_moons<float>(9, 0.1, 3), sgd, mesh);
    }
    const Timeline timeline = world.stop_recording();
    if (world.rank() != 0) return;
    std::vector<std::int64_t> bytes;
    for (const TimedOperation& operation : timeline.operations)
      if (operation.name == "all_reduce") bytes.push_back(operation.bytes);
    std::sort(bytes.begin(), bytes.end());
    CHECK(bytes == std::vector<std::int64_t>{sizeof(double), 3 * hidden * sizeof(float)});
  });
}

TEST_CASE("the checks can fail: gradients not added, slices not weighted") {
  on_worlds([](Communicator& world) {
    if (world.size() == 1) return;
    const Mesh mesh(world, {{Axis::dp, world.size()}});
    const Batch<double> batch = two_moons<double>(2 * world.size() + 1, 0.1, 3);
    SimpleMLP<double> whole(2, hidden, 1, seed);
    Sgd<double> reference(whole.params(), 0.1);
    reference_step(whole, batch, reference);

    SimpleMLP<double> apart(2, hidden, 1, seed);
    for (Param<double>* param : apart.params()) param->partial = {};
    Sgd<double> own(apart.params(), 0.1);
    dp_step(apart, batch, own, mesh);
    CHECK_FALSE(equal_params<double>(apart, whole, mesh));

    SimpleMLP<double> unweighted(2, hidden, 1, seed);
    Sgd<double> plain(unweighted.params(), 0.1);
    Share<double> share = share_of(batch, mesh);
    share.elements = static_cast<double>(share.batch.target.size() * world.size());
    train_step(unweighted, share, plain, mesh);
    CHECK_FALSE(equal_params<double>(unweighted, whole, mesh));
  });
}

TEST_CASE_TEMPLATE("50 steps: the reference's loss at every one", T, float, double) {
  on_worlds([](Communicator& world) {
    const Mesh dp(world, {{Axis::dp, world.size()}}), tp(world, {{Axis::tp, world.size()}});
    const double tolerance = sizeof(T) == 8 ? 1e-12 : 1e-4;
    const Batch<T> batch = two_moons<T>(50, 0.1, 3);
    for (const bool adamw : {false, true}) {
      SimpleMLP<T> whole(2, hidden, 1, seed), shared(2, hidden, 1, seed), cut(2, hidden, 1, seed);
      replace_to_tp<T>(cut, megatron, tp);
      const auto of_whole = optimizer_of<T>(whole, adamw),
                 of_shared = optimizer_of<T>(shared, adamw), of_cut = optimizer_of<T>(cut, adamw);
      double first = 0, last = 0;
      for (int step = 0; step < 50; ++step) {
        last = reference_step(whole, batch, *of_whole).loss;
        if (step == 0) first = last;
        CHECK(equal(dp_step(shared, batch, *of_shared, dp).loss, last, tolerance));
        CHECK(equal(tp_step(cut, batch, *of_cut, tp).loss, last, tolerance));
      }
      CHECK(last < 0.5 * first);
      CHECK(equal_params<T>(shared, whole, dp, 10 * tolerance));
      CHECK(equal_params<T>(cut, whole, tp, 10 * tolerance));
    }
  });
}

TEST_CASE("replace_to_tp: a trained model, by any cuts") {
  using Cuts = std::map<std::string, Cut>;
  on_worlds([](Communicator& world) {
    const Mesh mesh(world, {{Axis::tp, world.size()}});
    const Batch<double> batch = create_batch<double>(2, {5, hidden}, {5, hidden});
    for (const Cuts& cuts : {Cuts{}, megatron, Cuts{{"fc1", Cut::column}}, Cuts{{"fc1", Cut::row}},
                             Cuts{{"fc2", Cut::column}}, Cuts{{"fc2", Cut::row}},
                             Cuts{{"fc1", Cut::row}, {"fc2", Cut::column}},
                             Cuts{{"fc1", Cut::column}, {"fc2", Cut::column}},
                             Cuts{{"fc1", Cut::row}, {"fc2", Cut::row}}}) {
      SimpleMLP<double> model(hidden, hidden, hidden, seed), whole(hidden, hidden, hidden, seed);
      Sgd<double> before(model.params(), 0.1), reference(whole.params(), 0.1);
      for (int step = 0; step < 3; ++step) {
        reference_step(model, batch, before);
        reference_step(whole, batch, reference);
      }
      replace_to_tp(model, cuts, mesh);
      std::int64_t elements = 0;
      for (const Param<double>* param : model.params()) elements += param->value.size();
      const auto parts = static_cast<std::int64_t>(cuts.size());
      CHECK(elements == hidden * hidden * (2 - parts) + hidden * hidden / world.size() * parts);
      Sgd<double> after(model.params(), 0.1);
      for (int step = 0; step < 3; ++step) {
        const StepResult<double> found = tp_step(model, batch, after, mesh);
        const StepResult<double> expected = reference_step(whole, batch, reference);
        CHECK(equal(found.output, expected.output));
        CHECK(equal_params<double>(model, whole, mesh));
      }
    }
  });
}

TEST_CASE("replace_to_tp: a row-parallel layer after another takes a whole input") {
  on_worlds([](Communicator& world) {
    const Mesh mesh(world, {{Axis::tp, world.size()}});
    const auto made = [] {
      Sequential<double> model;
      for (const char* name : {"a", "b", "c"})
        model.add(name, std::make_unique<Linear<double>>(name, hidden, hidden, true, seed));
      return model;
    };
    Sequential<double> model = made(), whole = made();
    replace_to_tp(model, {{"a", Cut::column}, {"b", Cut::row}, {"c", Cut::row}}, mesh);
    Sgd<double> sgd(model.params(), 0.1), reference(whole.params(), 0.1);
    const Batch<double> batch = create_batch<double>(2, {5, hidden}, {5, hidden});
    CHECK(equal(tp_step(model, batch, sgd, mesh).output,
                reference_step(whole, batch, reference).output));
    CHECK(equal_params<double>(model, whole, mesh));
  });
}

TEST_CASE("replace_to_tp: what does not fit leaves the model as it was") {
  on_worlds([](Communicator& world) {
    const Mesh mesh(world, {{Axis::tp, world.size()}});
    SimpleMLP<double> model(2, 4 * world.size(), 1, seed);
    const Array<double> x = two_moons<double>(5, 0.1, 1).x;
    Context context;
    context.keeps = false;
    const Array<double> y = model.forward(x, context);
    const auto refused = [&](const std::map<std::string, Cut>& cuts) {
      return std::string(error_of([&] { replace_to_tp(model, cuts, mesh); }).what());
    };
    CHECK(refused({{"fc1", Cut::column}, {"fc3", Cut::row}}) ==
          "replace_to_tp: expected names of linear layers (fc1, fc2), found \"fc3\"");
    CHECK(holds(refused({{"gelu", Cut::row}}), {"(fc1, fc2)", "\"gelu\""}));
    if (world.size() > 1)
      CHECK(holds(refused({{"fc1", Cut::column}, {"fc2", Cut::column}}),
                  {"fc2.weight: outputs", "found 1"}));
    CHECK(equal(model.forward(x, context), y, 0));
    CHECK(model.params().back()->value.shape() == Shape{4 * world.size(), 2});
  });
}

TEST_CASE("micro-batches: their gradients add up to the single step's") {
  on_worlds([](Communicator& world) {
    const Mesh mesh(world, {{Axis::dp, world.size()}});
    const Batch<double> batch = two_moons<double>(23, 0.1, 3);
    SimpleMLP<double> whole(2, hidden, 1, seed);
    Sgd<double> reference(whole.params(), 0.1);
    const StepResult<double> expected = reference_step(whole, batch, reference);
    for (const int micro_batches : {2, 3, 5, 100}) {
      SimpleMLP<double> model(2, hidden, 1, seed);
      Sgd<double> sgd(model.params(), 0.1);
      const StepResult<double> found =
          train_step(model, share_of(batch, mesh), sgd, mesh, {.micro_batches = micro_batches});
      CHECK(equal(found.loss, expected.loss, 1e-12));
      CHECK(equal(whole_of_shares(found.output, batch.target.shape(), Axis::dp, mesh),
                  expected.output));
      CHECK(equal_params<double>(model, whole, mesh));
    }
  });
}

TEST_CASE_TEMPLATE("single steps: weights of one process", T, float, double) {
  on_worlds([](Communicator& world) {
    const MlpConfig config{3, 2 * world.size(), world.size()};
    const Batch<T> batch = create_batch<T>(6, {9, 3}, {9, world.size()});
    const SingleStep<T> expected = single_step<T>(config, 5, batch, 0.3);
    for (const SingleStep<T>& found :
         {data_parallel_single_step<T>(config, 5, batch, 0.3, world),
          full_column_parallel_single_step<T>(config, 5, batch, 0.3, world)}) {
      CHECK(equal(found.loss, expected.loss, rounding<T>));
      REQUIRE(found.weights.size() == 2);
      for (std::size_t w = 0; w < 2; ++w) {
        CHECK(found.weights[w].name == expected.weights[w].name);
        CHECK(equal(found.weights[w].value, expected.weights[w].value));
      }
    }
    const Array<T> start =
        SimpleMLP<T>(3, 2 * world.size(), world.size(), Random{5}).params()[0]->value;
    CHECK_FALSE(equal(expected.weights[0].value, start));
  });
}

TEST_CASE("a loss that is no finite number: weights stay, and the first place is found") {
  on_worlds([](Communicator& world) {
    const Mesh mesh(world, {{Axis::dp, world.size()}});
    const int last = world.size() - 1;
    const Batch<double> batch = two_moons<double>(9, 0.1, 3);
    const auto found = [&](const Batch<double>& data, const auto& spoil) {
      SimpleMLP<double> model(2, hidden, 1, seed);
      if (world.rank() == last) spoil(model);
      Sgd<double> sgd(model.params(), 0.1);
      const Array<double> before = model.params()[0]->value.copy();
      const Share<double> share = share_of(data, mesh);
      CHECK_FALSE(std::isfinite(train_step(model, share, sgd, mesh).loss));
      for (std::int64_t i = 0; i < before.size(); ++i) {
        const double now = model.params()[0]->value.data()[i];
        CHECK((now == before.data()[i] || std::isnan(now)));
      }
      return first_not_finite(model, share.batch.x, Context(), world);
    };
    const double nan = std::numeric_limits<double>::quiet_NaN(), huge = 1e200;
    const auto weight = [](SimpleMLP<double>& model, std::size_t p) {
      return model.params()[p]->value.data();
    };
    CHECK(found(batch, [&](auto& model) { weight(model, 0)[3] = nan; }) ==
          "the weights fc2.weight");
    CHECK(found(batch, [&](auto& model) { weight(model, 1)[3] = nan; }) ==
          "the weights fc1.weight");
    CHECK(found(batch, [&](auto& model) { weight(model, 0)[0] = huge; }) == "the loss");
    CHECK(found(batch, [&](auto& model) {
            std::fill_n(weight(model, 0), hidden, huge);
            for (int i = 0; i < 2 * hidden; ++i)  // of either sign, whatever the sample is
              weight(model, 1)[i] = i < hidden ? huge : -huge;
          }) == "the output of layer fc2");
    Batch<double> bad = two_moons<double>(9, 0.1, 3);
    bad.x.view()(8, 1) = nan;
    CHECK(found(bad, [](auto&) {}) == "the input");
  });
}

TEST_CASE("gradients that are no finite numbers on one rank: nothing changes on any") {
  enum class Form { dp, tp, fsdp };
  on_worlds([](Communicator& world) {
    for (const Form form : {Form::dp, Form::tp, Form::fsdp}) {
      for (const double largest_norm : {0.0, 1.0}) {
        CAPTURE(static_cast<int>(form));
        CAPTURE(largest_norm);
        const Mesh mesh(world, {{form == Form::tp ? Axis::tp : Axis::dp, world.size()}});
        SimpleMLP<float> model(2, hidden, 1, seed);
        // Of the last hidden unit: its output is 1e15, the model's 1e30, their product no f32.
        model.params()[0]->value.view()(0, hidden - 1) = 1e15f;
        for (const int input : {0, 1}) model.params()[1]->value.view()(hidden - 1, input) = 1e15f;
        if (form == Form::tp) replace_to_tp<float>(model, megatron, mesh);
        std::unique_ptr<DataParallel<float>> replicas;
        if (form == Form::fsdp) {
          replicas = std::make_unique<FullyShardedDataParallel<float>>(model, mesh);
        } else {
          replicas = std::make_unique<DistributedDataParallel<float>>(model, mesh);
        }
        const Params<float> params = replicas->params();
        std::vector<Array<float>> before;
        for (const Param<float>* param : params) before.push_back(param->value.copy());
        AdamW<float> adamw(params);
        const Batch<float> batch = two_moons<float>(9, 0.1, 3);
        const Share<float> share = form == Form::tp ? whole_of(batch) : share_of(batch, mesh);
        StepOptions options;
        options.largest_norm = largest_norm;
        const StepResult<float> step = train_step(model, *replicas, share, adamw, mesh, options);
        CHECK(std::isfinite(step.loss));
        CHECK_FALSE(step.stepped);
        CHECK(adamw.steps() == 0);
        for (std::size_t p = 0; p < params.size(); ++p)
          CHECK(equal(params[p]->value, before[p], 0));
      }
    }
  });
}

#ifndef BATON_TEST_MPI
TEST_CASE("any number of groups of threads train at once") {
  std::vector<std::thread> groups;
  for (const int size : {1, 2, 3, 4}) {
    groups.emplace_back([size] {
      run_threads(size, [](std::unique_ptr<Transport> transport) {
        Communicator world(std::move(transport), test_options());
        std::vector<double> ranks(static_cast<std::size_t>(world.size()));
        const double own = world.rank();
        world.all_gather(std::span(&own, 1), ranks);
        for (std::size_t r = 0; r < ranks.size(); ++r) CHECK(ranks[r] == static_cast<double>(r));
        double sum_of = own, mean = own;
        world.all_reduce(std::span(&sum_of, 1), sum);
        world.all_reduce(std::span(&mean, 1), avg);
        CHECK(mean * world.size() == sum_of);
        const Mesh mesh(world, {{Axis::dp, world.size()}});
        const Batch<double> batch = two_moons<double>(10 * world.size() + 1, 0.1, 3);
        SimpleMLP<double> model(2, hidden, 1, seed), whole(2, hidden, 1, seed);
        Sgd<double> sgd(model.params(), 0.1), reference(whole.params(), 0.1);
        for (int step = 0; step < 5; ++step) {
          dp_step(model, batch, sgd, mesh);
          reference_step(whole, batch, reference);
        }
        CHECK(equal_params<double>(model, whole, mesh));
      });
    });
  }
  for (std::thread& group : groups) group.join();
}
#endif
