#include <fmt/core.h>

#include <algorithm>
#include <filesystem>

#include "calibration.hpp"
#include "cli/commands.hpp"
#include "cli/common/machine.hpp"
#include "cli/common/text.hpp"

namespace baton::cli::calibrate {
namespace {

struct CalibrateCommand {
  std::string output;
  int sample_ms = 2;
  int processors = -1;
  bool progress = false;
};

constexpr int parts = 30;  // about as many are announced

int calibrate(const CalibrateCommand& command, Launch& launch) {
  on_ranks(launch, 1, {}, [&](World& world) {
    const bool speaks = world.rank() == 0;
    Progress progress(parts, command.progress, speaks);
    Calibration calibration(world, 1e-3 * command.sample_ms,
                            [&](const std::string& what) { progress.next(what); });
    Network described;
    described.name =
        command.output.empty() ? "measured" : std::filesystem::path(command.output).stem().string();
    described.source =
        fmt::format("baton calibrate, {} ranks on {}, {}, {}", world.size(),
                    counted(world.host_count(), "host"), launch.transport(), processor());
    std::ranges::replace(described.source, '#', '_');
    print(described);  // a name that is refused is refused before anything is measured
    Network network = calibration.measure(command.processors);
    progress.clear();
    network.name = described.name;
    network.source = described.source;
    world.together([&] {
      if (speaks) write_output(command.output, print(network));
    });
  });
  return 0;
}

}  // namespace

void add_calibrate(CommandLine& program) {
  const auto [set, options] = program.add_command(
      "calibrate",
      "Measure the parameters of a network for baton simulate, by messages between two ranks and\n"
      "between all at once, and write them to a file; under mpirun",
      calibrate);
  set.add("-o,--output", options->output, "file for the network (default: print it)").form("FILE");
  set.add("--sample-ms", options->sample_ms, "least time of a ping-pong (default 2)")
      .form("MS")
      .range(1, 10'000);
  set.add("--processors", options->processors,
          "number that all ranks of all hosts share; 0: each rank has its own (default: found\n"
          "out, except on virtual hosts)")
      .form("N")
      .range(0, 1 << 20);
  add_progress(set, options->progress);
  set.footer(
      "The machine should be quiet. Only sends and receives are measured, no collective.\n"
      "\n"
      "Examples:\n"
      "  mpirun -n 2 baton calibrate -o pair.txt\n"
      "  scripts/virtual-cluster with 8 1gbit baton calibrate --processors 2 -o cluster.txt\n"
      "  baton simulate all_reduce --network cluster.txt --algorithm all");
}

}  // namespace baton::cli::calibrate
