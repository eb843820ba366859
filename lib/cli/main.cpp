// The program `baton`: exit code 0, 1 where a result or a proof is wrong, 2 where the program was
// used wrongly or could not run, with one sentence on standard error.

#include <fmt/core.h>

#include <cstdio>
#include <exception>
#include <memory>

#include "commands.hpp"

namespace baton::cli {

namespace {

constexpr const char* description =
    "Collectives built only from send and recv: list them, run and check them, time them against\n"
    "the MPI library's own, prove them, have them explained and drawn.";
constexpr const char* footer =
    "Examples:\n"
    "  baton list all_reduce                                what there is\n"
    "  baton run all_reduce --algorithm all --bytes 1K:16M  4 threads as ranks: checked and timed\n"
    "  mpirun -n 4 baton run all --workload gpt2-small      the same by processes, beside MPI's "
    "own\n"
    "  mpirun -n 2 baton bench                              timed against MPI's own, in turn\n"
    "  baton verify --max-ranks 16                          every algorithm proved\n"
    "  baton explain broadcast --algorithm binomial --root 1 --count 1\n"
    "  baton timeline all_reduce --algorithm ring --ranks 8 -o ring.svg\n"
    "\n"
    "Exit code: 0, 1 if a result or a proof is wrong, 2 if the program could not do what was "
    "asked.\n"
    "`baton SUBCOMMAND --help` says more about each.";

/// Says of an option its form only, not which others it excludes.
class Help final : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_type_size() == 0 ? "" : " " + option->get_type_name();
  }
};

/// What CLI11 says of an error, or better.
std::string sentence(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  if (!app.get_subcommands().empty()) return fmt::format("{} (--help tells more)", error.what());
  return fmt::format(
      "expected a subcommand (list, run, bench, verify, explain, simulate, calibrate, timeline, "
      "tune), found {}",
      argc > 1 ? fmt::format("\"{}\"", argv[1]) : "none (--help tells more)");
}

/// Sets `command` and returns -1, or the exit code of what was answered at once.
int parse(int argc, char** argv, bool speaks, Command& command) {
  CLI::App app(description, "baton");
  app.formatter(std::make_shared<Help>());
  app.footer(std::string(footer));
  app.set_version_flag("--version", "baton " BATON_VERSION);
  app.require_subcommand(1);
  add_list(app, command);
  add_run(app, command);
  add_bench(app, command);
  add_verify(app, command);
  add_explain(app, command);
  add_simulate(app, command);
  add_timeline(app, command);
  add_calibrate(app, command);
  add_tune(app, command);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& answer) {
    if (speaks) app.exit(answer);
    return 0;
  } catch (const CLI::ParseError& error) {
    throw Error(ErrorCode::invalid_argument, sentence(app, error, argc, argv));
  }
  return -1;
}

int run(int argc, char** argv) {
  std::unique_ptr<Launch> launch;
  try {
    launch = Launch::start(argc, argv);
    Command command;
    const int answered = parse(argc, argv, launch->rank() == 0, command);
    return answered >= 0 ? answered : command(*launch);
  } catch (const std::exception& error) {
    const int rank = launch ? launch->rank() : launcher_rank();
    if (rank == 0) fmt::print(stderr, "baton: {}\n", error.what());
    return 2;
  }
}

}  // namespace
}  // namespace baton::cli

int main(int argc, char** argv) {
  const int code = baton::cli::run(argc, argv);
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  std::fputs("baton: expected to write the results, found that standard output takes no more\n",
             stderr);
  return 2;
}
