#include "support/large.hpp"

#include <doctest/doctest.h>

#include "communicators.hpp"

TEST_CASE("more than 2^31 elements in one message") {
  baton::Communicator c = support::world();
  support::large::broadcast(c);
}
