// Steps (forward and backward) of attention or of a transformer block on a CUDA device, or steps of
// its training (AdamW; data-parallel on several ranks), some each time a line arrives on standard
// input; prints the seconds of one, of the slowest rank. Ranks are threads that share the device.
// So scripts/bench-transformer has two programs take turns, of which the other sleeps. Exit code 77
// where there is no device.

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <iostream>

#include "baton/cuda.hpp"
#include "baton/stream.hpp"
#include "baton/thread.hpp"
#include "block_sizes.hpp"
#include "transformer/block.hpp"
#include "transformer/cuda/cuda_accelerator.hpp"
#include "transformer/training/step.hpp"

namespace baton::transformer {
namespace {

using Clock = std::chrono::steady_clock;

struct Options : bench::BlockSizes {
  std::string form = "whole", type = "f32";
  int ranks = 1, steps = 5, bucket_mib = 25;
  bool causal = false;
};

/// All threads' turns.
struct Turns {
  explicit Turns(int ranks) : meeting(ranks) {}
  std::barrier<> meeting;
  std::atomic<bool> go = false;
};

/// Does `options.steps` steps whenever a line arrives.
void take_turns(const Options& options, Accelerator& accelerator, bool first, Turns& turns,
                const std::function<void()>& step) {
  while (true) {
    accelerator.synchronize();
    if (first) turns.go = std::cin.get() == '\n';
    turns.meeting.arrive_and_wait();
    if (!turns.go) return;
    const auto start = Clock::now();
    for (int i = 0; i < options.steps; ++i) step();
    accelerator.synchronize();
    turns.meeting.arrive_and_wait();
    if (!first) continue;
    const std::chrono::duration<double> took = Clock::now() - start;
    fmt::print("{:.7f}\n", took.count() / options.steps);
    std::fflush(stdout);
  }
}

template <class T>
Array<T> drawn(const Shape& shape, std::uint64_t seed) {
  auto here = [&] {
    const AcceleratorScope host(nullptr);
    auto array = Array<T>::uninitialized(shape);
    fill_normal(array.view(), {seed, 4}, 1);
    return array;
  }();
  return from_host<T>(here.view());
}

/// Attention alone, forward with or without backward.
template <class T>
void attention_steps(const Options& options, Accelerator& accelerator, Turns& turns) {
  const Shape shape{options.batch, options.seq, options.heads, options.d_model / options.heads};
  AttentionOptions how;
  how.causal = options.causal;
  const Array<T> q = drawn<T>(shape, 1), k = drawn<T>(shape, 2), v = drawn<T>(shape, 3),
                 dout = drawn<T>(shape, 4);
  auto out = Array<T>::uninitialized(shape), dq = Array<T>::uninitialized(shape),
       dk = Array<T>::uninitialized(shape), dv = Array<T>::uninitialized(shape);
  auto log_sums = Array<Wide<T>>::uninitialized({options.batch, options.heads, options.seq});
  take_turns(options, accelerator, true, turns, [&] {
    attention<T>(q, k, v, how, out.view(), log_sums.view());
    if (options.form == "forward") return;
    attention_backward<T>(dout, q, k, v, out, log_sums, how, dq.view(), dk.view(), dv.view());
  });
}

template <class T>
void block_steps(const Options& options, Communicator& world, StreamCommunicator& on_device,
                 Accelerator& accelerator, Turns& turns) {
  BlockConfig config;
  config.d_model = options.d_model, config.heads = options.heads, config.d_ff = options.d_ff;
  config.activation = Activation::gelu;
  config.causal = options.causal;
  const bool trains = options.form == "train";
  const Axis axis = trains ? Axis::dp : options.form == "tp" ? Axis::tp : Axis::sp;
  Mesh mesh;
  if (world.size() > 1) mesh = Mesh(world, on_device, {{axis, world.size()}});
  const auto block = [&] {
    const AcceleratorScope host(nullptr);
    auto made = std::make_unique<TransformerBlock<T>>(config, Random{1, 2});
    made->parallelize(mesh);
    move_to(accelerator, made->parallel().params());
    return made;
  }();
  const std::int64_t samples = options.batch / mesh.size(Axis::dp);
  const Shape shape{samples, options.seq / mesh.size(Axis::sp), options.d_model};
  const Array<T> x = drawn<T>(shape, 3), dy = drawn<T>(shape, 5);
  if (trains) {
    AdamW<T> adamw(block->parallel().params());
    const Share<T> share{{x.copy(), dy.copy()},
                         mesh.rank(Axis::dp) * samples,
                         static_cast<double>(x.size() * mesh.size(Axis::dp)),
                         world.size() > 1 ? Axes(Axis::dp) : Axes()};
    StepOptions how;
    how.bucket_bytes = std::int64_t{options.bucket_mib} << 20;
    return take_turns(options, accelerator, world.rank() == 0, turns,
                      [&] { train_step(block->parallel(), share, adamw, mesh, how); });
  }
  take_turns(options, accelerator, world.rank() == 0, turns, [&] {
    Context context;
    block->parallel().zero_grads();
    block->forward_parallel(x, context);
    block->backward_parallel(dy, context);
  });
}

template <class T>
void run(const Options& options) {
  ThreadOptions threads;
  const auto device = cuda_device(0);
  threads.devices = {device};
  Turns turns(options.ranks);
  run_threads(
      options.ranks,
      [&](std::unique_ptr<Transport> transport) {
        const auto accelerator =
            cuda_accelerator({.tf32 = options.type == "tf32", .reserve = std::size_t{2} << 30});
        const AcceleratorScope scope(accelerator.get());
        auto host = transport->split(0, transport->rank());
        auto groups =
            thread_fused_transport(*host, device, baton::Options::from_environment().timeout);
        StreamCommunicator on_device(std::move(host), device, std::move(groups));
        Communicator world(std::move(transport));
        if (options.form == "attention" || options.form == "forward") {
          attention_steps<T>(options, *accelerator, turns);
        } else {
          block_steps<T>(options, world, on_device, *accelerator, turns);
        }
      },
      threads);
}

}  // namespace
}  // namespace baton::transformer

int main(int count, char** words) {  // NOLINT(bugprone-exception-escape): ends with the error
  using namespace baton::transformer;
  setenv("CUDA_MODULE_LOADING", "EAGER", 0);  // cuBLASLt's kernels, before collectives hold streams
  Options options;
  CLI::App app("Steps of a transformer block on a CUDA device, some for each line of input");
  app.add_option("form", options.form)
      ->check(CLI::IsMember({"whole", "tp", "sp", "train", "attention", "forward"}));
  app.add_option("--type", options.type)->check(CLI::IsMember({"f32", "tf32", "bf16"}));
  app.add_option("--ranks", options.ranks, "threads that share the device");
  app.add_option("--steps", options.steps, "that a line asks for");
  app.add_flag("--causal", options.causal);
  app.add_option("--bucket-mib", options.bucket_mib, "gradients of one exchange");
  options.add_options(app);
  CLI11_PARSE(app, count, words);
  const bool alone =
      options.form == "whole" || options.form == "attention" || options.form == "forward";
  if (alone && options.ranks != 1) {
    fmt::print(stderr, "cuda_block_bench: {}: expected 1 rank, found {}\n", options.form,
               options.ranks);
    return 2;
  }
  if (baton::cuda_devices() == 0) {
    fmt::print("skipped: expected a CUDA device, found none\n");
    return 77;
  }
  options.type == "bf16" ? run<baton::bf16>(options) : run<float>(options);
}
