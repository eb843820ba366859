#include <doctest/doctest.h>

#include "support/large.hpp"
#include "support/ranks.hpp"

using namespace baton;
using namespace support;

TEST_CASE("more than 2^31 elements in one message") { on_ranks(2, large::broadcast); }
