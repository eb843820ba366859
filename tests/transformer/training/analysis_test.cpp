#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>

#include "baton/schedule.hpp"
#include "support/counting.hpp"
#include "support/ranks.hpp"
#include "transformer/accelerator_cases.hpp"
#include "transformer/models/language.hpp"
#include "transformer/stand_in_accelerator.hpp"
#include "transformer/training/analysis.hpp"

using namespace baton;
using namespace baton::transformer;
using namespace support;
using namespace accelerator_cases;

namespace {

using Stage = std::optional<ShardingStage>;
constexpr Stage optimizer = ShardingStage::optimizer, gradients = ShardingStage::gradients,
                parameters = ShardingStage::parameters;
constexpr Stage stages[] = {std::nullopt, optimizer, gradients, parameters};

std::size_t number(Stage stage) { return stage ? static_cast<std::size_t>(*stage) : 0; }

/// Mixed precision with Adam: 2 B of a parameter, 2 B of its gradient, 12 B of master, mean and
/// mean square.
AnalyzedModel mixed_precision(std::int64_t parameters, int ranks) {
  return {{parameters}, parameter_bytes(Datatype::f16, Datatype::f16, 2), ranks};
}

double gigabytes(std::int64_t bytes) { return static_cast<double>(bytes) * 1e-9; }

/// What `body(communicator, count)` sends on each of `ranks` threads, by the transport's count.
/// Rings are chosen.
std::vector<std::int64_t> counted_on(
    int ranks, const std::function<void(Communicator&, const Traffic& sent)>& body) {
  Options options = test_options();
  for (const Collective collective :
       {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather})
    options.choices[static_cast<std::size_t>(collective)] = {"ring", std::nullopt};
  std::vector<std::int64_t> bytes(static_cast<std::size_t>(ranks));
  run_threads(ranks, [&](std::unique_ptr<Transport> transport) {
    Traffic sent;
    Communicator world(std::make_unique<CountingTransport>(std::move(transport), sent), options);
    const Traffic before = sent;
    body(world, sent);
    bytes[static_cast<std::size_t>(world.rank())] = sent.bytes - before.bytes;
  });
  return bytes;
}

/// Of each rank.
std::vector<std::int64_t> shard_counts(std::int64_t elements, int ranks) {
  std::vector<std::int64_t> counts;
  for (int i = 0; i < ranks; ++i) counts.push_back(shard_of(elements, ranks, i).size());
  return counts;
}

/// The collectives that one step of data parallelism needs for these units, of bf16 values and f32
/// gradients.
void communicate(Communicator& world, const AnalyzedModel& model, Stage stage) {
  const int ranks = world.size();
  for (const std::int64_t unit : model.units) {
    const std::int64_t each = (unit + ranks - 1) / ranks;
    const bool cut = stage != std::nullopt;
    const std::int64_t whole = cut && model.padded ? each * ranks : unit;
    std::vector<float> gradients(static_cast<std::size_t>(whole), 1);
    if (!cut) {
      world.all_reduce({gradients.data(), whole, Datatype::f32}, sum);
      continue;
    }
    const auto counts = shard_counts(whole, ranks);
    const std::int64_t own = counts[static_cast<std::size_t>(world.rank())];
    std::vector<float> shard(static_cast<std::size_t>(own));
    world.reduce_scatter_v({gradients.data(), whole, Datatype::f32},
                           {shard.data(), own, Datatype::f32}, counts, sum);
    std::vector<std::uint16_t> part(static_cast<std::size_t>(own)),
        values(static_cast<std::size_t>(whole));
    for (int gather = 0; gather < (stage == parameters ? 2 : 1); ++gather)
      world.all_gather_v({part.data(), own, Datatype::bf16}, {values.data(), whole, Datatype::bf16},
                         counts);
  }
}

template <class T>
std::int64_t elements_of(const Params<T>& params) {
  std::int64_t sum = 0;
  for (const Param<T>* param : params) sum += param->value.size();
  return sum;
}

/// Replicated ones send all gradients together, so that the count is exact.
template <class T>
std::unique_ptr<DataParallel<T>> replicas_of(Model<T>& model, const Mesh& mesh, Stage stage) {
  if (stage) return std::make_unique<FullyShardedDataParallel<T>>(model, mesh, *stage);
  return std::make_unique<DistributedDataParallel<T>>(model, mesh,
                                                      ReplicationOptions{.bucket_bytes = 1 << 30});
}

}  // namespace

TEST_CASE("7.5 billion parameters on 64 ranks hold what ZeRO's figure 1 says") {
  // Rajbhandari, Rasley, Ruwase, He, ZeRO: memory optimizations toward training trillion parameter
  // models (2020), figure 1: 120, 31.4, 16.6 and 1.88 GB.
  const AnalyzedModel model = mixed_precision(7'500'000'000, 64);
  const double published[] = {120, 31.4, 16.6, 1.88};
  for (const Stage stage : stages) {
    const double expected = published[number(stage)];
    const double found = gigabytes(most_held_bytes(model, stage).total());
    CHECK(found == doctest::Approx(expected).epsilon(0.003));  // its figures are rounded
  }
  // n = 7.5e9, n / P = 117,187,500 exactly.
  CHECK(most_held_bytes(model, std::nullopt) ==
        HeldBytes{15'000'000'000, 15'000'000'000, 90'000'000'000});
  CHECK(most_held_bytes(model, optimizer) ==
        HeldBytes{15'000'000'000, 15'000'000'000, 1'406'250'000});
  CHECK(most_held_bytes(model, gradients) == HeldBytes{15'000'000'000, 234'375'000, 1'406'250'000});
  CHECK(most_held_bytes(model, parameters) == HeldBytes{234'375'000, 234'375'000, 1'406'250'000});
}

TEST_CASE("10 billion parameters on 8 ranks at 100 Gbit/s") {
  // Held, with n = 10e9 and n / P = 1.25e9: 16 n = 160 GB; 4 n + 12 n / P = 40 + 15 = 55 GB;
  // 2 n + 14 n / P = 20 + 17.5 = 37.5 GB; 16 n / P = 20 GB.
  // Sent: one pass over 2 n = 20 GB is (P - 1) / P of it, 17.5 GB, which take 1.4 s at 12.5 GB/s.
  // All-reduce, and stages 1 and 2, are two passes: 35 GB, 2.8 s. Stage 3 is three: 52.5 GB, 4.2 s.
  const AnalyzedModel model = mixed_precision(10'000'000'000, 8);
  const double held[] = {160, 55, 37.5, 20}, sent[] = {35, 35, 35, 52.5},
               seconds[] = {2.8, 2.8, 2.8, 4.2};
  for (const Stage stage : stages) {
    const auto at = number(stage);
    CHECK(gigabytes(most_held_bytes(model, stage).total()) == doctest::Approx(held[at]));
    const std::int64_t bytes = most_sent_bytes(model, stage).total();
    CHECK(gigabytes(bytes) == doctest::Approx(sent[at]));
    CHECK(transfer_seconds(bytes, 100) == doctest::Approx(seconds[at]));
  }
}

TEST_CASE("bytes of a parameter by types and optimizer") {
  const auto bytes = [](Datatype value, Datatype gradient, int states) {
    const ParameterBytes of = parameter_bytes(value, gradient, states);
    return std::vector<std::int64_t>{of.value, of.gradient, of.optimizer};
  };
  using Bytes = std::vector<std::int64_t>;
  CHECK(bytes(Datatype::f32, Datatype::f32, 0) == Bytes{4, 4, 0});
  CHECK(bytes(Datatype::f32, Datatype::f32, 1) == Bytes{4, 4, 4});
  CHECK(bytes(Datatype::f32, Datatype::f32, 2) == Bytes{4, 4, 8});
  CHECK(bytes(Datatype::f64, Datatype::f64, 2) == Bytes{8, 8, 16});
  CHECK(bytes(Datatype::bf16, Datatype::bf16, 0) == Bytes{2, 2, 4});
  CHECK(bytes(Datatype::bf16, Datatype::f32, 2) == Bytes{2, 4, 12});
  CHECK(bytes(Datatype::f16, Datatype::f16, 1) == Bytes{2, 2, 8});
  CHECK(bytes(Datatype::f32, Datatype::bf16, 2) == Bytes{4, 2, 8});
}

TEST_CASE("shards are whole elements, together everything, the largest on the last rank") {
  const ParameterBytes bytes = parameter_bytes(Datatype::bf16, Datatype::f32, 2);
  for (const int ranks : {1, 2, 3, 4, 5, 7, 8, 16}) {
    for (const std::int64_t unit : {0, 1, ranks - 1, ranks, ranks + 1, 97}) {
      const AnalyzedModel uneven{{unit, 2 * unit}, bytes, ranks};
      const AnalyzedModel padded{{unit, 2 * unit}, bytes, ranks, 1, true};
      HeldBytes sum;
      const HeldBytes most = most_held_bytes(uneven, parameters);
      const std::int64_t shards =
          (unit + ranks - 1) / ranks + (2 * unit + ranks - 1) / ranks;  // ceil of each
      CHECK(most == HeldBytes{2 * shards, 4 * shards, 12 * shards});
      for (int rank = 0; rank < ranks; ++rank) {
        const HeldBytes held = held_bytes(uneven, parameters, rank);
        sum.parameters += held.parameters;
        sum.gradients += held.gradients;
        sum.optimizer += held.optimizer;
        CHECK(held.total() <= most.total());
        CHECK(held_bytes(padded, parameters, rank) == most);
        CHECK(held_bytes(padded, gradients, rank).parameters == 2 * ranks * shards);
        CHECK(held_bytes(padded, std::nullopt, rank) == held_bytes(uneven, std::nullopt, rank));
      }
      CHECK(sum == held_bytes(uneven, std::nullopt, 0));
    }
  }
}

TEST_CASE("what rings are told to send is what the calculator says") {
  for (const int ranks : {1, 2, 3, 4}) {
    for (const std::int64_t elements : {0, 1, ranks - 1, ranks, ranks + 1, 60, 61, 1009, 70'001}) {
      CAPTURE(ranks);
      CAPTURE(elements);
      const auto counts = shard_counts(elements, ranks);
      const auto size = static_cast<std::size_t>(elements);
      const auto check = [&](Collective collective, const auto& call) {
        const auto counted = counted_on(ranks, call);
        for (int rank = 0; rank < ranks; ++rank) {
          CAPTURE(rank);
          CHECK(counted[static_cast<std::size_t>(rank)] ==
                4 * ring_sent(collective, elements, ranks, rank));
        }
      };
      check(Collective::all_reduce, [&](Communicator& world, const Traffic&) {
        std::vector<float> data(size, 1);
        world.all_reduce({data.data(), elements, Datatype::f32}, sum);
      });
      check(Collective::reduce_scatter, [&](Communicator& world, const Traffic&) {
        const std::int64_t own = counts[static_cast<std::size_t>(world.rank())];
        std::vector<float> data(size, 1), shard(static_cast<std::size_t>(own));
        world.reduce_scatter_v({data.data(), elements, Datatype::f32},
                               {shard.data(), own, Datatype::f32}, counts, sum);
      });
      check(Collective::all_gather, [&](Communicator& world, const Traffic&) {
        const std::int64_t own = counts[static_cast<std::size_t>(world.rank())];
        std::vector<float> shard(static_cast<std::size_t>(own), 1), data(size);
        world.all_gather_v({shard.data(), own, Datatype::f32},
                           {data.data(), elements, Datatype::f32}, counts);
      });
      if (elements % ranks != 0) continue;
      const std::int64_t pass = elements / ranks * (ranks - 1);
      CHECK(ring_sent(Collective::all_reduce, elements, ranks, 0) == 2 * pass);
      CHECK(ring_sent(Collective::reduce_scatter, elements, ranks, 0) == pass);
      CHECK(ring_sent(Collective::all_gather, elements, ranks, 0) == pass);
    }
  }
}

TEST_CASE("what a step of each stage is told to send is what the calculator says") {
  const ParameterBytes bytes = parameter_bytes(Datatype::bf16, Datatype::f32, 2);
  for (const int ranks : {1, 2, 3, 4}) {
    for (const bool padded : {false, true}) {
      const AnalyzedModel model{{1000, 7, 2, 12, 4099}, bytes, ranks, 1, padded};
      for (const Stage stage : stages) {
        CAPTURE(ranks);
        CAPTURE(padded);
        CAPTURE(number(stage));
        const auto counted = counted_on(
            ranks, [&](Communicator& world, const Traffic&) { communicate(world, model, stage); });
        for (int rank = 0; rank < ranks; ++rank)
          CHECK(counted[static_cast<std::size_t>(rank)] == sent_bytes(model, stage, rank).total());
        CHECK(*std::max_element(counted.begin(), counted.end()) ==
              most_sent_bytes(model, stage).total());
      }
    }
  }
}

TEST_CASE_TEMPLATE("GPT-2 in training holds and sends what the calculator says", T, double, float,
                   bf16) {
  const Gpt2Config config{.vocabulary = 26, .context = 8, .layers = 3, .heads = 3, .d_model = 21};
  for (const int ranks : {1, 2, 3, 4}) {
    TokenBatch batch;
    batch.shape = {2 * ranks, config.context};
    for (std::int32_t i = 0; i < batch.shape.elements(); ++i) {
      batch.ids.push_back(i % 26);
      batch.targets.push_back(i * i % 26);
    }
    for (const Stage stage : stages) {
      for (const int micro_batches : {1, 2}) {
        CAPTURE(ranks);
        CAPTURE(number(stage));
        CAPTURE(micro_batches);
        counted_on(ranks, [&](Communicator& world, const Traffic& sent) {
          const Mesh mesh(world, {{Axis::dp, ranks}});
          Gpt2<T> model(config, {3}, mesh);
          AnalyzedModel analyzed{
              {}, parameter_bytes(datatype_of<T>, datatype_of<T>, 2), ranks, micro_batches};
          if (stage) {
            for (const Unit<T>& unit : model.units())
              analyzed.units.push_back(elements_of(unit.params));
          } else {
            analyzed.units = {config.parameters()};
          }
          const auto replicas = replicas_of(model, mesh, stage);
          AdamW<T> adamw(replicas->params());
          const TokenShare share{share_of(batch, mesh), 2 * world.rank(),
                                 1.0 * batch.shape.elements()};
          StepOptions options;
          options.micro_batches = micro_batches;
          std::int64_t before = 0;
          for (int step = 0; step < 2; ++step) {  // the second knows in which order units are used
            before = sent.bytes;
            train_step(model, *replicas, share, adamw, mesh, options);
          }
          const int rank = world.rank();
          const std::int64_t loss =
              ring_sent(Collective::all_reduce, 1, ranks, rank) * std::int64_t{sizeof(double)};
          CHECK(sent.bytes - before == sent_bytes(analyzed, stage, rank).total() + loss);

          const HeldBytes held = held_bytes(analyzed, stage, rank);
          const auto bytes = [&](Params<T> whole, ShardingStage divides) {
            return elements_of(stage >= divides ? replicas->params() : whole) *
                   std::int64_t{sizeof(T)};
          };
          CHECK(held.parameters == bytes(model.params(), ShardingStage::parameters));
          CHECK(held.gradients == bytes(model.params(), ShardingStage::gradients));
          CHECK(held.optimizer == elements_of(replicas->params()) * analyzed.bytes.optimizer);
        });
      }
    }
  }
}

TEST_CASE_TEMPLATE("the allocator counts what the calculator says", T, float, bf16) {
  const Gpt2Config config{.vocabulary = 26, .context = 8, .layers = 2, .heads = 3, .d_model = 21};
  for (const int ranks : {1, 2, 3, 4}) {
    for (const Stage stage : stages) {
      for (const bool adam : {false, true}) {
        CAPTURE(ranks);
        CAPTURE(number(stage));
        CAPTURE(adam);
        const auto device = std::make_shared<StandInDevice>();
        const TestDevice stand_in{device,
                                  [&] { return std::make_unique<StandInAccelerator>(device); }};
        on_one_device(ranks, stand_in, [&](Communicator& world, const Place& place) {
          const Mesh mesh(world, *place.communicator, {{Axis::dp, ranks}});
          Gpt2<T> model(config, {3}, mesh);
          move_to(*place.accelerator, model.params());
          const AcceleratorScope scope(place.accelerator);
          AnalyzedModel analyzed{
              {}, parameter_bytes(datatype_of<T>, datatype_of<T>, adam ? 2 : 0), ranks};
          for (const Unit<T>& unit : model.units())
            analyzed.units.push_back(elements_of(unit.params));
          const auto replicas = replicas_of(model, mesh, stage);
          std::unique_ptr<Optimizer<T>> optimizer;
          if (adam) optimizer = std::make_unique<AdamW<T>>(replicas->params());
          if (!adam) optimizer = std::make_unique<Sgd<T>>(replicas->params(), 0.1);
          CHECK(dynamic_cast<StandInAccelerator&>(*place.accelerator).held() ==
                held_bytes(analyzed, stage, world.rank()).total());
          world.barrier();
        });
      }
    }
  }
}

TEST_CASE_TEMPLATE("a forward pass keeps what the calculator says", T, float, bf16) {
  const auto device = std::make_shared<StandInDevice>();
  StandInAccelerator accelerator(device);
  for (const Activation activation : {Activation::relu, Activation::gelu}) {
    for (const std::int64_t kv_heads : {0, 2}) {
      BlockConfig config{.d_model = 24, .heads = 4, .d_ff = 40, .kv_heads = kv_heads};
      config.activation = activation;
      config.hidden_dropout = config.attention_dropout = 0.1;
      TransformerBlock<T> block(config, {1});
      const Mesh alone;
      block.parallelize(alone);
      move_to(accelerator, block.parallel().params());
      const AcceleratorScope scope(&accelerator);
      const Array<T> x({3, 7, 24});
      const std::int64_t without = accelerator.held() - static_cast<std::int64_t>(x.bytes());
      Context context;
      const Array<T> y = block.parallel().forward(x, context);
      const auto y_bytes = static_cast<std::int64_t>(y.bytes());
      CHECK(accelerator.held() - without - y_bytes ==
            block_kept_bytes(config, x.shape(), datatype_of<T>));
      block.parallel().backward(y, context);
      CHECK(accelerator.held() - without == y_bytes + static_cast<std::int64_t>(x.bytes()));
    }
  }
  const Gpt2Config config{.vocabulary = 26, .context = 8, .layers = 3, .heads = 3, .d_model = 21};
  const Mesh alone;
  Gpt2<T> model(config, {3}, alone);
  move_to(accelerator, model.params());
  const AcceleratorScope scope(&accelerator);
  TokenBatch batch;
  batch.shape = {2, 5};
  batch.ids.assign(10, 7), batch.targets.assign(10, 9);
  const std::int64_t before = accelerator.held();
  Context context;
  model.forward(batch, 10, context);
  const Shape x{2, 5, 21};
  CHECK(accelerator.held() - before == 3 * block_kept_bytes(config.block(0), x, datatype_of<T>) +
                                           head_kept_bytes(config.vocabulary, x, datatype_of<T>));
  // 4 + 3 statistics of 4 B, and 16 times 21 elements, of each of 10 positions.
  CHECK(block_kept_bytes(config.block(0), x, datatype_of<T>) ==
        10 * (7 * 4 + 16 * 21 * std::int64_t{sizeof(T)}));
}

TEST_CASE("the busiest rank is one of all ranks, whatever the remainders") {
  for (const auto& bytes : {parameter_bytes(Datatype::bf16, Datatype::f32, 2),
                            parameter_bytes(Datatype::f64, Datatype::f16, 2)}) {
    for (const int ranks : {1, 2, 3, 4, 5, 7, 8}) {
      for (std::int64_t first = 0; first <= 2 * ranks; ++first) {
        for (std::int64_t second = 0; second <= ranks; ++second) {
          const AnalyzedModel model{{first, second}, bytes, ranks};
          for (const Stage stage : stages) {
            std::int64_t most = 0;
            for (int rank = 0; rank < ranks; ++rank)
              most = std::max(most, sent_bytes(model, stage, rank).total());
            CHECK(most_sent_bytes(model, stage).total() == most);
          }
        }
      }
    }
  }
}

TEST_CASE("what a pipeline's boundaries are told to send is what the calculator says") {
  const Shape shape{3, 5, 8};
  const std::int64_t boundary = boundary_bytes(shape, Datatype::f32);
  CHECK(boundary == 3 * 5 * 8 * 4);
  CHECK(boundary_bytes(shape, Datatype::bf16) == 3 * 5 * 8 * 2);
  for (const int ranks : {1, 2, 3, 4}) {
    const auto counted = counted_on(ranks, [&](Communicator& world, const Traffic&) {
      std::vector<float> x(static_cast<std::size_t>(shape.elements()));
      const Data data(x.data(), shape.elements(), Datatype::f32);
      const int rank = world.rank(), last = ranks - 1;
      if (rank > 0) world.recv(data, rank - 1);
      if (rank < last) world.send(data, rank + 1);
      if (rank < last) world.recv(data, rank + 1);
      if (rank > 0) world.send(data, rank - 1);
    });
    for (int rank = 0; rank < ranks; ++rank)
      CHECK(counted[static_cast<std::size_t>(rank)] == pipeline_sent_bytes(boundary, ranks, rank));
    CHECK(std::accumulate(counted.begin(), counted.end(), std::int64_t{0}) ==
          2 * (ranks - 1) * boundary);
  }
}

TEST_CASE("refusals name what was expected and what was found") {
  const auto refused = [](const AnalyzedModel& model, int rank, const char* sentence) {
    for (const auto& error : {error_of([&] { held_bytes(model, parameters, rank); }),
                              error_of([&] { sent_bytes(model, parameters, rank); })}) {
      CHECK(error.code == ErrorCode::invalid_argument);
      CHECK(std::string(error.what()) == sentence);
    }
  };
  refused({{8}, {}, 0}, 0, "analysis: expected 1 to 1000000 ranks, found 0");
  refused({{8}, {}, 4}, 4, "analysis: expected a rank from 0 to 3, found 4");
  refused({{8, -1}, {}, 4}, 0,
          "analysis: expected units of 0 to 10000000000000 parameters in all, found one of -1");
  refused({{10'000'000'000'000, 1}, {}, 4}, 0,
          "analysis: expected units of 0 to 10000000000000 parameters in all, found one of 1");
  CHECK(error_of([] { parameter_bytes(Datatype::i32, Datatype::f32, 2); }).what() ==
        std::string("analysis: parameters: expected f16, bf16, f32 or f64, found i32"));
  CHECK(error_of([] { parameter_bytes(Datatype::f32, Datatype::i8, 2); }).what() ==
        std::string("analysis: gradients: expected f16, bf16, f32 or f64, found i8"));
  CHECK(error_of([] { ring_sent(Collective::broadcast, 4, 2, 0); }).what() ==
        std::string("analysis: expected all_reduce, reduce_scatter or all_gather, found "
                    "broadcast"));
  CHECK(error_of([] {
          boundary_bytes({1 << 30, 1 << 30, 1 << 30}, Datatype::f32);
        }).code == ErrorCode::invalid_argument);
}
