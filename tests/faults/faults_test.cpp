/// A sample of the cases that scripts/soak runs.

#include <doctest/doctest.h>

#include <random>
#include <string>

#include "cases.hpp"

using namespace faults;

namespace {

/// Draws cases of a kind until `wanted` had their fault.
void sample(Kind kind, int wanted, int check = 0) {
  const std::vector<Subject> all = subjects();
  std::minstd_rand random(static_cast<unsigned>(kind) * 100 + static_cast<unsigned>(check) + 1);
  int happened = 0;
  for (int tried = 0; happened < wanted; ++tried) {
    REQUIRE(tried < 20 * wanted);
    const Subject& subject = all[random() % all.size()];
    Case one{subject.collective, subject.choice, 2 + static_cast<int>(random() % 8), check, {}};
    one.plan = {kind, static_cast<int>(random() % static_cast<unsigned>(one.size)),
                static_cast<int>(random() % (kind == Kind::no_memory ? 40 : 8)),
                random() % 3 == 0 || kind == Kind::reordered ? random() : 0};
    const Outcome outcome = run(one);
    CHECK_MESSAGE(outcome.problem.empty(), describe(one), ": ", outcome.problem);
    if (outcome.served && (outcome.happened || kind <= Kind::reordered)) ++happened;
  }
}

}  // namespace

TEST_CASE("faults: delays and reordering change nothing") {
  for (const int check : {0, 1, 2}) {
    sample(Kind::none, 30, check);
    sample(Kind::reordered, 60, check);
  }
}
TEST_CASE("faults: a message that loses or gains a byte") {
  for (const int check : {0, 1, 2}) {
    sample(Kind::shortened, 40, check);
    sample(Kind::lengthened, 40, check);
  }
}
TEST_CASE("faults: a changed bit is found by the checksum") { sample(Kind::corrupted, 100, 2); }
TEST_CASE("faults: a message that is refused or fails") {
  for (const int check : {0, 1, 2}) {
    sample(Kind::refused, 40, check);
    sample(Kind::failed, 40, check);
  }
}
TEST_CASE("faults: a rank that ends") {
  for (const int check : {0, 1, 2}) sample(Kind::dead, 40, check);
}
TEST_CASE("faults: a rank that stops") {
  for (const int check : {0, 2}) sample(Kind::stopped, 6, check);
}
TEST_CASE("faults: a rank without memory") {
  for (const int check : {0, 1, 2}) sample(Kind::no_memory, 30, check);
}
