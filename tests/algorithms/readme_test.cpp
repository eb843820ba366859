#include <doctest/doctest.h>

#include "../../algorithms/row.hpp"
#include "verify/sweep.hpp"

using namespace baton;

namespace baton::algorithms {
extern const Row broadcast_line;  // compiled from the text of algorithms/README.md
}

TEST_CASE("the README's example is an algorithm") {
  const Algorithm line = algorithms::algorithm_of(algorithms::broadcast_line);
  for (const int size : {1, 2, 3, 4, 5, 8}) {
    const proving::SweepResult result = proving::sweep(line, size);
    CHECK(result.proofs > 0);
    for (const proving::SweepFinding& found : result.findings) MESSAGE(found.sentence);
    CHECK(result.holds());
  }
}
