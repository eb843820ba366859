#include "transformer/state/checkpoint.hpp"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <thread>

#include "support/sanitizer.hpp"
#include "support/temporary_folder.hpp"
#include "transformer/language_cases.hpp"
#include "transformer/linear_layers.hpp"
#include "transformer/models/language.hpp"
#include "transformer/training/sequential.hpp"
#include "transformer/worlds.hpp"

using namespace baton;
using namespace baton::transformer;
using namespace support;

namespace {

void refused(const std::function<void()>& call, const std::vector<std::string>& parts) {
  const Error error = error_of(call);
  CHECK(error.code == ErrorCode::invalid_argument);
  CHECK_MESSAGE(holds(error.what(), parts), std::string(error.what()));
}

std::string content_of(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

Gpt2Config config() {
  return {.vocabulary = 24, .context = 12, .layers = 2, .heads = 12, .d_model = 24, .dropout = 0.1};
}

constexpr int steps = 5, half = 2;
const TrainingPosition beginning{
    .step = 0,
    .random = {17, ~0ull},
    .rate = CosineSchedule{.peak = 0.01, .least = 1e-3, .warmup = 3, .steps = steps},
    .notes = {{"text", "a \"file\"\n"}}};

/// A model under way.
template <class T>
struct Training {
  /// Stage 0: all parameters on every rank.
  Training(const Mesh& mesh, bool sequence_parallel, int stage, std::uint64_t seed,
           bool momentum = false)
      : mesh(mesh), model(config(), {seed}, mesh, sequence_parallel) {
    if (stage == 0) {
      replicas = std::make_unique<DistributedDataParallel<T>>(model, mesh);
    } else {
      replicas = std::make_unique<FullyShardedDataParallel<T>>(model, mesh, ShardingStage(stage));
    }
    if (momentum) {
      optimizer = std::make_unique<Sgd<T>>(
          replicas->params(),
          SgdOptions{.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.01});
    } else {
      optimizer = std::make_unique<AdamW<T>>(replicas->params());
    }
  }

  /// Steps until step number `end`.
  void train(std::int64_t end) {
    for (; position.step < end; ++position.step) {
      const auto number = static_cast<std::uint64_t>(position.step);
      const TokenBatch batch = random_batch(24, {12, 12}, number + 1);
      const TokenShare share{share_of(batch, mesh),
                             slice_of(12, mesh.size(Axis::dp), mesh.rank(Axis::dp)).begin,
                             static_cast<double>(batch.shape.elements())};
      optimizer->set_learning_rate(position.rate->at(position.step));
      StepOptions options;
      options.random = position.random.of(number);
      options.largest_norm = 0.5;
      losses.push_back(train_step(model, *replicas, share, *optimizer, mesh, options).loss);
    }
  }
  void save(const std::string& file) {
    save_checkpoint(file, model, *replicas, *optimizer, mesh, position);
  }
  void load(const std::string& file) {
    position = load_checkpoint(file, model, *replicas, *optimizer, mesh);
  }
  std::vector<Array<T>> weights() {
    std::vector<Array<T>> weights;
    replicas->with_values([&] {
      for (const Param<T>* param : model.params()) weights.push_back(whole_value(*param, mesh));
    });
    return weights;
  }

  const Mesh& mesh;
  Gpt2<T> model;
  std::unique_ptr<DataParallel<T>> replicas;
  std::unique_ptr<Optimizer<T>> optimizer;
  TrainingPosition position = beginning;
  std::vector<double> losses;
};

template <class T>
bool same_bits(const std::vector<Array<T>>& a, const std::vector<Array<T>>& b) {
  bool same = a.size() == b.size();
  for (std::size_t p = 0; p < a.size(); ++p)
    same = same && a[p].shape() == b[p].shape() &&
           std::memcmp(a[p].data(), b[p].data(), a[p].bytes()) == 0;
  return same;
}

/// What is added to all keys changes nothing but rounding, so k_proj's bias is compared beside 1.
bool close(const std::vector<Array<double>>& found, const std::vector<Array<double>>& expected) {
  REQUIRE(found.size() == expected.size());
  bool all = true;
  for (std::size_t p = 0; p < found.size(); ++p) {
    const auto compared = compare_tensors<double>(found[p], expected[p], 1e-12);
    all = all && (compared.match || compared.max_difference <= 1e-12);
  }
  return all;
}

struct Written {
  std::string file, layout;
};

}  // namespace

TEST_CASE("training goes on from a checkpoint: bit for bit on its mesh, equal on every other") {
  const TemporaryFolder folder;
  const Mesh alone;
  Training<double> reference(alone, false, 0, 3);
  reference.train(steps);
  const auto expected = reference.weights();
  std::vector<Written> written;
  int cuts = 0;
  for (const int ranks : {1, 2, 3, 4}) {
    for (const Cut& cut : cuts_of(ranks)) {
      ++cuts;
      for (int stage = 0; stage <= 3; ++stage) {
        if (stage == 1 && cut.dp != ranks) continue;  // as stage 2
        if (under_sanitizer && (stage + cuts) % 3 != 0) continue;
        const std::string layout = fmt::format("{} stage {}", cut.text(), stage);
        CAPTURE(layout);
        const std::string file = folder / fmt::format("{}", written.size());
        const std::string again = file + ".again";
        // Of another number of ranks, most of the time.
        const Written from =
            written.empty() ? Written{file, layout} : written[written.size() * 7 / 13];
        on_ranks(ranks, [&](Communicator& world) {
          const Mesh mesh = cut.mesh(world);
          Training<double> whole(mesh, cut.sequence_parallel, stage, 3);
          whole.train(half);
          whole.save(file);
          whole.train(steps);
          CHECK(close(whole.weights(), expected));

          Training<double> resumed(mesh, cut.sequence_parallel, stage, 4);
          resumed.load(file);
          CHECK(resumed.position.step == half);
          CHECK(resumed.optimizer->steps() == half);
          CHECK(resumed.optimizer->learning_rate() == beginning.rate->at(half - 1));
          CHECK(resumed.position.random.seed == 17);
          CHECK(resumed.position.random.stream == ~0ull);
          CHECK(resumed.position.rate->least == 1e-3);
          CHECK(resumed.position.notes == beginning.notes);
          resumed.train(steps);
          CHECK(same_bits(resumed.weights(), whole.weights()));
          CHECK(std::equal(resumed.losses.begin(), resumed.losses.end(),
                           whole.losses.begin() + half));

          CAPTURE(from.layout);
          Training<double> other(mesh, cut.sequence_parallel, stage, 5);
          other.load(from.file);
          other.save(again);  // nothing but moved
          if (world.rank() == 0) CHECK(content_of(again) == content_of(from.file));
          other.train(steps);
          CHECK(close(other.weights(), expected));
        });
        written.push_back({file, layout});
      }
    }
  }
}

TEST_CASE_TEMPLATE("a checkpoint has all state: every type and optimizer goes on bit for bit", T,
                   float, double, bf16) {
  const TemporaryFolder folder;
  for (const bool momentum : {false, true}) {
    for (int stage = 0; stage <= 3; ++stage) {
      if (under_sanitizer && (stage % 3 == 0) != momentum) continue;
      on_ranks(3, [&](Communicator& world) {
        const Mesh mesh(world, {{Axis::dp, 3}});
        Training<T> whole(mesh, false, stage, 3, momentum);
        whole.train(half);
        whole.save(folder / "a");
        whole.train(steps);
        Training<T> resumed(mesh, false, stage, 4, momentum);
        resumed.load(folder / "a");
        resumed.train(steps);
        CHECK(same_bits(resumed.weights(), whole.weights()));
        world.barrier();
      });
      const SafetensorsFile file(folder / "a");
      CHECK(file.expect<T>("parameters.block1.q_proj", {24, 24}).type == datatype_of<T>);
      const std::string kept = momentum ? "velocity" : "square";
      CHECK(file.expect<T>("optimizer." + kept + ".norm_bias", {24}).type == datatype_of<Wide<T>>);
      CHECK((file.find("optimizer.master.positions") != nullptr) == std::is_same_v<T, bf16>);
    }
  }
}

TEST_CASE("state that a checkpoint would lack is noticed") {
  const TemporaryFolder folder;
  const Mesh alone;
  Training<double> whole(alone, false, 0, 3);
  whole.train(half);
  whole.save(folder / "a");
  whole.train(steps);
  const auto differs = [&](const auto& forget) {
    Training<double> resumed(alone, false, 0, 3);
    resumed.load(folder / "a");
    forget(resumed);
    resumed.train(steps);
    CHECK_FALSE(close(resumed.weights(), whole.weights()));
  };
  differs([](auto& resumed) { resumed.optimizer->set_steps(0); });
  differs([](auto& resumed) { resumed.position.random = {}; });
  differs([](auto& resumed) { resumed.position.rate->peak = 1e-3; });
  for (const char* name : {"mean", "square"}) {
    differs([&](auto& resumed) {
      for (auto& kept : resumed.optimizer->kept())
        for (auto& [param, elements] : kept.of)
          if (kept.name == name) std::fill_n(elements.data(), elements.size(), 0.0);
    });
  }
}

TEST_CASE("a checkpoint that does not fit is refused on all ranks, and nothing changes") {
  const TemporaryFolder folder;
  const std::string file = folder / "a";
  for (const int ranks : {1, 2}) {
    on_ranks(ranks, [&](Communicator& world) {
      const Mesh mesh(world, {{Axis::dp, ranks}});
      Training<float> training(mesh, false, 0, 3);
      Training<double> wide(mesh, false, 0, 3);
      Training<float> momentum(mesh, false, 0, 3, true);
      training.train(1);
      training.save(file);
      const auto before = wide.weights();
      refused([&] { wide.load(file); }, {file, "__metadata__: type: expected f64, found \"f32\""});
      CHECK(same_bits(wide.weights(), before));
      refused([&] { momentum.load(file); }, {file, "optimizer: expected Sgd, found \"AdamW\""});
      refused([&] { training.load(folder / "none"); }, {"none: expected a file to read"});
      refused([&] { training.save(folder / "no/folder"); },
              {"no/folder: expected a file to write"});

      Sequential<float> other;
      other.add("norm", std::make_unique<Linear<float>>("norm", 3, 3, true, Random{1}));
      DistributedDataParallel<float> replicas(other, mesh);
      AdamW<float> adamw(replicas.params());
      refused([&] { load_checkpoint(file, other, replicas, adamw, mesh); },
              {file, "expected a tensor \"optimizer.mean.norm.", "found none"});
      Params<float> few = training.replicas->params();
      few.pop_back();
      AdamW<float> part(few);
      refused(
          [&] { save_checkpoint(file, training.model, *training.replicas, part, mesh, beginning); },
          {"checkpoint: expected an optimizer of the model's parameters, found none of embedding"});

      const auto rewritten = [&](const std::string& from, const std::string& to,
                                 const std::vector<std::string>& parts) {
        world.barrier();
        if (world.rank() == 0) {
          std::string content = content_of(file);
          const std::size_t at = content.find(from);
          REQUIRE(at != std::string::npos);
          content.replace(at, from.size(), to);
          std::int64_t header = 0;  // the bytes of the header
          std::memcpy(&header, content.data(), sizeof header);
          header += std::ssize(to) - std::ssize(from);
          std::memcpy(content.data(), &header, sizeof header);
          folder.write("b", content);
        }
        world.barrier();
        refused([&] { training.load(folder / "b"); }, parts);
      };
      rewritten(R"("step":"1")", R"("step":"x")", {"step: expected a number, found \"x\""});
      rewritten(R"("step":"1")", R"("stop":"1")", {"step: expected a number, found none"});
      rewritten(R"("step":"1")", R"("step":"-1")", {"step: expected a number from 0 to", "\"-1\""});
      rewritten(R"(optimizer.steps":"1")", R"(optimizer.steps":"9223372036854775807")",
                {"optimizer.steps: expected a number from 0 to 1000000000000000, found"});
      rewritten(R"(optimizer.learning_rate":")", R"(optimizer.learning_rate":"nan","a":")",
                {"optimizer.learning_rate: expected a finite number, found \"nan\""});
      rewritten(R"(rate.warmup":"3")", R"(rate.warmup":"6")",
                {"rate.warmup: expected a number from 0 to 5, found \"6\""});
      rewritten("checkpoint 1", "checkpoint 2", {"format: expected baton checkpoint 1, found"});
      rewritten("parameters.block1.fc1\"", "parameters.block1.fc3\"",
                {"expected a tensor \"parameters.block1.fc1\", found none"});
      rewritten("[24,24]", "[12,48]", {"expected shape [24, 24], found [12, 48]"});
      world.barrier();
      if (world.rank() == 0)
        folder.write("b", content_of(file).substr(0, content_of(file).size() / 2));
      world.barrier();
      refused([&] { training.load(folder / "b"); }, {"within the", "bytes of elements, found"});
      world.barrier();
    });
  }
}

TEST_CASE("whenever a process is killed that writes checkpoints, the last good one is there") {
  const TemporaryFolder folder;
  const std::string file = folder / "a";
  const Mesh alone;
  Training<double> first(alone, false, 0, 3), second(alone, false, 0, 4);
  first.save(file);
  for (int delay = 0; delay < 20; ++delay) {
    const pid_t child = fork();
    if (child == 0) {
      for (;;) {
        second.save(file);
        first.save(file);
      }
    }
    std::this_thread::sleep_for(std::chrono::microseconds(700 * delay));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(WIFSIGNALED(status));
    Training<double> resumed(alone, false, 0, 5);
    resumed.load(file);
    CHECK((same_bits(resumed.weights(), first.weights()) ||
           same_bits(resumed.weights(), second.weights())));
  }
}
