#include <doctest/doctest.h>

#include "budget.hpp"
#include "mpi/communicators.hpp"
#include "mpi/interposed.hpp"

using namespace baton;
using namespace support;

TEST_CASE("what MPI is told to send is what the budget says") {
  Communicator c = world();
  check_budget(c, [] { return Traffic{interposed::send_calls(), interposed::sent_bytes()}; });
}
