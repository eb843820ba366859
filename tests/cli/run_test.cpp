// The options of `baton run`, from its command line and the environment, and its workloads.

#include <doctest/doctest.h>

#include <cstdlib>

#include <map>

#include "cli/run/options.hpp"

using namespace baton;
using namespace baton::cli::run;

namespace {

/// How often the cases of each collective occur.
std::map<Collective, std::int64_t> times(const std::string& lines, const WorkloadOverrides& how) {
  std::map<Collective, std::int64_t> sum;
  for (const Job& job : parse_workload("baton-workload 1\n" + lines, "w.txt", 4, how)) {
    for (const cli::Case& subject : job.cases) sum[subject.collective()] += subject.times;
  }
  return sum;
}

}  // namespace

TEST_CASE("run: --check adds to BATON_CHECK, and lowers nothing") {
  RunOptions options;
  for (const bool checked : {false, true}) {
    options.check = checked;
    unsetenv("BATON_CHECK");
    CHECK(library_of(options).check == (checked ? 1 : 0));
    setenv("BATON_CHECK", "2", 1);
    CHECK(library_of(options).check == 2);
  }
}

TEST_CASE("run: a workload's barriers occur as often as it says") {
  using Times = std::map<Collective, std::int64_t>;
  const std::string barriers = "s barrier [1] f32 times 1000\nt barrier [1] f32 times 5\n",
                    sums = "a all_reduce [8] f32 times 7\nb all_reduce [16] f32 times 3\n";
  CHECK(times(barriers, {}) == Times{{Collective::barrier, 1005}});
  // Other lines' sizes mean nothing to a barrier: one, if the workload has none.
  WorkloadOverrides both, only;
  both.collectives = {Collective::barrier, Collective::all_reduce};
  only.collectives = {Collective::barrier};
  CHECK(times(sums, both) == Times{{Collective::barrier, 1}, {Collective::all_reduce, 10}});
  CHECK(times(sums + barriers, only) == Times{{Collective::barrier, 1005}});
  CHECK(times(barriers + sums, only) == Times{{Collective::barrier, 1005}});
}
