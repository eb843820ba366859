#include <fmt/core.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "baton/version.hpp"
#include "cli/commands.hpp"
#include "cli/common/machine.hpp"
#include "cli/common/text.hpp"
#include "options.hpp"
#include "report.hpp"

namespace baton::cli::bench {
namespace {

/// A rank's work, which each rank finds for itself.
struct Task {
  std::vector<Case> cases;
  Options library;
  std::optional<JsonFile> json;  // rank 0's
};

Task task_of(BenchOptions& options, World& world) {
  Task task;
  const std::string& through = options.through;
  if (through != "api" && through != "drop-in" && through != "both") {
    refuse(fmt::format("--through: expected api, drop-in or both, found \"{}\"", through));
  }
  options.comparison.api = through != "drop-in";
  options.comparison.drop_in = through != "api";
  task.cases = cases_for(options, world.size());
  task.library = Options::from_environment();
  if (!options.trace.empty()) task.library.trace = options.trace;
  if (!options.data.registries.empty() && !options.comparison.api) {
    refuse("--registry: expected --through api or both, which use it, found drop-in");
  }
  task.library.registry = std::make_shared<const Registry>(options.data.registry());
  if (!options.data.algorithm.empty()) {
    for (const Case& subject : task.cases)
      task.library.registry->find(subject.collective(), options.data.algorithm);
  }
  if (options.comparison.drop_in && drop_in().empty()) {
    refuse(
        "--through: expected a drop-in to be loaded into this process (LD_PRELOAD), found no "
        "symbol baton_pmpi_version");
  }
  if (world.rank() == 0 && !options.json.empty()) task.json.emplace(options.json);
  return task;
}

/// One rank's part of the benchmark. Rank 0 prints.
class Benchmark {
 public:
  Benchmark(World& world, const BenchOptions& options, Task task)
      : world_(world),
        options_(options),
        task_(std::move(task)),
        communicator_(world.transport(), task_.library),
        rings_(world),
        report_(world.rank() == 0, world.size(), task_.cases.size(), options.progress) {}

  /// The exit code.
  int run(const Launch& launch) {
    report_.show_progress("messages between neighbours");
    links_ = rings_.measure(options_.comparison.seconds);
    const std::vector<std::string> hosts = world_.texts(host_name());
    report_.print(head(launch));
    for (const Case& subject : task_.cases) run_case(subject);
    stop_recording(communicator_);
    report_.close();
    if (task_.json) task_.json->write(result(hosts));
    return report_.wrong() > 0 ? 1 : 0;
  }

 private:
  void run_case(const Case& subject) {
    const Demand demand = demand_of(subject, world_.hosts());
    int round = 0;
    Comparison found = compare_case(
        world_, communicator_, subject, rings_.probes(demand.block), options_.comparison,
        [&] { report_.show_progress(fmt::format("{}, pair {}", subject.text(), ++round)); });
    Links links = links_;
    for (const Exchange& exchange : found.exchanges) {
      (exchange.across ? links.across : links.within)->exchanges.push_back(exchange);
    }
    const double bound = lower_bound(demand, links, found.calls);
    report_.add({subject, std::move(found), bound});
  }

  std::string head(const Launch& launch) const {
    std::string text =
        fmt::format("# baton {}, {} on {}, {}, {}\n", version(), counted(world_.size(), "rank"),
                    counted(world_.host_count(), "host"), launch.transport(), processor());
    for (const auto& [where, link] : {std::pair("within a host", &links_.within),
                                      std::pair("from host to host", &links_.across)}) {
      if (!*link) continue;
      const Exchange& largest = (*link)->exchanges.back();
      text += fmt::format("# messages {}: latency {} us, {:.2f} GB/s each way at {}\n", where,
                          microseconds((*link)->latency), largest.bandwidth() * 1e-9,
                          human_bytes(largest.bytes));
    }
    return text +
           fmt::format(
               "# {} {}; size: of the whole vector; times: of the slowest rank, medians of "
               "{} pairs ({} from {} on), +- half the\n"
               "# distance of the quartiles; ratio: built-in / ours, median over pairs with "
               "its 95 % interval by order statistics;\n"
               "# limit: lower bound by latency and bandwidth of plain messages / our time\n",
               name(options_.data.datatype()), name(options_.data.op_kind()),
               options_.comparison.pairs, options_.comparison.large_pairs,
               human_bytes(options_.comparison.large)) +
           bench_head(LastColumn::limit);
  }

  Json result(const std::vector<std::string>& hosts) const {
    const std::string library = drop_in();
    return Json::object({{"baton", version()},
                         {"mpi", mpi_library()},
                         {"compiler", compiler()},
                         {"processor", processor()},
                         {"ranks", world_.size()},
                         {"hosts", hosts},
                         {"environment", Json::object({{"ours", own_environment()},
                                                       {"built_in", mpi_environment()}})},
                         {"drop_in", library.empty() ? Json() : Json(library)},
                         {"pairs", options_.comparison.pairs},
                         {"large_pairs", options_.comparison.large_pairs},
                         {"large_bytes", options_.comparison.large},
                         {"sample_ms", options_.sample_ms},
                         {"interval", "95 % interval of the median, by order statistics"},
                         {"messages", json_of(links_)},
                         {"checked", report_.checks()},
                         {"wrong", report_.wrong()},
                         {"rows", json_of(report_.rows())}});
  }

  World& world_;
  const BenchOptions& options_;
  Task task_;
  Communicator communicator_;
  Rings rings_;
  Report report_;
  Links links_;
};

int bench(BenchOptions options, Launch& launch) {
  if (!options.device.empty()) {
    check_device(options, launch);
    throw Error(
        ErrorCode::unsupported,
        fmt::format("--device: expected the program {}, which a build with CUDA has, in {}, "
                    "found none",
                    device_program, program_folder().string()));
  }
  if (launch.processes() == 0) {
    throw Error(ErrorCode::unsupported,
                "bench: expected processes of MPI, whose built-ins to compare with (mpirun -n 2 "
                "baton bench), found none");
  }
  int code = 0;
  on_ranks(launch, 0, {}, [&](World& world) {
    Task task;
    world.together([&] { task = task_of(options, world); });
    code = Benchmark(world, options, std::move(task)).run(launch);
  });
  return code;
}

}  // namespace

void add_bench(CommandLine& program) { add_bench(program, bench); }

}  // namespace baton::cli::bench
