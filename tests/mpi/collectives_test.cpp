#include <doctest/doctest.h>

#include "communicators.hpp"
#include "support/conformance.hpp"

using namespace baton;
using namespace support;

TEST_CASE("every collective, algorithm and count") {
  Communicator c = world();
  const Scope scope = thorough(c.size());
  conformance::rooted(c, scope);
  conformance::reductions(c, scope);
  conformance::exchanges(c, scope);
  conformance::barriers(c);
}

TEST_CASE("uneven counts") {
  Communicator c = world();
  conformance::uneven(c, brief(c.size()));
}

TEST_CASE("tensors") {
  Communicator c = world();
  conformance::tensor_all_gather(c);
  conformance::tensor_all_to_all(c);
}

TEST_CASE("operations and datatypes") {
  Communicator c = world();
  conformance::types(c);
  conformance::user_operations(c);
}

TEST_CASE("large enough for the rendezvous protocol") {
  Communicator c = world();
  const Scope large{{70'001}, {0, 64 << 10}, {c.size() - 1}};
  conformance::rooted(c, large);
  conformance::reductions(c, large);
  conformance::exchanges(c, {{20'011}, {0, 64 << 10}, {}});
}
