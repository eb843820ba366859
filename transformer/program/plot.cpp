#include "plot.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "values.hpp"

namespace baton::transformer::program {
namespace {

namespace fs = std::filesystem;

constexpr const char* footer =
    "A run NAME on RANKS ranks is kept in NAME-RANKS.json, which `baton-train --json` prints; for\n"
    "timeline in NAME-RANKS.trace, which BATON_TRACE=FILE baton-train ... writes. NAME may begin\n"
    "with a folder.\n"
    "\n"
    "Examples:\n"
    "  for r in 1 2 4; do baton-train --model block --parallel dp --ranks $r --json > dp-$r.json; "
    "done\n"
    "  baton-train plot split_time dp=1,2,4 -o time.svg\n"
    "  baton-train plot throughput dp=1,2,4 tp=2,4 -o speed.png";

enum class Kind : std::uint8_t { split_time, throughput, timeline };
const Names<Kind> kinds = {{"split_time", Kind::split_time},
                           {"throughput", Kind::throughput},
                           {"timeline", Kind::timeline}};

/// A run that was kept.
struct KeptRun {
  std::string name, ranks;
  std::string file;
};

/// The runs of NAME=RANKS,..., whose files must exist.
std::vector<KeptRun> runs_named(const std::string& text, Kind kind) {
  const auto equals = text.rfind('=');
  const auto wrong = [&] {
    refuse(
        fmt::format("plot: expected runs as NAME=RANKS,..., such as dp=1,2,4, found \"{}\"", text));
  };
  if (equals == std::string::npos || equals == 0) wrong();
  std::vector<KeptRun> runs;
  std::string list = text.substr(equals + 1);
  const CLI::Validator ranks = whole_number(1, 1 << 20);
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    KeptRun run{text.substr(0, equals), list.substr(begin, end - begin), {}};
    if (!ranks(run.ranks).empty()) wrong();
    runs.push_back(std::move(run));
    begin = end + 1;
  }
  for (KeptRun& run : runs) {
    run.file =
        fmt::format("{}-{}.{}", run.name, run.ranks, kind == Kind::timeline ? "trace" : "json");
    if (!fs::is_regular_file(run.file)) {
      refuse(fmt::format("plot: expected the run \"{}\" on {} rank{} in the file {}, found none",
                         run.name, run.ranks, run.ranks == "1" ? "" : "s", run.file));
    }
    run.name = fs::path(run.name).filename();
  }
  return runs;
}

/// A file beside this program: `built` from its folder in a build, `installed` where it is
/// installed.
std::string beside(const char* built, const char* installed) {
  std::error_code unknown;
  const fs::path folder = fs::read_symlink("/proc/self/exe", unknown).parent_path();
  for (const char* place : {built, installed}) {
    const fs::path file = folder / place;
    if (fs::is_regular_file(file)) return file.lexically_normal();
  }
  refuse(fmt::format("plot: expected {}, found none",
                     (folder / installed).lexically_normal().string()));
}

/// Becomes this program.
[[noreturn]] void become(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  execv(arguments[0], arguments.data());
  refuse(fmt::format("plot: expected to start {}, found: {}", command[0], std::strerror(errno)));
}

}  // namespace

int plot(int argc, char** argv) {
  CLI::App app("Draws runs that were kept.", "baton-train plot");
  app.footer(std::string(footer));
  Kind kind = Kind::split_time;
  std::vector<std::string> named;
  std::string output;
  add_choice(
      app, "KIND", kind, kinds,
      "split_time: computation, communication and optimizer of each run, stacked; throughput: "
      "tokens or samples per second over ranks; timeline: which rank does what when, of one "
      "run")
      ->required();
  app.add_option("RUNS", named, "names and numbers of ranks of runs")
      ->required()
      ->type_name("NAME=RANKS,... ...");
  app.add_option("-o,--output", output, "the picture; .svg, .png or .pdf, a timeline also .html")
      ->required()
      ->type_name("FILE");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& answer) {
    return app.exit(answer);
  }

  const std::string ending = fs::path(output).extension();
  const bool timeline = kind == Kind::timeline;
  if (ending != ".svg" && ending != ".png" && ending != ".pdf" &&
      !(timeline && ending == ".html")) {
    refuse(fmt::format("-o: expected a file that ends with .svg, .png{}, found \"{}\"",
                       timeline ? ", .pdf or .html" : " or .pdf", output));
  }
  std::vector<KeptRun> runs;
  for (const std::string& text : named)
    for (KeptRun& run : runs_named(text, kind)) runs.push_back(std::move(run));
  if (timeline) {
    if (runs.size() != 1)
      refuse(fmt::format("plot timeline: expected one run, found {}", runs.size()));
    become({beside("baton", "baton"), "timeline", "--from", runs[0].file, "--operation", "all",
            "-o", output});
  }
  std::vector<std::string> command = {
      "/usr/bin/python3",
      beside("scripts/plot_training.py", "../share/baton/scripts/plot_training.py"),
      std::string(name_in(kinds, kind)), output};
  for (const KeptRun& run : runs) command.insert(command.end(), {run.name, run.ranks, run.file});
  become(command);
}

}  // namespace baton::transformer::program
