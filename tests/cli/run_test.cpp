// The library's options of `baton run`, from its command line and the environment.

#include <doctest/doctest.h>

#include <cstdlib>

#include "cli/run/options.hpp"

using namespace baton::cli::run;

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
