#include "transformer/pipeline/pipe.hpp"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <stdexcept>

#include "support/ranks.hpp"
#include "support/tasks.hpp"
#include "transformer/block.hpp"
#include "transformer/compare.hpp"
#include "transformer/held.hpp"
#include "transformer/linear_layers.hpp"
#include "transformer/optimizer.hpp"
#include "transformer/pipeline/split.hpp"
#include "transformer/training/step.hpp"

using namespace baton;
using namespace baton::transformer;
using namespace support;

namespace {

constexpr std::int64_t positions = 3, width = 8, samples = 7;

/// Blocks with dropout, and linear layers between them.
Sequential<double> row() {
  Sequential<double> row;
  for (int l = 0; l < 3; ++l) {
    const std::string name = fmt::format("layer{}", l);
    row.add(name, std::make_shared<Linear<double>>(name, width, width, true, Random{1}));
    BlockConfig config;
    config.d_model = width, config.heads = 2, config.d_ff = 12;
    config.attention_dropout = config.hidden_dropout = 0.2;
    config.name = fmt::format("block{}", l);
    row.add(config.name, std::make_shared<TransformerBlock<double>>(config, Random{2}));
  }
  return row;
}

Context context_of() {
  Context context;
  context.random = Random{5};
  context.first_sample = 4;
  return context;
}

Pipe<double> pipe_of(Sequential<double>& layers, int partitions, int micro_batches) {
  return {split_module(layers, partitions), micro_batches};
}

/// The identity, which calls a function first.
class Calls : public Module<double> {
 public:
  std::function<void()> forward_call, backward_call;
  Array<double> forward(const Array<double>& x, Context&) override {
    if (forward_call) forward_call();
    return x;
  }
  Array<double> backward(const Array<double>& dy, Context&) override {
    if (backward_call) backward_call();
    return dy;
  }
  Params<double> params() override { return {}; }
};

/// A call that throws when it is made for the `number`-th time.
template <class Exception>
std::function<void()> throwing(int number, Exception exception) {
  return [=, calls = std::make_shared<std::atomic<int>>(0)] {
    if ((*calls)++ == number) throw exception;
  };
}

/// So many partitions of one Calls each.
struct Row {
  explicit Row(int partitions) {
    for (int p = 0; p < partitions; ++p) {
      calls.push_back(std::make_shared<Calls>());
      parts.emplace_back().add(fmt::format("calls{}", p), calls.back());
    }
  }
  std::vector<std::shared_ptr<Calls>> calls;
  std::vector<Sequential<double>> parts;
};

/// Waits until `count` threads are there at once; false after a long time.
class Meeting {
 public:
  explicit Meeting(int count) : missing_(count) {}
  bool wait() {
    std::unique_lock lock(mutex_);
    if (--missing_ <= 0) changed_.notify_all();
    return changed_.wait_for(lock, std::chrono::seconds(60), [&] { return missing_ <= 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int missing_;
};

}  // namespace

TEST_CASE("a Pipe gives the results and gradients of its layers in a row") {
  const auto x = random_array<double>({samples, positions, width}, 3);
  const auto dy = random_array<double>(x.shape(), 4);
  Sequential<double> layers = row();
  Context whole = context_of();
  const Array<double> y = layers.forward(x, whole);
  const Array<double> dx = layers.backward(dy, whole);
  std::vector<Array<double>> gradients;
  for (const Param<double>* param : layers.params()) gradients.push_back(param->grad.copy());

  for (int partitions = 1; partitions <= 6; ++partitions) {
    for (const int micro_batches : {1, 2, 3, 4, 5, 7, 8, 20}) {
      CAPTURE(partitions);
      CAPTURE(micro_batches);
      auto pipe = pipe_of(layers, partitions, micro_batches);
      CHECK(pipe.partitions().size() == std::size_t(partitions));
      CHECK(pipe.params() == layers.params());
      pipe.zero_grads();
      Context context = context_of();
      std::vector<const ParamInfo*> completed;
      context.completed = [&](const ParamInfo& param) { completed.push_back(&param); };
      CHECK(difference(pipe.forward(x, context), y) <= 1e-12);
      CHECK(difference(pipe.backward(dy, context), dx) <= 1e-12);
      context.expect_finished();
      const Params<double> params = layers.params();
      CHECK(completed == std::vector<const ParamInfo*>(params.begin(), params.end()));
      for (std::size_t p = 0; p < params.size(); ++p) {
        CAPTURE(params[p]->name);
        CHECK(difference(params[p]->grad, gradients[p]) <= 1e-12);
      }
    }
  }
  CHECK(context_of().training);
  Context other;  // other dropout is noticed
  auto pipe = pipe_of(layers, 2, 2);
  CHECK(difference(pipe.forward(x, other), y) > 1e-3);
}

TEST_CASE("steps of a Pipe are bit for bit those of its layers with as many micro-batches") {
  const auto batch =
      create_batch<double>(4, {samples, positions, width}, {samples, positions, width});
  for (const int micro_batches : {1, 3, 7}) {
    Sequential<double> alone = row(), parted = row();
    Sgd<double> sgd(alone.params(), 0.1), other(parted.params(), 0.1);
    auto pipe = pipe_of(parted, 3, micro_batches);
    for (int step = 0; step < 3; ++step) {
      StepOptions options;
      options.random = Random{7}.of(std::uint64_t(step));
      const double loss = reference_step(pipe, batch, other, options).loss;
      options.micro_batches = micro_batches;
      // The loss is one sum over the batch.
      CHECK(std::abs(loss - reference_step(alone, batch, sgd, options).loss) <= 1e-12);
    }
    const Params<double> params = alone.params(), others = parted.params();
    for (std::size_t p = 0; p < params.size(); ++p)
      CHECK(difference(others[p]->value, params[p]->value) == 0);
  }
}

TEST_CASE("partitions of a Pipe compute at the same time, in both directions") {
  Row row(3);
  Meeting forward(3), backward(3);
  std::atomic<int> met = 0;
  // At clock 2, micro-batches 2, 1 and 0 are in partitions 0, 1 and 2; backward likewise.
  for (int p = 0; p < 3; ++p) {
    const auto meets = [&met](Meeting& meeting, int number) {
      return [&met, &meeting, number, call = std::make_shared<int>(0)] {
        if ((*call)++ == number && meeting.wait()) ++met;
      };
    };
    row.calls[std::size_t(p)]->forward_call = meets(forward, 2 - p);
    row.calls[std::size_t(p)]->backward_call = meets(backward, p);
  }
  Pipe<double> pipe(row.parts, 3);
  const auto x = random_array<double>({3, 2}, 1);
  Context context;
  CHECK(difference(pipe.forward(x, context), x) == 0);
  CHECK(difference(pipe.backward(x, context), x) == 0);
  CHECK(met == 6);
}

TEST_CASE("a task's exception reaches the caller with its place, and the Pipe goes on") {
  const auto x = random_array<double>({samples, 2}, 1);
  const std::size_t before = threads();
  for (const bool back : {false, true}) {
    for (int partition = 0; partition < 3; ++partition) {
      for (int number = 0; number < 4; ++number) {
        CAPTURE(back);
        CAPTURE(partition);
        CAPTURE(number);
        Row row(3);
        Pipe<double> pipe(row.parts, 4);
        Calls& calls = *row.calls[std::size_t(partition)];
        (back ? calls.backward_call : calls.forward_call) =
            throwing(number, std::runtime_error("the disk is full"));
        Context context;
        bool thrown = false;
        try {
          pipe.forward(x, context);
          pipe.backward(x, context);
        } catch (const Error& error) {
          thrown = true;
          CHECK(std::string(error.what()) ==
                fmt::format("partition {}, micro-batch {}, {}: the disk is full", partition, number,
                            back ? "backward" : "forward"));
          CHECK_THROWS_AS(std::rethrow_if_nested(error), std::runtime_error);
        }
        CHECK(thrown);
        CHECK(context.kept() == 0);
        CHECK(difference(pipe.forward(x, context), x) == 0);
        CHECK(difference(pipe.backward(x, context), x) == 0);
      }
    }
  }
  CHECK(threads() == before);

  Row row(2);  // an Error keeps its code; of two exceptions, that of the first clock
  row.calls[0]->forward_call = throwing(2, Error(ErrorCode::timeout, "late"));
  row.calls[1]->forward_call = throwing(0, Error(ErrorCode::transport, "gone"));
  Pipe<double> pipe(row.parts, 4);
  Context context;
  const Error error = error_of([&] { pipe.forward(x, context); });
  CHECK(error.code == ErrorCode::transport);
  CHECK(std::string(error.what()) == "partition 1, micro-batch 0, forward: gone");
  row.calls[0]->forward_call = throwing(0, 5);
  CHECK(holds(error_of([&] { pipe.forward(x, context); }).what(), {"unknown exception"}));
}

TEST_CASE("many Pipes in a row leave no thread, and their memory counts where the caller's does") {
  const std::size_t before = threads();
  const auto x = random_array<double>({samples, positions, width}, 3);
  Sequential<double> layers = row();
  for (int number = 0; number < 300; ++number) {
    auto pipe = pipe_of(layers, 1 + number % 5, 1 + number % 8);
    Context context = context_of();
    if (number % 3 > 0) pipe.forward(x, context);
    if (number % 3 > 1) pipe.backward(x, context);
  }
  CHECK(threads() == before);

  CHECK(!MemoryCount::of_thread());
  const MemoryCount count;
  const CountingScope scope(count);
  CHECK(MemoryCount::of_thread()->held().most == 0);
  auto pipe = pipe_of(layers, 3, 4);
  Context context = context_of();
  {
    const Array<double> y = pipe.forward(x, context);
    CHECK(count.held().now > 10 * std::int64_t(x.bytes()));
    pipe.backward(x, context);
  }
  CHECK(count.held().now == 0);
  context.keeps = false;
  count.held();
  pipe.forward(x, context);
  CHECK(count.held().now == 0);
  CHECK(context.kept() == 0);
}

TEST_CASE("a Pipe refuses what it cannot run") {
  const auto refused = [](const std::function<void()>& call,
                          const std::vector<std::string>& parts) {
    const Error error = error_of(call);
    CHECK(error.code == ErrorCode::invalid_argument);
    CHECK_MESSAGE(holds(error.what(), parts), std::string(error.what()));
  };
  Row row(2);
  refused([&] { Pipe<double>(row.parts, 0); }, {"1 micro-batch", "found 2 and 0"});
  refused([&] { Pipe<double>({}, 1); }, {"at least 1 partition", "found 0 and 1"});
  auto twice = row.parts;
  twice.push_back(row.parts[0]);
  refused([&] { Pipe<double>(twice, 1); }, {"each layer in one partition", "calls0"});
  Pipe<double> pipe(row.parts, 2);
  Context context;
  refused([&] { pipe.backward(Array<double>({2, 2}), context); }, {"found nothing"});
  const auto x = random_array<double>({3, 2}, 1);
  pipe.forward(x, context);
  refused([&] { pipe.backward(Array<double>({2, 2}), context); }, {"[3, 2]", "[2, 2]"});
  Sequential<double> layers = ::row();
  refused(
      [&] {
        Context own;
        pipe_of(layers, 2, 2).forward(x, own);
      },
      {"partition 0, micro-batch 0, forward", "[*, 8]", "[2, 2]"});
}
