#include "tune.hpp"

#include <fmt/core.h>
#include <sys/utsname.h>

#include <memory>
#include <optional>
#include <thread>

#include "cli/commands.hpp"
#include "cli/common/collective_options.hpp"
#include "cli/common/machine.hpp"
#include "cli/common/progress.hpp"
#include "cli/common/text.hpp"

namespace baton::cli::tune {
namespace {

struct TuneCommand {
  CollectiveOptions data = {.collective = "all", .bytes = "8:16M"};
  std::string output;
  int repeats = 5;
  bool progress = false;
};

/// The processor and the kernel, for readers of the table.
std::string machine() {
  utsname system{};
  const bool known = uname(&system) == 0;
  return fmt::format("{}, {}, {} {}", processor(),
                     counted(std::thread::hardware_concurrency(), "core"),
                     known ? system.sysname : "unknown", known ? system.release : "system");
}

int tune(const TuneCommand& command, Launch& launch) {
  TuneOptions options;
  options.collectives = collectives_named(command.data.collective);
  options.sizes = command.data.sizes();
  options.repeats = command.repeats;
  const int ranks = command.data.rank_count(launch.processes());

  on_ranks(launch, ranks, command.data.threads(), [&](World& world) {
    Options library = Options::from_environment();
    library.table.clear();
    Communicator communicator(world.transport(), library);
    const bool speaks = world.rank() == 0;
    std::optional<Progress> progress;
    const auto total = static_cast<std::int64_t>(options.collectives.size() * options.sizes.size());
    if (speaks) progress.emplace(total, command.progress);
    std::int64_t done = 0;
    selecting::TableSection section;
    section.scope = selecting::scope_of(communicator.transport(), communicator.hosts().get());
    section.machine = machine();
    section.rows = tune(world, communicator, options, [&](const std::string& what) {
      if (progress) progress->show(done, what);
      ++done;
    });
    progress.reset();
    world.together([&] {
      if (!speaks) return;
      if (command.output.empty()) {
        fmt::print("{}", print(section));
      } else {
        write_file("--output", command.output, print(section));
      }
    });
  });
  return 0;
}

}  // namespace

void add_tune(CommandLine& program) {
  auto options = std::make_shared<TuneCommand>();
  const OptionSet set = program.add_command(
      "tune",
      "Measure every algorithm in several segments on these ranks, and write a table of the\n"
      "fastest, by collective and size. Under mpirun ranks are its processes, otherwise threads",
      [options](Launch& launch) { return tune(*options, launch); });
  const CollectiveOptionSet data(set, options->data);
  data.collective(", or all (the default)");
  data.bytes(":\none, or FIRST:LAST, doubling (default 8:16M)");
  set.add("--output", options->output, "file for the table (default: print it)").form("FILE");
  set.add("--repeats", options->repeats,
          "measurements of each candidate that may be the fastest; the median counts (default 5)")
      .form("N")
      .range(1, 1000);
  data.ranks("threads to run as ranks (default 4); under mpirun, its own");
  data.hosts("threads as if on several hosts, ");
  add_progress(set, options->progress);
  set.footer(
      "BATON_TABLE=FILE uses the table, for ranks on such hosts over the same transport and\n"
      "library. Tables of several may be joined end to end. The machine should be quiet.\n"
      "\n"
      "Examples:\n"
      "  mpirun -n 2 baton tune --output pair.txt\n"
      "  mpirun -n 2 -x BATON_TABLE=pair.txt program\n"
      "  baton tune all_reduce --ranks 2 --bytes 8:1K --repeats 1");
}

}  // namespace baton::cli::tune
