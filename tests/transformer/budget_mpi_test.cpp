#include <doctest/doctest.h>

#include <cstdlib>

#include "budget.hpp"
#include "mpi/communicators.hpp"
#include "mpi/interposed.hpp"

using namespace baton;
using namespace support;

TEST_CASE("what MPI is told to send is what the budget says") {
  REQUIRE(setenv("BATON_SINGLE_COPY", "0", 1) == 0);  // so that all bytes go by MPI_Isend
  Communicator c = world();
  check_budget(c, [] { return Traffic{interposed::send_calls(), interposed::sent_bytes()}; });
}
