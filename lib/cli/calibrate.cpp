#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>

#include "calibrate_measure.hpp"
#include "commands.hpp"
#include "machine.hpp"
#include "progress.hpp"
#include "text.hpp"

namespace baton::cli {
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
    std::optional<Progress> progress;
    if (speaks) progress.emplace(parts, command.progress);
    std::int64_t done = 0;
    Calibration calibration(world, 1e-3 * command.sample_ms, [&](const std::string& what) {
      if (progress) progress->show(done, what);
      ++done;
    });
    Network network = calibration.measure(command.processors);
    progress.reset();
    const int hosts = 1 + *std::max_element(world.hosts().begin(), world.hosts().end());
    network.name =
        command.output.empty() ? "measured" : std::filesystem::path(command.output).stem().string();
    network.source = fmt::format("baton calibrate, {} ranks on {}, {}, {}", world.size(),
                                 counted(hosts, "host"), launch.transport(), processor());
    world.together([&] {
      if (!speaks) return;
      const std::string text = print(network);
      if (command.output.empty()) {
        fmt::print("{}", text);
        return;
      }
      std::ofstream out(command.output);
      out << text;
      out.close();
      if (!out) {
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("--output: expected a file that can be written, found \"{}\"",
                                command.output));
      }
    });
  });
  return 0;
}

}  // namespace

void add_calibrate(CLI::App& app, Command& command) {
  auto options = std::make_shared<CalibrateCommand>();
  CLI::App* sub = app.add_subcommand(
      "calibrate",
      "Measure by messages between two ranks, and between all at once, what baton simulate asks\n"
      "of a network, and write it to a file; under mpirun");
  sub->add_option("-o,--output", options->output, "where to write the network (default: print it)")
      ->type_name("FILE");
  sub->add_option("--sample-ms", options->sample_ms, "least time of a ping-pong (default 2)")
      ->type_name("MS")
      ->check(whole_number(1, 10'000));
  sub->add_option(
         "--processors", options->processors,
         "that all ranks of all hosts share, 0: each rank has its own (default: found out,\n"
         "but for virtual hosts)")
      ->type_name("N")
      ->check(whole_number(0, 1 << 20));
  sub->add_flag("--progress", options->progress, "show progress even where stderr is no terminal");
  sub->footer(
      "The machine should be quiet. Nothing but sends and receives is measured, no collective.\n"
      "\n"
      "Examples:\n"
      "  mpirun -n 2 baton calibrate -o pair.txt\n"
      "  scripts/virtual-cluster with 8 1gbit baton calibrate --processors 2 -o cluster.txt\n"
      "  baton simulate all_reduce --network cluster.txt --algorithm all");
  sub->callback([options, &command] {
    command = [options](Launch& launch) { return calibrate(*options, launch); };
  });
}

}  // namespace baton::cli
