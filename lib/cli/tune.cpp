#include "tune.hpp"

#include <fmt/core.h>
#include <sys/utsname.h>

#include <fstream>
#include <memory>
#include <optional>
#include <thread>

#include "commands.hpp"
#include "jobs.hpp"
#include "machine.hpp"
#include "progress.hpp"
#include "text.hpp"

namespace baton::cli {
namespace {

struct TuneCommand {
  std::string collective = "all", bytes = "8:16M", output, hosts;
  int ranks = 0, repeats = 5;
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

void write(const selecting::TableSection& section, const std::string& file) {
  const std::string text = print(section);
  if (file.empty()) {
    fmt::print("{}", text);
    return;
  }
  std::ofstream out(file);
  out << text;
  out.close();
  if (!out) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("--output: expected a file that can be written, found \"{}\"", file));
  }
}

int tune(const TuneCommand& command, Launch& launch) {
  RunOptions run;  // for what the two commands share
  run.hosts = command.hosts;
  run.ranks = command.ranks;
  TuneOptions options;
  options.collectives = collectives_named(command.collective);
  options.sizes = sizes_named(command.bytes);
  options.repeats = command.repeats;
  const int ranks = ranks_for(run, launch.processes());

  on_ranks(launch, ranks, thread_options(run), [&](World& world) {
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
      if (speaks) write(section, command.output);
    });
  });
  return 0;
}

}  // namespace

void add_tune(CLI::App& app, Command& command) {
  auto options = std::make_shared<TuneCommand>();
  CLI::App* sub = app.add_subcommand(
      "tune",
      "Measure every algorithm in several segments on these ranks, and write a table of the\n"
      "fastest, by collective and size. Under mpirun ranks are its processes, otherwise threads");
  sub->add_option("collective", options->collective, "such as all_reduce, or all (the default)")
      ->type_name("");
  sub->add_option("--bytes", options->bytes,
                  "size of the whole vector: one, or FIRST:LAST, doubling (default 8:16M)")
      ->type_name("SIZE");
  sub->add_option("--output", options->output, "where to write the table (default: print it)")
      ->type_name("FILE");
  sub->add_option("--repeats", options->repeats,
                  "measurements of each that may be the fastest; their median counts (default 5)")
      ->type_name("N")
      ->check(whole_number(1, 1000));
  sub->add_option("--ranks", options->ranks,
                  "threads to run as ranks (default 4); under mpirun, its own")
      ->type_name("N")
      ->check(whole_number(1, 4096));
  sub->add_option("--hosts", options->hosts, "threads as if on several hosts: 2x4, or 0,1,0,1")
      ->type_name("HOSTS");
  sub->add_flag("--progress", options->progress, "show progress even where stderr is no terminal");
  sub->footer(
      "BATON_TABLE=FILE uses the table, over the same transport and library, and for ranks on "
      "such\n"
      "hosts only. Tables of several may be joined end to end. The machine should be quiet.\n"
      "\n"
      "Examples:\n"
      "  mpirun -n 2 baton tune --output pair.txt\n"
      "  mpirun -n 2 -x BATON_TABLE=pair.txt program\n"
      "  baton tune all_reduce --ranks 2 --bytes 8:1K --repeats 1");
  sub->callback([options, &command] {
    command = [options](Launch& launch) { return tune(*options, launch); };
  });
}

}  // namespace baton::cli
