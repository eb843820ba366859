#include <doctest/doctest.h>

#include "equivalence.hpp"
#include "mpi/communicators.hpp"

using namespace baton;
using namespace support;

TEST_CASE("every way to cut a block gives what the whole block gives") {
  Communicator c = world();
  for (const BlockCase& one : cases_for(c.size())) {
    CAPTURE(text(one));
    CHECK(largest(differences<double>(c, one)) <= 1e-12);
    CHECK(largest(differences<float>(c, one)) <= 1e-5);
  }
}
