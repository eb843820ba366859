#include <doctest/doctest.h>

#include <cctype>
#include <string>

#include "baton/error.hpp"
#include "dropin/pmpi/settings.hpp"
#include "dropin/pmpi/stats.hpp"
#include "support/ranks.hpp"

using namespace baton;
using namespace baton::pmpi;
using support::error_of;
using support::holds;

namespace {

bool takes(const Settings& settings, Function function) {
  return settings.blocking[static_cast<std::size_t>(function)];
}
bool takes_nonblocking(const Settings& settings, Function function) {
  return settings.nonblocking[static_cast<std::size_t>(function)];
}

}  // namespace

TEST_CASE("settings: everything, nothing, or what is named") {
  const Settings all = Settings::parse("", "");
  CHECK(all.blocking.all());
  CHECK(all.nonblocking.all());
  CHECK(!all.stats);
  CHECK(!Settings::parse("off", "1").any());
  CHECK(Settings::parse("off", "1").stats);

  const Settings some = Settings::parse("only:allreduce,igatherv", "0");
  CHECK(takes(some, Function::allreduce));
  CHECK(takes_nonblocking(some, Function::gatherv));
  CHECK(some.blocking.count() == 1);
  CHECK(some.nonblocking.count() == 1);
  CHECK(!some.stats);
}

TEST_CASE("settings: what is wrong is named, with what was expected") {
  for (const char* what : {"on", "only:", "only:allreduce,", "only:all_reduce", "allreduce"}) {
    const Error error = error_of([&] { Settings::parse(what, ""); });
    CHECK(error.code == ErrorCode::invalid_argument);
    CHECK(holds(error.what(), {"BATON_PMPI", "expected", "found"}));
  }
  CHECK(holds(error_of([] { Settings::parse("only:bcast,allredux", ""); }).what(),
              {"allreduce", "allredux"}));
  CHECK(holds(error_of([] { Settings::parse("", "yes"); }).what(),
              {"BATON_PMPI_STATS", "0 or 1", "yes"}));
}

TEST_CASE("statistics: names of the functions and of their nonblocking forms") {
  for (std::size_t i = 0; i < function_count; ++i) {
    std::string name(functions[i].name);
    CHECK(mpi_name(static_cast<Function>(i), true) == "MPI_I" + name);
    name[0] = static_cast<char>(std::toupper(name[0]));
    CHECK(mpi_name(static_cast<Function>(i), false) == "MPI_" + name);
  }
}

TEST_CASE("statistics: without them time is not measured") {
  const Stats stats;
  const Stopwatch measures(&stats), rests(nullptr);
  while (measures.seconds() == 0) {
  }
  CHECK(measures.seconds() > 0);
  CHECK(rests.seconds() == 0);
}

TEST_CASE("statistics: sums by function, ranks, size class and algorithm") {
  Stats stats;
  CHECK(holds(stats.text(), {"rank 0", "none"}));
  stats.add({mpi_name(Function::allreduce, false), 4, 1000, "ring", false}, 2e-3);
  stats.add({mpi_name(Function::allreduce, false), 4, 1024, "ring", false}, 4e-3);
  stats.add({mpi_name(Function::allreduce, false), 4, 1025, "ring", false}, 1e-3);
  stats.add({mpi_name(Function::gather, true), 2, 0, "the settings", true}, 0);
  const std::string text = stats.text();
  CHECK(holds(text, {"MPI_Allreduce", "4", "1 KiB", "2", "6.000", "3000.00", "ring", "2 KiB",
                     "MPI_Igather", "passed on: the settings"}));
}
