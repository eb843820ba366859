#include "transformer/block.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "compare.hpp"
#include "equivalence.hpp"
#include "support/counting.hpp"
#include "support/ranks.hpp"
#include "support/sanitizer.hpp"
#include "transformer/training/step.hpp"

using namespace baton;
using namespace baton::transformer;
using namespace support;

namespace {

constexpr double exact = 1e-12, single = 1e-5;

BlockConfig small() {
  BlockConfig config;
  config.heads = 4, config.d_model = 8, config.d_ff = 12;
  config.attention_bias = true;
  return config;
}

/// Ranks in a row along one axis.
BlockCase along(Axis axis, int ranks, bool sequence_parallel = false) {
  BlockCase c{small(), 2, 8};
  c.config.activation = Activation::gelu;
  (axis == Axis::dp ? c.dp : axis == Axis::tp ? c.tp : c.sp) = ranks;
  c.sequence_parallel = sequence_parallel;
  return c;
}

}  // namespace

TEST_CASE("every way to cut a block gives what the whole block gives") {
  for (const int ranks : {1, 2, 3, 4, 8}) {
    if (under_sanitizer && ranks == 8) continue;
    for (const BlockCase& c : cases_for(ranks)) {
      CAPTURE(text(c));
      on_ranks(ranks, [&](Communicator& world) {
        CHECK(largest(differences<double>(world, c)) <= exact);
        CHECK(largest(differences<float>(world, c)) <= single);
      });
    }
  }
}

TEST_CASE("the same on ranks whose messages come late") {
  ThreadOptions late;
  late.seed = 5;
  BlockCase c = along(Axis::tp, 2);
  c.sp = 2;
  on_ranks(
      4, [&](Communicator& world) { CHECK(largest(differences<double>(world, c)) <= exact); },
      test_options(), late);
}

TEST_CASE("an exchange that is left out is noticed") {
  using Form = TransformerBlock<double>::Form;
  struct Omission {
    BlockCase at;
    std::vector<std::string> wrong;  // that must be
    Rewire<double> rewire;
  };
  const BlockCase tp = along(Axis::tp, 2), sequence = along(Axis::tp, 2, true);
  const std::vector<Omission> omissions{
      {tp,
       {"y", "dx", "block.fc2"},
       [](Form& f) { f.attention.leave.forward_op = Operator::identity; }},
      {tp, {"y"}, [](Form& f) { f.feed_forward.leave.forward_op = Operator::identity; }},
      {tp,
       {"dx", "block.norm1_weight", "block.norm1_bias"},
       [](Form& f) { f.attention.enter.backward_op = Operator::identity; }},
      {tp,
       {"dx", "block.norm2_weight", "block.norm2_bias", "block.q_proj", "block.o_proj"},
       [](Form& f) { f.feed_forward.enter.backward_op = Operator::identity; }},
      {sequence, {"y", "dx"}, [](Form& f) { f.attention.leave.forward_op = Operator::split; }},
      {sequence,
       {"dx", "block.norm2_bias"},
       [](Form& f) { f.feed_forward.enter.backward_op = Operator::split; }},
  };
  for (std::size_t o = 0; o < omissions.size(); ++o) {
    CAPTURE(o);
    on_ranks(2, [&](Communicator& world) {
      const Differences found = differences<double>(world, omissions[o].at, omissions[o].rewire);
      for (const std::string& name : omissions[o].wrong) {
        CAPTURE(name);
        CHECK(found.at(name) > 1e-3);
      }
    });
  }
}

TEST_CASE("gradients that are not summed are noticed, every one that is partial") {
  for (const BlockCase& c : {along(Axis::dp, 2), along(Axis::sp, 2), along(Axis::tp, 2, true)}) {
    CAPTURE(text(c));
    on_ranks(2, [&](Communicator& world) {
      const Differences found = differences<double>(world, c, {}, false);
      for (const auto& one : found) {
        const auto& name = one.first;
        const double difference = one.second;
        CAPTURE(name);
        const bool replicated = name.find("norm") != std::string::npos ||
                                name == "block.fc2_bias" || name == "block.o_proj_bias";
        // That of k_proj_bias is 0 in all, but not over some positions.
        const bool nothing =
            name == "y" || name == "dx" || (name == "block.k_proj_bias" && c.sp == 1);
        const bool partial = !nothing && (c.tp == 1 || replicated);
        CHECK((difference > 1e-3) == partial);
      }
    });
  }
}

TEST_CASE("gradients are those of finite differences") {
  BlockConfig config = small();
  config.kv_heads = 2;
  for (const bool causal : {false, true}) {
    config.causal = causal;
    config.activation = Activation::gelu;
    config.hidden_dropout = 0.25, config.attention_dropout = 0.25;
    TransformerBlock<double> block(config, {3});
    Array<double> x({2, 3, config.d_model}), dy(x.shape());
    fill_normal(x.view(), Random{1}, 1);
    fill_normal(dy.view(), Random{2}, 1);
    const auto loss = [&] {
      Context context;
      context.keeps = false;
      return weighted(block.forward(x, context), dy);
    };
    Context context;
    block.forward(x, context);
    const Array<double> dx = block.backward(dy, context);
    CHECK(context.kept() == 0);
    CHECK(difference(dx, finite_differences(x, loss)) <= 1e-7);
    for (Param<double>* param : block.params()) {
      CAPTURE(param->name);
      CHECK(difference(param->grad, finite_differences(param->value, loss)) <= 1e-7);
    }
  }
}

TEST_CASE("weights' gradients are computed while the input's is being summed") {
  on_ranks(2, [called = std::make_shared<std::atomic<int>>(0)](Communicator& world) {
    const Mesh mesh(world, {{Axis::tp, 2}});
    TransformerBlock<float> block(small(), {1});
    block.parallelize(mesh);
    Array<float> x({2, 4, 8});
    Context context;
    block.forward_parallel(x, context);
    context.meanwhile = [&] { ++*called; };
    // One rank takes part in the sum only when the other computes on.
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (world.rank() == 1 && *called == 0 && std::chrono::steady_clock::now() < end)
      std::this_thread::yield();
    CHECK((world.rank() == 0 || *called > 0));
    block.backward_parallel(x, context);
  });
}

TEST_CASE("while a weight's gradient is computed, messages advance, and what the caller has") {
  for (const Axis axis : {Axis::tp, Axis::sp}) {
    on_ranks(2, [axis](Communicator& world) {
      const Mesh mesh(world, {{axis, 2}});
      TransformerBlock<float> block(small(), {1});
      block.parallelize(mesh);
      Array<float> x({2, 4, 8});
      Context context;
      block.forward_parallel(x, context);
      int called = 0, before = 0, weights = 0;
      double exchanged = 0;
      context.meanwhile = [&] { ++called; };
      context.completed = [&](const ParamInfo& param) {
        // Between its gradient and that before it nothing is started, and nothing waited for.
        for (const char* const name : {"k_proj", "v_proj", "fc1"}) {
          const std::string whole = std::string("block.") + name;
          if (param.name != whole && param.name != whole + "_shard") continue;
          CAPTURE(param.name);
          ++weights;
          CHECK(called > before);
          // By tensor parallelism the input's gradient is being summed, by Ulysses nothing is sent.
          CHECK((seconds_in_exchanges() > exchanged) == (axis == Axis::tp));
        }
        before = called, exchanged = seconds_in_exchanges();
      };
      block.backward_parallel(x, context);
      CHECK(weights == 3);
    });
  }
}

TEST_CASE("a block that nobody cut sums its gradients over samples") {
  on_ranks(2, [](Communicator& world) {
    const Mesh mesh(world, {{Axis::dp, 2}});
    TransformerBlock<double> block(small(), {1}), expected(small(), {1});
    const auto batch = create_batch<double>(3, {3, 4, 8}, {3, 4, 8});
    Sgd<double> sgd(block.params(), 0.1), its_sgd(expected.params(), 0.1);
    for (int step = 0; step < 3; ++step) {
      const double loss = dp_step(block, batch, sgd, mesh).loss;
      CHECK(loss == doctest::Approx(reference_step(expected, batch, its_sgd).loss).epsilon(exact));
    }
  });
}

TEST_CASE("what does not fit is refused in a sentence, on every rank, and nothing is sent") {
  const auto refused = [](int ranks, const std::vector<std::pair<Axis, int>>& axes,
                          const BlockConfig& config, const std::vector<std::string>& words) {
    run_threads(ranks, [&](std::unique_ptr<Transport> transport) {
      Traffic sent;
      Communicator world(std::make_unique<CountingTransport>(std::move(transport), sent),
                         test_options());
      const Mesh mesh(world, axes);
      TransformerBlock<float> block(config, {});
      const Traffic before = sent;
      const Error error = error_of([&] { block.parallelize(mesh); });
      CHECK(sent == before);
      CHECK(error.code == ErrorCode::invalid_argument);
      CAPTURE(error.what());
      CHECK(holds(error.what(), words));
    });
  };
  BlockConfig config = small();
  refused(3, {{Axis::tp, 3}}, config, {"block: heads", "multiple of 3", "found 4"});
  refused(3, {{Axis::sp, 3}}, config, {"block: heads", "multiple of 3", "found 4"});
  config.d_ff = 13;
  refused(2, {{Axis::tp, 2}}, config, {"block: d_ff", "multiple of 2", "found 13"});
  config = small();
  config.kv_heads = 1;
  refused(2, {{Axis::tp, 2}}, config, {"block: kv_heads", "multiple of 2", "found 1"});
  config.heads = 6, config.d_model = 12, config.kv_heads = 3;
  refused(2, {{Axis::sp, 2}}, config, {"axis sp", "multiple of 3", "found 2"});

  for (auto change :
       {+[](BlockConfig& c) { c.heads = 3; }, +[](BlockConfig& c) { c.kv_heads = 3; },
        +[](BlockConfig& c) { c.d_ff = 0; }, +[](BlockConfig& c) { c.hidden_dropout = 1; }}) {
    BlockConfig wrong = small();
    change(wrong);
    CHECK(holds(error_of([&] { TransformerBlock<float>(wrong, {}); }).what(),
                {"block", "expected", "found"}));
  }

  TransformerBlock<float> block(small(), {});
  Context context;
  CHECK(holds(error_of([&] {
                block.forward_tensor_parallel(Array<float>({1, 2, 8}), context);
              }).what(),
              {"forward_tensor_parallel", "expected shards, found none"}));
  CHECK(holds(error_of([&] {
                block.forward(Array<float>({2, 8}), context);
              }).what(),
              {"input", "[*, *, 8]", "[2, 8]"}));
  CHECK(holds(error_of([&] {
                block.backward(Array<float>({1, 2, 8}), context);
              }).what(),
              {"expected what forward kept"}));
  block.forward(Array<float>({1, 2, 8}), context);
  CHECK(holds(error_of([&] {
                block.backward(Array<float>({1, 3, 8}), context);
              }).what(),
              {"gradient of the output", "[1, 2, 8]", "[1, 3, 8]"}));
}

TEST_CASE("the forms by their names") {
  const BlockConfig config = small();
  const auto x = random_array<double>({2, 4, 8}, 1), dy = random_array<double>({2, 4, 8}, 2);
  TransformerBlock<double> whole(config, {9});
  Context its;
  const Array<double> y = whole.forward(x, its), dx = whole.backward(dy, its);
  for (const int ranks : {2, 4}) {
    on_ranks(ranks, [&](Communicator& world) {
      const auto own = [&](const Array<double>& a) {
        return part_along<double>(a, 1, world.rank(), ranks);
      };
      Context context;
      {
        const Mesh mesh(world, {{Axis::tp, ranks}});
        TransformerBlock<double> block(config, {9});
        block.init_tensor_parallel_shards(mesh);
        CHECK(block.q_proj_shard.value.shape() == Shape{8 / ranks, 8});
        CHECK(block.o_proj_shard.value.shape() == Shape{8, 8 / ranks});
        CHECK(block.fc1_bias_shard.value.shape() == Shape{12 / ranks});
        CHECK(block.fc2_shard.value.shape() == Shape{8, 12 / ranks});
        CHECK(difference(block.forward_tensor_parallel(x, context), y) <= exact);
        CHECK(difference(block.backward_tensor_parallel(dy, context), dx) <= exact);
        CHECK(difference(whole_grad(block.q_proj_shard, mesh), whole.q_proj.grad) <= exact);
        CHECK(difference(block.norm1_weight.grad, whole.norm1_weight.grad) <= exact);
      }
      const Mesh mesh(world, {{Axis::sp, ranks}});
      TransformerBlock<double> block(config, {9});
      block.parallelize(mesh);
      CHECK(difference(block.forward_ulysses(own(x), context), own(y)) <= exact);
      CHECK(difference(block.backward_ulysses(own(dy), context), own(dx)) <= exact);
      sync_grads(block.params(), mesh);
      CHECK(difference(block.q_proj.grad, whole.q_proj.grad) <= exact);
    });
  }
}

TEST_CASE("a form by its name is refused where more is cut, and nothing is sent") {
  const auto refused = [](const std::vector<std::pair<Axis, int>>& axes, bool sequence_parallel,
                          const std::vector<std::string>& words) {
    run_threads(4, [&](std::unique_ptr<Transport> transport) {
      Traffic sent;
      Communicator world(std::make_unique<CountingTransport>(std::move(transport), sent),
                         test_options());
      const Mesh mesh(world, axes);
      TransformerBlock<float> block(small(), {});
      block.parallelize(mesh, sequence_parallel);
      const Traffic before = sent;
      Context context;
      Array<float> x({1, 4, 8});
      const Error error = error_of([&] {
        if (sequence_parallel || mesh.size(Axis::tp) == 4) {
          block.forward_ulysses(x, context);
        } else {
          block.forward_tensor_parallel(x, context);
        }
      });
      CAPTURE(error.what());
      CHECK(holds(error.what(), words));
      CHECK(sent == before);
    });
  };
  refused({{Axis::sp, 2}, {Axis::tp, 2}}, false,
          {"forward_tensor_parallel", "along axis tp alone", "found 2 ranks of axis sp"});
  refused({{Axis::tp, 4}}, false,
          {"forward_ulysses", "along axis sp alone", "found 4 ranks of axis tp"});
  refused({{Axis::sp, 2}, {Axis::tp, 2}}, true,
          {"forward_ulysses", "2 ranks of axis tp and sequence parallelism"});
}
