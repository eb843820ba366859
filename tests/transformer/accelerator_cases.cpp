#include "accelerator_cases.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <string>

#include "support/ranks.hpp"
#include "support/sanitizer.hpp"
#include "support/temporary_folder.hpp"
#include "transformer/linear_layers.hpp"
#include "transformer/models/language.hpp"
#include "transformer/state/checkpoint.hpp"
#include "transformer/state/gpt2_weights.hpp"
#include "transformer/training/compare.hpp"
#include "transformer/training/step.hpp"
#include "transformer/vocab.hpp"

namespace accelerator_cases {

using namespace baton;
using namespace baton::transformer;
using namespace support;

namespace {

/// Of an array that lies where Arrays do now, and one on the host.
template <class T>
double difference(const Array<T>& found, const Array<T>& expected) {
  const auto here = to_host<T>(found);
  const AcceleratorScope host(nullptr);
  return compare_tensors<T>(here, expected, 0).relative();
}

template <class T>
Array<T> drawn(const Shape& shape, std::string_view name) {
  auto array = Array<T>::uninitialized(shape);
  fill_normal(array.view(), Random{8}.of(name), 1);
  return array;
}

struct Layout {
  std::vector<std::pair<Axis, int>> axes;
  bool sequence_parallel = false;
};

std::vector<Layout> layouts_of(int ranks) {
  if (ranks == 1) return {{}};
  std::vector<Layout> layouts{{{{Axis::dp, ranks}}},
                              {{{Axis::tp, ranks}}},
                              {{{Axis::tp, ranks}}, true},
                              {{{Axis::sp, ranks}}}};
  if (ranks == 4) layouts.push_back({{{Axis::sp, 2}, {Axis::tp, 2}}, true});
  if (under_sanitizer) return {layouts.front(), layouts.back()};
  return layouts;
}

}  // namespace

void on_one_device(int size, const TestDevice& test_device,
                   const std::function<void(Communicator&, const Place&)>& body,
                   std::uint64_t seed) {
  ThreadOptions options;
  options.devices = {test_device.device};
  options.seed = seed;
  Watchdog watchdog(size, std::chrono::seconds(240));
  const auto run = [&](std::unique_ptr<Transport> transport) {
    const int rank = transport->rank();
    try {
      const auto accelerator = test_device.make();
      std::unique_ptr<Transport> host = transport->split(0, rank);
      std::unique_ptr<FusedTransport> groups;
      if (test_device.groups)
        groups = thread_fused_transport(*host, test_device.device, test_options().timeout);
      StreamCommunicator communicator =
          groups ? StreamCommunicator(std::move(host), test_device.device, std::move(groups),
                                      test_options())
                 : StreamCommunicator(std::move(host), test_device.device, test_options());
      Communicator world(std::move(transport), test_options());
      body(world, {accelerator.get(), &communicator});
      accelerator->synchronize();
    } catch (const std::exception& error) {
      FAIL_CHECK("rank " << rank << " of " << size << ": " << std::string(error.what()));
    }
    watchdog.returned(rank);
  };
  run_threads(size, run, options);
}

template <class T>
void blocks(int ranks, const TestDevice& test_device, std::uint64_t seed) {
  for (BlockCase c : cases_for(ranks)) {
    // The derivative of relu jumps where rounding may take an element to the other side.
    if (sizeof(T) < 4) c.config.activation = Activation::gelu;
    CAPTURE(text(c));
    on_one_device(
        ranks, test_device,
        [&](Communicator& world, const Place& place) {
          for (const auto& difference : differences<T>(world, c, {}, true, place)) {
            CAPTURE(difference.first);
            // 0 but for rounding: tensor cores of bf16 take gradients of scores that are rounded,
            // so their sum over the keys is not 0.
            const bool rounding_alone = sizeof(T) == 2 && difference.first == "block.k_proj_bias";
            CHECK(difference.second <= tolerance<T> * (rounding_alone ? 4 : 1));
          }
        },
        seed);
  }
}

template <class T>
void training(int ranks, const TestDevice& test_device) {
  constexpr int steps = 4;
  BlockConfig config;
  config.heads = 8, config.d_model = 32, config.d_ff = 48;
  config.activation = Activation::gelu;
  config.causal = true;
  config.hidden_dropout = 0.1, config.attention_dropout = 0.1;
  const Shape shape{8, 8, config.d_model};
  const auto batch = create_batch<T>(3, shape, shape);
  const auto options = [](int step, int micro_batches) {
    StepOptions options;
    options.micro_batches = micro_batches;
    options.random = Random{17}.of(static_cast<std::uint64_t>(step));
    options.bucket_bytes = 4096;
    return options;
  };
  const auto optimizer = [](bool adam, const Params<T>& params) -> std::unique_ptr<Optimizer<T>> {
    if (!adam) {
      return std::make_unique<Sgd<T>>(
          params, SgdOptions{.learning_rate = 0.4, .momentum = 0.5, .weight_decay = 1e-2});
    }
    // Steps of gradients near zero, which rounding may turn around, stay small.
    return std::make_unique<AdamW<T>>(params, AdamWOptions{.learning_rate = 1e-2, .epsilon = 1e-2});
  };
  for (const bool adam : {false, true}) {
    CAPTURE(adam);
    TransformerBlock<T> reference(config, {5});
    const auto of_reference = optimizer(adam, reference.params());
    std::vector<StepResult<T>> expected;
    for (int step = 0; step < steps; ++step)
      expected.push_back(
          train_step(reference, whole_of(batch), *of_reference, Mesh(), options(step, 1)));
    CHECK(expected.back().loss < 0.99 * expected.front().loss);
    for (const Layout& layout : layouts_of(ranks)) {
      on_one_device(ranks, test_device, [&](Communicator& world, const Place& place) {
        const Mesh mesh = mesh_of(world, place, layout.axes);
        TransformerBlock<T> block(config, {5});
        block.parallelize(mesh, layout.sequence_parallel);
        Module<T>& model = block.parallel();
        move_to(*place.accelerator, model.params());
        const AcceleratorScope scope(place.accelerator);
        const auto own = optimizer(adam, model.params());
        const Batch<T> there{from_host<T>(batch.x), from_host<T>(batch.target)};
        const auto share = share_of(there, mesh, layout.sequence_parallel);
        for (int step = 0; step < steps; ++step) {
          CAPTURE(step);
          const StepResult<T>& result = expected[static_cast<std::size_t>(step)];
          const auto found = train_step(model, share, *own, mesh, options(step, step % 2 + 1));
          CHECK(std::abs(found.loss - result.loss) <= tolerance<T> * result.loss);
          const auto whole = whole_of_shares(found.output, shape, share.others, mesh);
          CHECK(difference(whole, result.output) <= tolerance<T>);
        }
        const Params<T> trained = reference.params(), params = model.params();
        for (std::size_t p = 0; p < params.size(); ++p) {
          CAPTURE(params[p]->name);
          CHECK(difference(whole_value(*params[p], mesh), trained[p]->value) <= tolerance<T>);
        }
      });
    }
  }
}

void masters(const TestDevice& test_device) {
  on_one_device(1, test_device, [](Communicator&, const Place& place) {
    const AcceleratorScope scope(place.accelerator);
    const std::vector<bf16> ones(48, to_bf16(1));
    const View<const bf16> all(ones.data(), {6, 8});
    Param<bf16> w("w", from_host<bf16>(all)), v("v", from_host<bf16>(all));
    w.grad = from_host<bf16>(all), v.grad = from_host<bf16>(all);
    Sgd<bf16> sgd({&w}, 0x1p-10);
    AdamW<bf16> adamw({&v}, {.learning_rate = 0x1p-10, .weight_decay = 0});
    for (int step = 0; step < 256; ++step) {
      sgd.step();
      adamw.step();  // with equal gradients, by its learning rate
    }
    for (const Param<bf16>* param : {&w, &v}) {
      CAPTURE(param->name);
      const auto values = to_host<bf16>(param->value);
      for (const bf16 value : values.span()) CHECK(to_float(value) == 0.75f);
    }
  });
}

template <class T>
void linear_layers(int ranks, const TestDevice& test_device) {
  constexpr std::int64_t in = 24, hidden = 16, out = 8;
  const Random random{6};
  const auto x = drawn<T>({3, 5, in}, "x"), dy = drawn<T>({3, 5, out}, "dy");
  Linear<T> first("first", in, hidden, true, random), second("second", hidden, out, true, random);
  Context context;
  const auto y = second.forward(first.forward(x, context), context);
  const auto dx = first.backward(second.backward(dy, context), context);
  for (const bool whole_between : {false, true}) {
    CAPTURE(whole_between);
    on_one_device(ranks, test_device, [&](Communicator& world, const Place& place) {
      const Mesh mesh = mesh_of(world, place, {{Axis::tp, ranks}});
      const AcceleratorScope scope(place.accelerator);
      ColumnParallelLinear<T> column("first", in, hidden, true, random, mesh, whole_between);
      RowParallelLinear<T> row("second", hidden, out, true, random, mesh, !whole_between);
      Context own;
      CHECK(difference(row.forward(column.forward(from_host<T>(x), own), own), y) <= tolerance<T>);
      CHECK(difference(column.backward(row.backward(from_host<T>(dy), own), own), dx) <=
            tolerance<T>);
      for (const auto& [part, whole] :
           {std::pair(&column.weight, &first.weight), std::pair(&column.bias, &first.bias),
            std::pair(&row.weight, &second.weight), std::pair(&row.bias, &second.bias)}) {
        const std::string& name = part->name;
        CAPTURE(name);
        CHECK(difference(whole_value(*part, mesh), whole->value) == 0);
        CHECK(difference(whole_grad(*part, mesh), whole->grad) <= tolerance<T>);
      }
    });
  }
}

template <class T>
void vocabulary(int ranks, const TestDevice& test_device) {
  constexpr std::int64_t words = 24, d = 6, n = 16;
  Array<std::int32_t> ids({2, n / 2});
  for (std::int64_t i = 0; i < n; ++i)
    ids.data()[i] = static_cast<std::int32_t>(Random{4}.word(static_cast<std::uint64_t>(i)) %
                                              static_cast<std::uint32_t>(words));
  const auto targets = ids.reshaped({n});
  const auto dy = drawn<T>({2, n / 2, d}, "dy"), logits = drawn<T>({n, words}, "logits");
  VocabParallelEmbedding<T> whole(words, d, Mesh(), {7});
  const auto y = whole.forward(ids);
  whole.backward(ids, dy);
  Array<T> gradient(logits.shape());
  const double loss = cross_entropy<T>(logits.view(), targets, n, gradient.view());
  on_one_device(ranks, test_device, [&](Communicator& world, const Place& place) {
    const Mesh mesh = mesh_of(world, place, {{Axis::tp, ranks}});
    const AcceleratorScope scope(place.accelerator);
    VocabParallelEmbedding<T> part(words, d, mesh, {7});
    CHECK(difference(whole_value(part.table, mesh), whole.table.value) == 0);
    CHECK(difference(part.forward(ids), y) <= tolerance<T>);
    part.backward(ids, from_host<T>(dy));
    CHECK(difference(whole_grad(part.table, mesh), whole.table.grad) <= tolerance<T>);

    const auto there = from_host<T>(logits);
    const auto own = part_of<T>(there, {1, Axis::tp}, mesh);
    Array<T> shard(own.shape()), all(there.shape());
    CHECK(std::abs(vocab_parallel_cross_entropy<T>(own.view(), targets, n, mesh.group(Axis::tp),
                                                   shard.view()) -
                   loss) <= tolerance<T> * loss);
    CHECK(difference(Exchange::gather_parallel(mesh.group(Axis::tp), 1).forward(shard), gradient) <=
          tolerance<T>);
    const auto targets_there = from_host<std::int32_t>(targets);
    CHECK(std::abs(cross_entropy<T>(there.view(), targets_there, n, all.view()) - loss) <=
          tolerance<T> * loss);
    CHECK(difference(all, gradient) <= tolerance<T>);
  });
}

template <class T>
void language_model(int ranks, const TestDevice& test_device) {
  const Gpt2Config config{
      .vocabulary = 24, .context = 8, .layers = 2, .heads = 4, .d_model = 16, .dropout = 0.2};
  TokenBatch batch;
  batch.shape = {4, 8};
  for (std::uint64_t i = 0; i < 32; ++i) {
    batch.ids.push_back(static_cast<std::int32_t>(Random{4}.word(i) % 24));
    batch.targets.push_back(static_cast<std::int32_t>(Random{5}.word(i) % 24));
  }
  const Mesh alone;
  Gpt2<T> whole(config, {1}, alone);
  Context context;
  context.random = Random{6};
  const double loss = whole.forward(batch, 32, context);
  whole.backward(context);
  const Params<T> expected = whole.params();
  for (const Layout& layout : layouts_of(ranks)) {
    on_one_device(ranks, test_device, [&](Communicator& world, const Place& place) {
      const Mesh mesh = mesh_of(world, place, layout.axes);
      Gpt2<T> model(config, {1}, mesh, layout.sequence_parallel);
      const Params<T> params = model.params();
      move_to(*place.accelerator, params);
      const AcceleratorScope scope(place.accelerator);
      Context own;
      own.random = Random{6};
      own.first_sample = slice_of(4, mesh.size(Axis::dp), mesh.rank(Axis::dp)).begin;
      double found = model.forward(share_of(batch, mesh), 32, own);
      model.backward(own);
      if (Communicator* const others = mesh.along(Axis::dp | Axis::sp))
        others->all_reduce(std::span(&found, 1), sum);
      CHECK(std::abs(found - loss) <= tolerance<T> * loss);
      sync_grads(params, mesh);
      for (std::size_t p = 0; p < params.size(); ++p) {
        if (params[p]->name.find("k_proj_bias") != std::string::npos) continue;  // only rounding
        CAPTURE(params[p]->name);
        // Each layer rounds.
        CHECK(difference(whole_grad(*params[p], mesh), expected[p]->grad) <=
              static_cast<double>(config.layers) * tolerance<T>);
      }
    });
  }
}

template <class T>
void sharded_language_model(int ranks, const TestDevice& test_device) {
  const Gpt2Config config{
      .vocabulary = 24, .context = 8, .layers = 2, .heads = 4, .d_model = 16, .dropout = 0.2};
  TokenBatch batch;
  batch.shape = {8, 8};
  for (std::uint64_t i = 0; i < 64; ++i) {
    batch.ids.push_back(static_cast<std::int32_t>(Random{4}.word(i) % 24));
    batch.targets.push_back(static_cast<std::int32_t>(Random{5}.word(i) % 24));
  }
  const auto options = [](int step) {
    StepOptions options;
    options.random = Random{7}.of(static_cast<std::uint64_t>(step));
    options.micro_batches = step % 2 + 1;
    options.largest_norm = 0.3;
    return options;
  };
  constexpr int steps = under_sanitizer ? 2 : 4;
  const Mesh alone;
  Gpt2<T> whole(config, {1}, alone);
  DistributedDataParallel<T> one(whole, alone);
  Sgd<T> reference(one.params(), 0.1);
  std::vector<double> expected;
  for (int step = 0; step < steps; ++step) {
    expected.push_back(
        train_step(whole, one, {batch, 0, 64}, reference, alone, options(step)).loss);
  }
  const Params<T> trained = whole.params();
  for (const Layout& layout : layouts_of(ranks)) {
    for (const ShardingStage stage :
         {ShardingStage::optimizer, ShardingStage::gradients, ShardingStage::parameters}) {
      CAPTURE(static_cast<int>(stage));
      on_one_device(ranks, test_device, [&](Communicator& world, const Place& place) {
        const Mesh mesh = mesh_of(world, place, layout.axes);
        Gpt2<T> model(config, {1}, mesh, layout.sequence_parallel);
        move_to(*place.accelerator, model.params());
        const AcceleratorScope scope(place.accelerator);
        FullyShardedDataParallel<T> replicas(model, mesh, stage);
        Sgd<T> sgd(replicas.params(), 0.1);
        const Range own = slice_of(8, mesh.size(Axis::dp), mesh.rank(Axis::dp));
        const TokenShare share{share_of(batch, mesh), own.begin, 64};
        for (int step = 0; step < steps; ++step) {
          const double loss = train_step(model, replicas, share, sgd, mesh, options(step)).loss;
          const double wanted = expected[static_cast<std::size_t>(step)];
          CHECK(std::abs(loss - wanted) <= tolerance<T> * wanted);
        }
        replicas.with_values([&] {
          const Params<T> params = model.params();
          for (std::size_t p = 0; p < params.size(); ++p) {
            if (params[p]->name.find("bias") != std::string::npos) continue;  // nearly 0
            CAPTURE(params[p]->name);
            CHECK(difference(whole_value(*params[p], mesh), trained[p]->value) <= tolerance<T>);
          }
        });
      });
    }
  }
}

template <class T>
void files(int ranks, const TestDevice& test_device) {
  const Gpt2Config config{
      .vocabulary = 24, .context = 8, .layers = 2, .heads = 4, .d_model = 16, .dropout = 0};
  const TemporaryFolder folder;
  const std::string weights = folder / "weights", checkpoint = folder / "checkpoint";
  const std::string again = folder / "again";
  const auto content_of = [](const std::string& file) {
    std::ifstream stream(file, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  };
  {
    const Mesh alone;
    Gpt2<T> model(config, {1}, alone);
    DistributedDataParallel<T> replicas(model, alone);
    AdamW<T> adamw(replicas.params());
    TokenBatch batch{{2, 8}, std::vector<std::int32_t>(16, 3), std::vector<std::int32_t>(16, 5)};
    train_step(model, replicas, {batch, 0, 16}, adamw, alone);
    save_gpt2(model, weights);
    save_checkpoint(checkpoint, model, replicas, adamw, alone, {1, {}, {}, {}});
  }
  for (const Layout& layout : layouts_of(ranks)) {
    for (int stage = 0; stage <= 3; ++stage) {
      CAPTURE(stage);
      on_one_device(ranks, test_device, [&](Communicator& world, const Place& place) {
        const Mesh mesh = mesh_of(world, place, layout.axes);
        Gpt2<T> model(config, {2}, mesh, layout.sequence_parallel);
        move_to(*place.accelerator, model.params());
        const AcceleratorScope scope(place.accelerator);
        const auto same = [&](const std::string& file) {  // on the rank that writes
          if (world.rank() == 0) CHECK(content_of(again) == content_of(file));
        };
        std::unique_ptr<DataParallel<T>> replicas;
        if (stage == 0) {
          load_gpt2(model, weights);
          save_gpt2(model, again);
          same(weights);
          replicas = std::make_unique<DistributedDataParallel<T>>(model, mesh);
        } else {
          replicas =
              std::make_unique<FullyShardedDataParallel<T>>(model, mesh, ShardingStage(stage));
        }
        AdamW<T> adamw(replicas->params());
        const auto position = load_checkpoint(checkpoint, model, *replicas, adamw, mesh);
        CHECK(position.step == 1);
        save_checkpoint(again, model, *replicas, adamw, mesh, position);
        same(checkpoint);
        replicas->with_values([&] { save_gpt2(model, again); });
        same(weights);
      });
    }
  }
}

#define BATON_INSTANTIATE(T)                                       \
  template void blocks<T>(int, const TestDevice&, std::uint64_t);  \
  template void training<T>(int, const TestDevice&);               \
  template void linear_layers<T>(int, const TestDevice&);          \
  template void language_model<T>(int, const TestDevice&);         \
  template void sharded_language_model<T>(int, const TestDevice&); \
  template void files<T>(int, const TestDevice&);                  \
  template void vocabulary<T>(int, const TestDevice&);
BATON_INSTANTIATE(float)
BATON_INSTANTIATE(bf16)
#undef BATON_INSTANTIATE

}  // namespace accelerator_cases
