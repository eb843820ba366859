// The program `baton-train`: exit code 0; 1 where the loss or a gradient is no finite number, or
// --check finds a difference; 2 where it was used wrongly or could not run. One sentence on
// standard error says why.

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <optional>

#include "../ops/ops.hpp"
#include "analyze.hpp"
#include "baton/launch.hpp"
#include "baton/version.hpp"
#include "budget.hpp"
#include "cores.hpp"
#include "counted.hpp"
#include "pipeline.hpp"
#include "plot.hpp"
#include "predict.hpp"
#include "report.hpp"

namespace baton::transformer::program {
namespace {

constexpr const char* description =
    "Trains a model on ranks that share samples, weights or positions, and says how far that is "
    "from\n"
    "the same training on one rank.";
constexpr const char* footer =
    "Examples:\n"
    "  baton-train                                            an MLP on two moons, on one rank\n"
    "  baton-train --parallel dp --ranks 3 --check            on 3 threads, beside one rank\n"
    "  baton-train --parallel tp --check --dtype f64          weights cut over 2 threads\n"
    "  mpirun -n 4 baton-train --model block --parallel sp    positions cut over 4 processes\n"
    "  baton-train --model gpt2 --parallel fsdp --text FILE   a language model, its state divided\n"
    "  baton-train --model block --parallel tp --budget       what each rank would send\n"
    "  baton-train --analyze --model gpt2 --ranks 8           what each rank would hold and send\n"
    "  baton-train --predict --model gpt2 --ranks 8 --network infiniband-100g   time of a step\n"
    "  baton-train pipeline explain 1f1b --ranks 4            who computes what when\n"
    "  baton-train --parallel tp --json > tp-2.json           what scripts/plot and plot draw\n"
    "  baton-train plot split_time tp=2 -o time.svg           draws runs; baton-train plot --help\n"
    "\n"
    "Environment variables are those of `baton run --help`.\n"
    "Exit code: 0, 1 if loss or gradients are not finite or --check finds a difference, 2 if the\n"
    "program cannot do it.";

/// The exit code of a command that needs no ranks, or -1 if `argv` begins with none.
int command(int argc, char** argv) {
  const std::string_view name = argc > 1 ? argv[1] : "";
  const bool speaks = launcher_rank() == 0;
  if (name == "plot") return speaks ? plot(argc - 1, argv + 1) : 0;
  return -1;
}

/// Sets `options` and returns -1, or the exit code of what was answered at once.
int parse(int argc, char** argv, bool speaks, TrainOptions& options) {
  if (std::find(argv, argv + argc, std::string_view("--analyze")) != argv + argc)
    return analyze(argc, argv, speaks);
  if (std::find(argv, argv + argc, std::string_view("--predict")) != argv + argc)
    return predict(argc, argv, speaks);
  if (argc > 1 && std::string_view(argv[1]) == "pipeline") return pipeline(argc, argv, speaks);
  CLI::App app(description, "baton-train");
  app.footer(std::string(footer));
  app.set_version_flag("--version", fmt::format("baton-train {}", version()));
  add_options(app, options);
  try {
    app.parse(argc, argv);
    complete(app, options);
  } catch (const CLI::Success& answer) {
    if (speaks) app.exit(answer);
    return 0;
  }
  return -1;
}

/// Calls body(communicator of all ranks, what this rank has sent so far) on every rank; returns
/// whether they refused nothing. A process that throws ends all of them, since the others may wait
/// for it.
bool on_ranks(Launch& launch, int ranks,
              const std::function<void(Communicator&, const Traffic&)>& body) {
  bool refused = false;
  launch.run(ranks, [&](std::unique_ptr<Transport> transport) {
    try {
      Traffic sent;
      Communicator world(std::make_unique<CountedTransport>(std::move(transport), sent));
      body(world, sent);
    } catch (const Refusal& refusal) {
      if (launch.processes() == 0) throw;
      if (launch.rank() == 0) fmt::print(stderr, "baton-train: {}\n", refusal.what());
      refused = true;
    } catch (const std::exception& error) {
      if (launch.processes() == 0) throw;
      fmt::print(stderr, "baton-train: rank {}: {}\n", launch.rank(), error.what());
      launch.abort(2);
    }
  });
  return !refused;
}

/// call(an element of this type).
template <class Call>
auto with_type(Datatype type, const Call& call) {
  if (type == Datatype::f64) return call(double{});
  if (type == Datatype::bf16) return call(bf16{});
  return call(float{});
}

int run(Launch& launch, const TrainOptions& options) {
  use_blas_threads(options.threads);
  if (options.budget) {
    const bool done = on_ranks(launch, options.ranks, [&](Communicator& world, const Traffic&) {
      with_type(options.dtype, [&]<class T>(T) { print_budget<T>(world, options); });
    });
    return done ? 0 : 2;
  }
  std::optional<Report> report;
  bool good = true;
  const bool done = on_ranks(launch, options.ranks, [&](Communicator& world, const Traffic& sent) {
    Report* const listener =
        world.rank() == 0 ? &report.emplace(options, launch.transport()) : nullptr;
    if (options.cores_per_rank > 0) {
      const Pinning pinning =
          agreed([&] { return pin(world, options.cores_per_rank, launch.processes() > 0); });
      if (listener) listener->pinned(pinning);
    }
    const Outcome outcome = with_type(
        options.dtype, [&]<class T>(T) { return train<T>(world, sent, options, listener); });
    if (listener) good = listener->finish(outcome);
  });
  if (!done) return 2;
  return good ? 0 : 1;
}

int run(int argc, char** argv) {
  std::unique_ptr<Launch> launch;
  try {
    const int done = command(argc, argv);
    if (done >= 0) return done;
    launch = Launch::start(argc, argv);
    TrainOptions options;
    const int answered = parse(argc, argv, launch->rank() == 0, options);
    if (answered >= 0) return answered;
    settle(options, launch->processes());
    return run(*launch, options);
  } catch (const std::exception& error) {
    if ((launch ? launch->rank() : launcher_rank()) == 0)
      fmt::print(stderr, "baton-train: {}\n", error.what());
    return 2;
  }
}

}  // namespace
}  // namespace baton::transformer::program

int main(int argc, char** argv) {
  const int code = baton::transformer::program::run(argc, argv);
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  std::fputs("baton-train: cannot write the results to standard output\n", stderr);
  return 2;
}
