#include "baton/schedule/passes.hpp"
#include "by_hand.hpp"
#include "support/schedules.hpp"

using namespace by_hand;

namespace {

Proof prove_fused(const std::string& text) {
  const std::vector<Schedule> schedules = parse(text);
  return verify_fused(schedules, problems_of(schedules));
}

std::string sentence_fused(const std::string& text) {
  const Proof proof = prove_fused(text);
  return proof.findings.empty() ? "" : proof.findings[0].sentence;
}

/// The same steps in fused groups that each rank makes by itself: a message opens a fused group
/// where it waits for one of the fused group before, or where another step stands between.
Schedule cut_locally(const Schedule& schedule) {
  std::vector<Step> steps(schedule.steps().begin(), schedule.steps().end());
  std::size_t begin = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const auto waits = schedule.dependencies(i);
    const bool opens = !steps[i].message() || (i > 0 && !steps[i - 1].message()) ||
                       (!waits.empty() && waits.back() >= begin);
    if (opens) begin = i;
    steps[i].round = static_cast<std::int32_t>(begin);
  }
  return Schedule(schedule.header(), steps, {schedule.regions().begin(), schedule.regions().end()});
}

}  // namespace

TEST_CASE("messages of one round with nothing between are a fused group") {
  const Proof proof = prove_fused(exchange);
  CHECK(summary(proof) == "");
  CHECK(proof.rounds == 1);
  CHECK(proof.messages == 2);
  // Steps between messages, and other labels, end a fused group; order does the rest.
  const std::string relay = head("all_reduce", 3, "input 1\noutput 1") +
                            "rank 0\nsend 1 input[0:1]\nrecv 1 output[0:1]\n"
                            "rank 1\nrecv 0 slot[0:1]\n"
                            "fold scratch[0:1] = slot[0:1] + input[0:1]\n"
                            "send 2 scratch[0:1]\nround 1\nrecv 2 output[0:1]\nround 0\n"
                            "send 0 output[0:1]\n"
                            "rank 2\nrecv 1 slot[0:1]\n"
                            "fold output[0:1] = slot[0:1] + input[0:1]\n"
                            "send 1 output[0:1]\n";
  CHECK(sentence_fused(replaced(relay, "[0:1]\nrecv 1 output", "[0:1]\nround 1\nrecv 1 output")) ==
        "");
  CHECK(prove_fused(replaced(relay, "[0:1]\nrecv 1 output", "[0:1]\nround 1\nrecv 1 output"))
            .rounds == 4);
  // A receive that waits for what comes late, in a fused group that opens early, is no harm either.
  CHECK(summary(prove_fused(relay)) == "");
  CHECK(prove_fused(relay).rounds == 4);
}

TEST_CASE("fused groups that each rank cuts by itself can wait for one another") {
  // Free messages meet; as fused groups, both ranks send first.
  const std::string text =
      replaced(replaced(exchange, "recv 1", "round 1\nrecv 1"), "recv 0", "round 1\nrecv 0");
  CHECK(flaws(text) == "");
  CHECK(summary(prove_fused(text)) == "deadlock 0");
  CHECK(sentence_fused(text) ==
        "step 0 of rank 0 (send input[0:2] to 1) in fused group 0 waits for step 1 of rank 1 (recv "
        "slot[0:2] from 0) in fused group 1, which comes after step 0 of rank 1 (send input[0:2] "
        "to 0) in fused group 0, which waits for step 1 of rank 0 (recv slot[0:2] from 1) in fused "
        "group 1, which comes after the first");

  std::string ring;
  for (int r = 0; r < 9; ++r) {
    ring += "rank " + std::to_string(r) + "\nsend " + std::to_string((r + 1) % 9) +
            " input[0:1]\nround 1\nrecv " + std::to_string((r + 8) % 9) + " output[0:1]\n";
  }
  CHECK(sentence_fused(head("all_reduce", 9, "input 1\noutput 1") + ring)
            .ends_with("which comes after … 3 more ranks that wait, the last after the first"));
}

TEST_CASE("a double tree deadlocks in fused groups that each rank cuts by itself") {
  const Registry registry = Registry::builtin();
  const Algorithm& tree = registry.find(Collective::all_reduce, "double_tree");
  const auto problems = support::problems(support::problem(Collective::all_reduce, 8, 0, 16));
  std::vector<Schedule> cut;
  for (const Schedule& s : support::schedules(tree, problems)) cut.push_back(cut_locally(s));
  CHECK(summary(verify(cut, problems)) == "");
  CHECK(summary(verify_fused(cut, problems)).starts_with("deadlock"));
  CHECK(summary(verify_fused(fused(cut), problems)) == "");
}

TEST_CASE("ranks that post their messages in different orders") {
  const std::string text = two +
                           "rank 0\nsend 1 input[0:1]\nsend 1 input[1:1] lane 1\n"
                           "recv 1 slot[0:1]\nrecv 1 slot[1:1] lane 1\n"
                           "fold output[0:2] = input[0:2] + slot[0:2]\n"
                           "rank 1\nrecv 0 slot[1:1] lane 1\nrecv 0 slot[0:1]\n"
                           "send 0 input[0:1]\nsend 0 input[1:1] lane 1\n"
                           "fold output[0:2] = slot[0:2] + input[0:2]\n";
  CHECK(flaws(text) == "");
  CHECK(summary(prove_fused(text)) == "unmatched 1");
  CHECK(sentence_fused(text) ==
        "step 0 of rank 1 (recv slot[1:1] from 0) of lane 1 meets step 0 of rank 0 (send "
        "input[0:1] to 1) of lane 0: the two ranks post their messages in different orders");

  // In one lane it shows by their lengths, or by what arrives.
  const std::string lengths =
      replaced(replaced(text, "[0:1]\nsend 1 input[1:1] lane 1", "[0:1]\nsend 1 input[1:1]"),
               "recv 0 slot[1:1] lane 1\nrecv 0 slot[0:1]", "recv 0 slot[1:1]\nrecv 0 slot[0:1]");
  CHECK(summary(prove_fused(lengths)) == "contribution 1");
  CHECK(summary(prove_fused(replaced(exchange, "send 0 input[0:2]", "send 0 input[0:1]"))) ==
        "unmatched 0");
  CHECK(summary(prove_fused(replaced(exchange, "send 1 input[0:2]\n", ""))) == "unmatched 1");
}

TEST_CASE("a message that waits for another of its fused group") {
  const std::string chain = head("broadcast", 3, "input 0\noutput 2\nin_place") +
                            "rank 0\nsend 1 output[0:2]\n"
                            "rank 1\nrecv 0 output[0:2]\nsend 2 output[0:2]\n"
                            "rank 2\nrecv 1 output[0:2]\n";
  CHECK(flaws(chain) == "");
  CHECK(summary(prove_fused(chain)) == "fused_group 1");
  CHECK(
      sentence_fused(chain) ==
      "step 1 of rank 1 (send output[0:2] to 2) waits for step 0 of rank 1 (recv output[0:2] from "
      "0), but both are in fused group 0");
  const std::string apart = replaced(chain, "send 2", "round 1\nsend 2");
  CHECK(summary(prove_fused(apart)) == "");
  CHECK(prove_fused(apart).rounds == 2);
  // What nothing orders is a hazard in a fused group as elsewhere.
  CHECK(summary(prove_fused(replaced(chain, "in_place", "in_place\ndependencies listed"))) ==
        "hazard 1");
}
