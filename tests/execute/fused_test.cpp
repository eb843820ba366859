#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "baton/error.hpp"
#include "baton/schedule/passes.hpp"
#include "baton/schedule/text.hpp"
#include "execute/run_fused.hpp"
#include "support/ranks.hpp"

using namespace baton;
using namespace baton::execute;
using support::error_of;
using support::holds;

namespace {

/// Rank 0's plan of these steps; input and output have 8 elements.
Plan plan_of(const std::string& steps) {
  const auto schedules =
      parse("baton-schedule 1\ncollective all_to_all\nsize 4\ninput 8\noutput 8\nrank 0\n" + steps);
  const std::int64_t sizes[] = {8};
  return Plan(schedules.at(0), 4, sizes, sizes);
}

std::vector<std::string> words(const Plan& plan) {
  std::vector<std::string> all;
  for (const FusedGroup& group : fused_groups_of(plan)) all.push_back(in_words(plan, group));
  return all;
}

}  // namespace

TEST_CASE("groups of a plan are runs of messages of one round") {
  using Words = std::vector<std::string>;
  CHECK(words(plan_of("  copy output[0:1] = input[0:1]\n")) == Words{});
  CHECK(words(plan_of("  send 1 input[0:1]\n  recv 3 output[1:1]\n  recv 1 output[0:1]\n"
                      "round 1\n  send 2 output[0:1]\n  copy output[4:1] = input[4:1]\n"
                      "round 3\n  recv 1 output[2:1]\n  recv 2 output[3:1]\n  recv 3 "
                      "output[5:1]\n")) == Words{"send to rank 1 and receive from ranks 1 and 3",
                                                 "send to rank 2",
                                                 "receive from ranks 1, 2 and 3"});
}

TEST_CASE("messages of a round that do not stand together are no group") {
  const auto refused = [](const std::string& steps) {
    const Error error = error_of([&] { fused_groups_of(plan_of(steps)); });
    CHECK(error.code == ErrorCode::invalid_argument);
    CHECK_MESSAGE(holds(error.what(), {"round", "in one fused group", "step 2"}), error.what());
  };
  refused("  send 1 input[0:1]\n  copy output[4:1] = input[4:1]\n  recv 1 output[0:1]\n");
  refused(
      "round 1\n  send 1 input[0:1]\nround 0\n  copy output[4:1] = input[4:1]\n  recv 1 "
      "output[0:1]\n");
}
