#include <fmt/core.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <optional>
#include <utility>

#include "bench.hpp"
#include "bench_table.hpp"
#include "commands.hpp"
#include "jobs.hpp"
#include "machine.hpp"
#include "text.hpp"

namespace baton::cli {
namespace {

[[noreturn]] void refuse(const std::string& sentence) {
  throw Error(ErrorCode::invalid_argument, sentence);
}

Through through_of(const std::string& text) {
  if (text == "api") return Through::api;
  if (text == "drop-in") return Through::drop_in;
  if (text == "both") return Through::both;
  refuse(fmt::format("--through: expected api, drop-in or both, found \"{}\"", text));
}

/// What there is to do, as every rank has found it for itself.
struct Task {
  std::vector<Exercise> exercises;
  Options library;
  std::ofstream json;  // rank 0's
};

Task task_of(const BenchOptions& options, World& world) {
  Task task;
  task.exercises = exercises_for(options, world.size());
  task.library = Options::from_environment();
  if (!options.trace.empty()) task.library.trace = options.trace;
  if (options.contest.through != Through::api && drop_in().empty()) {
    refuse(
        "--through: expected a drop-in to be loaded into this process (LD_PRELOAD), found no "
        "symbol baton_pmpi_version");
  }
  if (world.rank() != 0) return task;
  if (!options.json.empty()) task.json = json_file(options.json);
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
        table_(world.rank() == 0, world.size(), task_.exercises.size(), options.progress) {}

  /// The exit code.
  int run(const Launch& launch) {
    table_.show("messages between neighbours");
    network_ = rings_.measure(options_.contest.seconds);
    hosts_ = world_.texts(host_name());
    table_.print(head(launch));
    for (const Exercise& exercise : task_.exercises) run_exercise(exercise);
    stop_recording(communicator_);
    table_.close();
    if (task_.json.is_open()) write_json();
    return table_.wrong() > 0 ? 1 : 0;
  }

 private:
  void run_exercise(const Exercise& exercise) {
    const Demand demand = demand_of(exercise, world_.hosts());
    int round = 0;
    const Contest found =
        contest(world_, communicator_, exercise, rings_.probes(demand.block), options_.contest,
                [&] { table_.show(fmt::format("{}, pair {}", exercise.text(), ++round)); });
    Network network = network_;
    for (const Exchange& exchange : found.exchanges) {
      (exchange.across ? network.across : network.within)->paces.push_back(exchange.pace);
    }
    table_.add({exercise, found, lower_bound(demand, network, found.repeats)});
  }

  std::string head(const Launch& launch) const {
    std::string text =
        fmt::format("# baton {}, {} on {}, {}, {}\n", BATON_VERSION, counted(world_.size(), "rank"),
                    counted(world_.hosts().back() + 1, "host"), launch.transport(), processor());
    for (const auto& [where, path] : {std::pair("within a host", &network_.within),
                                      std::pair("from host to host", &network_.across)}) {
      if (*path) text += fmt::format("# messages {}: {}\n", where, text_of(**path));
    }
    return text +
           fmt::format(
               "# {} {}; size: of the whole vector; times: of the slowest rank, medians of "
               "{} pairs ({} from {} on), +- half the\n"
               "# distance of the quartiles; ratio: built-in / ours, median over pairs with "
               "its 95 % interval by order statistics;\n"
               "# limit: lower bound by latency and bandwidth of plain messages / our time\n",
               options_.type, options_.op, options_.contest.pairs, options_.contest.large_pairs,
               human_bytes(options_.contest.large)) +
           bench_head(LastColumn::limit);
  }

  void write_json() {
    std::vector<Json> hosts, own, mpi;
    for (const std::string& host : hosts_) hosts.emplace_back(host);
    for (const std::string& variable : own_environment()) own.emplace_back(variable);
    for (const std::string& variable : mpi_environment()) mpi.emplace_back(variable);
    const std::string library = drop_in();
    const Json result =
        Json::object({{"baton", BATON_VERSION},
                      {"mpi", mpi_library()},
                      {"compiler", compiler()},
                      {"processor", processor()},
                      {"ranks", world_.size()},
                      {"hosts", Json::array(hosts)},
                      {"environment",
                       Json::object({{"ours", Json::array(own)}, {"built_in", Json::array(mpi)}})},
                      {"drop_in", library.empty() ? Json::null() : Json(library)},
                      {"pairs", options_.contest.pairs},
                      {"large_pairs", options_.contest.large_pairs},
                      {"large_bytes", options_.contest.large},
                      {"sample_ms", options_.sample_ms},
                      {"interval", "95 % interval of the median, by order statistics"},
                      {"messages", network_.json()},
                      {"checked", table_.checks()},
                      {"wrong", table_.wrong()},
                      {"rows", Json::array(table_.json())}});
    cli::write_json(task_.json, options_.json, result);
  }

  World& world_;
  const BenchOptions& options_;
  Task task_;
  Communicator communicator_;
  Rings rings_;
  BenchTable table_;
  Network network_;
  std::vector<std::string> hosts_;
};

int bench(BenchOptions options, Launch& launch) {
  options.contest.seconds = options.sample_ms * 1e-3;
  options.contest.choice.segment = segment_of(options.segment);
  if (!options.device.empty()) return bench_device(options, launch);
  if (launch.processes() == 0) {
    throw Error(ErrorCode::unsupported,
                "bench: expected processes of MPI, whose built-ins to compare with (mpirun -n 2 "
                "baton bench), found none");
  }
  int code = 0;
  on_ranks(launch, 0, {}, [&](World& world) {
    Task task;
    world.together([&] {
      options.contest.through = through_of(options.through);
      task = task_of(options, world);
    });
    code = Benchmark(world, options, std::move(task)).run(launch);
  });
  return code;
}

void add_options(CLI::App& sub, BenchOptions& options) {
  ContestOptions& contest = options.contest;
  sub.add_option("collectives", options.collectives,
                 "by name, or all (default: broadcast all_reduce all_gather reduce_scatter\n"
                 "all_to_all)")
      ->type_name("");
  sub.add_option("--bytes", options.bytes,
                 "size of the whole vector, as nccl-tests counts it: one, or FIRST:LAST\n"
                 "(default 8:64M)")
      ->type_name("SIZE")
      ->take_last();
  sub.add_option("--factor", options.factor, "from one size to the next (default 2)")
      ->type_name("N")
      ->check(whole_number(2, 1 << 20));
  sub.add_option("--pairs", contest.pairs, "samples of each side (default 20)")
      ->type_name("N")
      ->take_last()
      ->check(whole_number(1, 1000));
  sub.add_option("--large-pairs", contest.large_pairs,
                 "the same from 16 MiB on (default 6, the fewest that bound a median with\n"
                 "95 % confidence)")
      ->type_name("N")
      ->take_last()
      ->check(whole_number(1, 1000));
  sub.add_option("--sample-ms", options.sample_ms,
                 "least duration of a sample: calls are repeated to fill it (default 5)")
      ->type_name("MS")
      ->take_last()
      ->check(whole_number(1, 60000));
  sub.add_option("--through", options.through,
                 "what is compared with the built-ins: api, drop-in (MPI_... of a preloaded one\n"
                 "against PMPI_... of the library), or both (default api)")
      ->type_name("WAY");
  sub.add_option("--algorithm", contest.choice.algorithm,
                 "of the API, by name (default: the library chooses)")
      ->type_name("A");
  sub.add_option("--segment", options.segment,
                 "of the API: bytes per message piece; 0: not cut (default: the library chooses)")
      ->type_name("S");
  sub.add_option("--dtype", options.type, "as of `baton run` (default f32)")->type_name("TYPE");
  sub.add_option("--op", options.op, "as of `baton run` (default sum)")->type_name("OP");
  sub.add_option("--root", options.root, "(default 0)")
      ->type_name("R")
      ->check(whole_number(0, INT32_MAX));
  add_trace_option(sub, options.trace);
  sub.add_option("--json", options.json,
                 "write everything there: all samples, flags, versions, point-to-point times")
      ->type_name("FILE");
  auto* device =
      sub.add_option(
             "--device", options.device,
             "cuda: on GPUs, in their streams, by threads of one process; under mpirun beside\n"
             "NCCL's collectives, and ours over its messages; a GPU may have several ranks")
          ->type_name("NAME")
          ->excludes(sub.get_option("--through"))
          ->excludes(sub.get_option("--trace"));
  sub.add_option("--ranks", options.ranks,
                 "on GPUs, without mpirun (default: one on each, but two at least)")
      ->type_name("N")
      ->needs(device)
      ->check(whole_number(1, 4096));
  sub.add_flag("--progress", options.progress, "show progress even where stderr is no terminal");
}

}  // namespace

std::vector<Exercise> exercises_for(const BenchOptions& options, int ranks) {
  std::vector<std::string> names = options.collectives;
  if (names.empty()) {
    names = {"broadcast", "all_reduce", "all_gather", "reduce_scatter", "all_to_all"};
  }
  std::vector<Exercise> exercises;
  for (const std::string& name : names) {
    for (const Collective collective : collectives_named(name)) {
      const bool barrier = collective == Collective::barrier;
      for (Exercise& exercise : sized_exercises(
               collective, ranks,
               barrier ? std::vector<std::int64_t>{0} : sizes_named(options.bytes, options.factor),
               datatype_named(options.type), op_named(options.op), options.root)) {
        exercises.push_back(std::move(exercise));
      }
    }
  }
  return exercises;
}

std::ofstream json_file(const std::string& path) {
  std::ofstream file(path);
  if (!file) refuse(fmt::format("--json: expected a file to write, found {}", path));
  return file;
}

void write_json(std::ofstream& file, const std::string& path, const Json& json) {
  file << json.text() << '\n';
  file.close();
  if (!file) refuse(fmt::format("--json: expected to write {}, found it fail", path));
}

void add_bench(CLI::App& app, Command& command) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* sub = app.add_subcommand(
      "bench",
      "Time collectives against the MPI library's own, in turn (ours, built-in, "
      "built-in, ours, ...)\n"
      "in one run, and against the limit that plain messages set; on GPUs, against NCCL's own.\n"
      "Needs mpirun, but for ours alone on GPUs");
  add_options(*sub, *options);
  sub->footer(
      "Results are checked once per size. All sides repeat their call equally often in a sample,\n"
      "which begins with a barrier and takes as long as its slowest rank. The limit is rounds *\n"
      "latency + bytes of the busiest rank (or host) / bandwidth, by plain messages in the same "
      "run:\n"
      "a bound for ranks that send one message at a time.\n"
      "\n"
      "Examples:\n"
      "  mpirun -n 2 baton bench\n"
      "  mpirun -n 4 baton bench all_reduce --bytes 1K:16M --factor 4 --json all_reduce.json\n"
      "  baton bench --device cuda --ranks 4 --bytes 1M:64M\n"
      "  mpirun -n 4 baton bench --device cuda --bytes 1M:64M\n"
      "  mpirun -n 2 -x LD_PRELOAD=libbaton-pmpi-openmpi.so baton bench --through both\n"
      "\n" +
      environment_help());
  sub->callback([options, &command] {
    command = [options](Launch& launch) { return bench(*options, launch); };
  });
}

}  // namespace baton::cli
