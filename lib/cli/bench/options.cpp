#include "options.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string_view>

#include "cli/common/machine.hpp"
#include "cli/common/text.hpp"

namespace baton::cli::bench {
namespace {

void add_options(const OptionSet& set, BenchOptions& options) {
  const CollectiveOptionSet data(set, options.data);
  ComparisonOptions& comparison = options.comparison;
  set.add("collectives", options.collectives,
          "by name, or all (default: broadcast all_reduce all_gather reduce_scatter\n"
          "all_to_all)")
      .form("");
  data.bytes(":\none, or FIRST:LAST (default 8:64M)").last_counts();
  set.add("--factor", options.factor, "ratio of each size to the one before (default 2)")
      .form("N")
      .range(2, 1 << 20);
  set.add("--pairs", comparison.pairs, "samples of each side (default 20)")
      .form("N")
      .last_counts()
      .range(1, 1000);
  set.add("--large-pairs", comparison.large_pairs,
          "the same from 16 MiB on (default 6, the fewest that bound a median with\n"
          "95 % confidence)")
      .form("N")
      .last_counts()
      .range(1, 1000);
  set.add("--sample-ms", options.sample_ms,
          "least duration of a sample: calls are repeated to fill it (default 5)")
      .form("MS")
      .last_counts()
      .range(1, 60000);
  const Option through =
      set.add("--through", options.through,
              "interface to compare with the built-ins: api, drop-in (MPI_... of a preloaded one\n"
              "against PMPI_... of the library), or both (default api)")
          .form("WAY");
  data.algorithm("of the API, by name (default: the library chooses)");
  data.segment("of the API: bytes per message piece; 0: not cut (default: the library chooses)");
  data.type();
  data.op();
  data.root();
  const Option registry = data.registry();
  const Option trace = add_trace(set, options.trace);
  set.add("--json", options.json,
          "write all samples, options, versions and times of plain messages")
      .form("FILE");
  const Option device =
      set.add("--device", options.device,
              "cuda: on GPUs, in their streams, by threads of one process; under mpirun beside\n"
              "NCCL's collectives, and ours over its messages; a GPU may have several ranks.\n"
              "Needs the program baton-bench-device of a build with CUDA")
          .form("NAME")
          .excludes({through, registry, trace});
  data.ranks("on GPUs, without mpirun (default: one on each, at least two)").needs(device);
  add_progress(set, options.progress);
}

}  // namespace

void add_bench(CommandLine& program, const std::function<int(BenchOptions, Launch&)>& run) {
  auto options = std::make_shared<BenchOptions>();
  const OptionSet set = program.add_command(
      "bench",
      "Time collectives against the MPI library's own, in turn (ours, built-in, built-in, ours,\n"
      "...) in one run, and against the limit that plain messages set; on GPUs, against NCCL's.\n"
      "Needs mpirun, except for ours alone on GPUs",
      [options, run](Launch& launch) {
        BenchOptions given = *options;
        given.comparison.seconds = given.sample_ms * 1e-3;
        given.comparison.choice = {given.data.algorithm, given.data.segment_bytes()};
        return run(std::move(given), launch);
      });
  add_options(set, *options);
  set.footer(
      "Results are checked once per size. All sides repeat their call equally often in a sample,\n"
      "which begins with a barrier and takes as long as its slowest rank. The limit is rounds *\n"
      "latency + bytes of the busiest rank (or host) / bandwidth, by plain messages in the same\n"
      "run: a bound for ranks that send one message at a time.\n"
      "\n"
      "Examples:\n"
      "  mpirun -n 2 baton bench\n"
      "  mpirun -n 4 baton bench all_reduce --bytes 1K:16M --factor 4 --json all_reduce.json\n"
      "  baton bench --device cuda --ranks 4 --bytes 1M:64M\n"
      "  mpirun -n 4 baton bench --device cuda --bytes 1M:64M\n"
      "  mpirun -n 2 -x LD_PRELOAD=libbaton-pmpi-openmpi.so baton bench --through both\n"
      "\n" +
      environment_help());
}

void check_device(const BenchOptions& options, const Launch& launch) {
  if (options.device != "cuda") {
    refuse(fmt::format("--device: expected cuda, found \"{}\"", options.device));
  }
  if (launch.processes() > 0 && options.data.ranks > 0) {
    refuse("--ranks: expected ranks that are threads, found processes of MPI");
  }
}

void become_bench_device(int argc, char** argv) {
  const auto names_device = [](std::string_view argument) {
    return argument == "--device" || argument.starts_with("--device=");
  };
  if (argc < 2 || std::string_view(argv[1]) != "bench") return;
  if (std::none_of(argv + 2, argv + argc, names_device)) return;
  execv((program_folder() / device_program).c_str(), argv);
}

std::vector<Case> cases_for(const BenchOptions& options, int ranks) {
  std::vector<std::string> names = options.collectives;
  if (names.empty()) {
    names = {"broadcast", "all_reduce", "all_gather", "reduce_scatter", "all_to_all"};
  }
  std::vector<Case> cases;
  for (const std::string& name : names) {
    for (const Collective collective : collectives_named(name)) {
      const bool barrier = collective == Collective::barrier;
      for (Case& subject :
           sized_cases(collective, ranks,
                       barrier ? std::vector<std::int64_t>{0} : options.data.sizes(options.factor),
                       options.data.datatype(), options.data.op_kind(), options.data.root_rank())) {
        cases.push_back(std::move(subject));
      }
    }
  }
  return cases;
}

}  // namespace baton::cli::bench
