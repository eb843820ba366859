#include "plot.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "baton/timeline.hpp"
#include "baton/trace.hpp"
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
    "  baton-train plot throughput dp=1,2,4 tp=2,4 -o speed.png\n"
    "  BATON_TRACE=tp-2.trace baton-train --model block --parallel tp --epochs 2\n"
    "  baton-train plot timeline tp=2 -o tp.svg                the last step; .html: all of them";

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

Timeline read_recording(const KeptRun& run) {
  Timeline recorded = read_trace(std::span(&run.file, 1)).timeline;
  if (std::to_string(recorded.ranks) == run.ranks) return recorded;
  refuse(fmt::format("{}: expected a run on {} rank{}, found {}", run.file, run.ranks,
                     run.ranks == "1" ? "" : "s", recorded.ranks));
}

/// The last step's time in ns: from the first computation behind the optimizer of the step before
/// to the end of the optimizer.
std::pair<std::int64_t, std::int64_t> last_step(const Timeline& recorded, const KeptRun& run) {
  std::vector<std::vector<const Event*>> computed(static_cast<std::size_t>(recorded.ranks));
  for (const Event& event : recorded.events)
    if (event.kind == StepKind::compute)
      computed[static_cast<std::size_t>(event.rank)].push_back(&event);
  const auto ends_step = [&](const Event* event) {
    return recorded.operations[event->operation].name == "optimizer";
  };
  std::int64_t from = INT64_MAX, to = 0;
  for (const auto& its : computed) {  // in order
    const auto last = std::find_if(its.rbegin(), its.rend(), ends_step);
    if (last == its.rend()) {
      refuse(fmt::format("{}: expected a recording of training, found no step of an optimizer",
                         run.file));
    }
    const auto before = std::find_if(last + 1, its.rend(), ends_step);
    from = std::min(from, (*before.base())->start);
    to = std::max(to, (*last)->end);
  }
  return {from, to};
}

std::string microseconds(std::int64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }

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
  const bool timeline = kind == Kind::timeline, whole = ending == ".html";  // which one can zoom
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
    const KeptRun& run = runs[0];
    const Timeline recorded = read_recording(run);
    const auto [from, to] = last_step(recorded, run);
    std::vector<std::string> command = {beside("baton", "baton"),
                                        "timeline",
                                        "--from",
                                        run.file,
                                        "--operation",
                                        "all",
                                        "-o",
                                        output,
                                        "--title"};
    command.push_back(fmt::format("{} on {} rank{}: {}", run.name, run.ranks,
                                  run.ranks == "1" ? "" : "s", whole ? "training" : "a step"));
    if (!whole)
      command.insert(command.end(),
                     {"--from-time", microseconds(from), "--to-time", microseconds(to)});
    become(command);
  }
  std::vector<std::string> command = {
      "/usr/bin/python3",
      beside("scripts/plot_training.py", "../share/baton/scripts/plot_training.py"),
      std::string(name_in(kinds, kind)), output};
  for (const KeptRun& run : runs) command.insert(command.end(), {run.name, run.ranks, run.file});
  become(command);
}

}  // namespace baton::transformer::program
