// The program `baton`: exit code 0, 1 where a result or a proof is wrong, 2 where the program was
// used wrongly or could not run, with one sentence on standard error.

#include "bench/options.hpp"
#include "commands.hpp"

namespace {

constexpr const char* description =
    "Collectives built only from send and recv: list them, run and check them, time them against\n"
    "the MPI library's own, prove them, explain and draw them.";
constexpr const char* footer =
    "Examples:\n"
    "  baton list all_reduce                                its algorithms\n"
    "  baton run all_reduce --algorithm all --bytes 1K:16M  4 threads as ranks: checked and timed\n"
    "  mpirun -n 4 baton run all --workload gpt2-small      processes, beside MPI's collectives\n"
    "  mpirun -n 2 baton bench                              timed against MPI's own, in turn\n"
    "  baton verify --max-ranks 16                          every algorithm proved\n"
    "  baton explain broadcast --algorithm binomial --root 1 --count 1\n"
    "  baton timeline all_reduce --algorithm ring --ranks 8 -o ring.svg\n"
    "\n"
    "Exit code: 0; 1 if a result or a proof is wrong; 2 after any other failure, with a sentence.\n"
    "`baton COMMAND --help` describes a command.";

}  // namespace

int main(int argc, char** argv) {
  using namespace baton::cli;
  bench::become_bench_device(argc, argv);
  CommandLine program("baton", description);
  program.options().footer(footer);
  verify::add_list(program);
  run::add_run(program);
  bench::add_bench(program);
  verify::add_verify(program);
  verify::add_explain(program);
  simulate::add_simulate(program);
  calibrate::add_calibrate(program);
  timeline::add_timeline(program);
  tune::add_tune(program);
  status::add_status(program);
  return program.main(argc, argv);
}
