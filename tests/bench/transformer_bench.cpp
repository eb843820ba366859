// Steps (forward and backward) of a transformer block in f32, one each time a line arrives on rank
// 0's standard input; prints its seconds, of the slowest rank. So scripts/bench-transformer has two
// programs take turns, of which the other sleeps. Started alone or by a launcher of MPI.

#include <fmt/core.h>
#include <mpi.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <thread>

#include "baton/mpi.hpp"
#include "block_sizes.hpp"
#include "transformer/block.hpp"

namespace baton::transformer {
namespace {

using Clock = std::chrono::steady_clock;

struct Options : bench::BlockSizes {
  std::string form = "whole";
  int share = 0;
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Whether there is another step to do. Ranks that wait sleep meanwhile.
bool another(Communicator& world) {
  std::int32_t go = 0;
  if (world.rank() == 0) {
    go = std::cin.get() == '\n' ? 1 : 0;
    for (int peer = 1; peer < world.size(); ++peer) world.send(std::span(&go, 1), peer);
  } else {
    Request request = world.start_recv(std::span(&go, 1), 0);
    while (!request.test()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return go != 0;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Bytes a second in each direction that two ranks exchange at once, in messages of 1 MiB.
double bandwidth(Communicator& world) {
  constexpr std::size_t bytes = 1 << 20, messages = 16;
  const std::vector<std::uint8_t> from(bytes);
  std::vector<std::uint8_t> to(bytes);
  const int peer = world.rank() ^ 1;
  std::vector<double> seconds;
  for (int repeat = 0; repeat < 11; ++repeat) {
    world.barrier();
    const auto start = Clock::now();
    for (std::size_t i = 0; i < messages; ++i) {
      Request receive = world.start_recv(std::span(to), peer);
      world.send(std::span(from), peer);
      receive.wait();
    }
    seconds.push_back(seconds_since(start));
  }
  return messages * bytes / median(seconds);
}

/// Seconds of forward and backward on this rank, where all begin together.
double step(Communicator& world, TransformerBlock<float>& block, const Array<float>& x,
            const Array<float>& dy) {
  Context context;
  world.barrier();
  const auto start = Clock::now();
  block.parallel().zero_grads();
  block.forward_parallel(x, context);
  block.backward_parallel(dy, context);
  return seconds_since(start);
}

/// Prints medians of some steps: seconds, seconds in exchanges, and beside these what the budget
/// comes to: bytes, messages, and the bandwidth that there is.
void share(Communicator& world, const Options& options, TransformerBlock<float>& block,
           const Array<float>& x) {
  if (world.size() != 2)
    throw std::invalid_argument(fmt::format("--share: expected 2 ranks, found {}", world.size()));
  Traffic budget;
  for (const BudgetLine& line : block.budget(x.shape())) budget += line.sent;
  std::vector<double> seconds, exchanging;
  const Array<float> dy = x.copy();
  step(world, block, x, dy), step(world, block, x, dy);  // what is done once
  for (int i = 0; i < options.share; ++i) {
    const double before = seconds_in_exchanges();
    seconds.push_back(step(world, block, x, dy));
    exchanging.push_back(seconds_in_exchanges() - before);
  }
  const double rate = bandwidth(world);
  if (world.rank() == 0)
    fmt::print("{:.6f} {:.6f} {} {} {:.0f}\n", median(seconds), median(exchanging), budget.bytes,
               budget.messages, rate);
}

void steps(Communicator& world, const Options& options) {
  BlockConfig config;
  config.d_model = options.d_model, config.heads = options.heads, config.d_ff = options.d_ff;
  config.activation = Activation::gelu;
  Mesh mesh;
  if (options.form != "whole")
    mesh = Mesh(world, {{options.form == "tp" ? Axis::tp : Axis::sp, world.size()}});
  TransformerBlock<float> block(config, {1, 2});
  block.parallelize(mesh);
  const std::int64_t positions = options.seq / mesh.size(Axis::sp);
  auto x = Array<float>::uninitialized({options.batch, positions, options.d_model});
  fill_normal(x.view(), {3, 4}, 1);
  if (options.share > 0) return share(world, options, block, x);
  const Array<float> dy = x.copy();
  while (another(world)) {
    double seconds = step(world, block, x, dy);
    world.all_reduce(std::span(&seconds, 1), max);
    if (world.rank() == 0) {
      fmt::print("{:.6f}\n", seconds);
      std::fflush(stdout);
    }
  }
}

/// MiB that attention, forward and backward, adds to the process beside its arguments and results.
double attention_memory(const Options& options) {
  const auto peak = [] {  // getrusage() would count what was there before exec
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;) {
      double kib = 0;
      if (word == "VmHWM:" && status >> kib) return kib / 1024;
    }
    throw std::runtime_error("transformer_bench: expected VmHWM in /proc/self/status, found none");
  };
  const auto run = [&](std::int64_t batch, std::int64_t seq) {
    const Shape shape{batch, seq, options.heads, options.d_model / options.heads};
    Array<float> arrays[8];
    for (auto& array : arrays) {
      array = Array<float>::uninitialized(shape);
      fill_uniform(array.view(), {5, 6}, -1, 1);
    }
    auto& [q, k, v, out, dout, dq, dk, dv] = arrays;
    Array<float> log_sums({batch, options.heads, seq});
    const double before = peak();
    attention<float>(q, k, v, {}, out.view(), log_sums.view());
    attention_backward<float>(dout, q, k, v, out, log_sums, {}, dq.view(), dk.view(), dv.view());
    return peak() - before;
  };
  run(1, 16);  // what the libraries allocate once
  return run(options.batch, options.seq);
}

}  // namespace
}  // namespace baton::transformer

int main(int count, char** words) {  // NOLINT(bugprone-exception-escape): ends with the error
  using namespace baton::transformer;
  Options options;
  CLI::App app("Steps of a transformer block, one for each line of input");
  app.add_option("form", options.form)->check(CLI::IsMember({"whole", "tp", "sp", "memory"}));
  app.add_option("--share", options.share, "steps of which to print the part that exchanges take");
  options.add_options(app);
  CLI11_PARSE(app, count, words);
  if (options.form == "memory") {
    fmt::print("{:.1f}\n", attention_memory(options));
    return 0;
  }
  MPI_Init(&count, &words);
  {
    baton::Communicator world(baton::mpi_process_transport(MPI_COMM_WORLD));
    steps(world, options);
  }
  MPI_Finalize();
}
