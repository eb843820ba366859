#include "baton/schedule/passes.hpp"
#include "by_hand.hpp"
#include "support/schedules.hpp"

using namespace by_hand;

namespace {

Proof prove_buffered(const std::string& text, int slots = 8) {
  const std::vector<Schedule> schedules = parse(text);
  return verify(schedules, problems_of(schedules), {slots});
}

/// Both ranks of an all_to_all in place: all sends one after another, then all receives.
std::string sends_first(int messages) {
  const std::string half = std::to_string(messages);
  std::string text =
      head("all_to_all", 2,
           "input 0\noutput " + std::to_string(2 * messages) + "\nin_place\ndependencies listed");
  for (int r = 0; r < 2; ++r) {
    const std::string peer = std::to_string(1 - r);
    text += "rank " + std::to_string(r) + "\n";
    for (int i = 0; i < 2 * messages; ++i) {
      const std::string region =
          " output[" + std::to_string((1 - r) * messages + i % messages) + ":1]";
      text += (i < messages ? "send " : "recv ") + peer + region;
      text += i == 0 ? "\n" : " after " + std::to_string(i - 1) + "\n";
    }
  }
  return text;
}

}  // namespace

TEST_CASE("buffered: ranks that all send first finish, and their values have changed places") {
  const std::string text = sends_first(1);
  CHECK(flaws(text) == "deadlock 0");
  const Proof proof = prove_buffered(text, 1);
  CHECK(summary(proof) == "");
  CHECK(proof.rounds == 1);
  CHECK(proof.messages == 2);
  // A proof for synchronous sends is one for buffered sends.
  CHECK(summary(prove_buffered(exchange, 1)) == "");
}

TEST_CASE("buffered: no more messages than there are slots are under way") {
  for (int messages = 1; messages <= 9; ++messages) {
    const std::string text = sends_first(messages);
    CHECK(flaws(text) == "deadlock 0");
    for (int slots = 1; slots <= 10; ++slots) {
      CAPTURE(messages);
      CAPTURE(slots);
      CHECK(summary(prove_buffered(text, slots)) == (slots < messages ? "deadlock 0" : ""));
    }
  }
  CHECK(prove_buffered(sends_first(2), 1).findings[0].sentence ==
        "step 1 of rank 0 (send output[3:1] to 1) waits for "
        "step 2 of rank 1 (recv output[0:1] from 0), which waits for "
        "step 1 of rank 1 (send output[1:1] to 0), which waits for "
        "step 2 of rank 0 (recv output[2:1] from 1), which waits for the first");
  // Each lane has slots of its own.
  CHECK(summary(prove_buffered(
            replaced(replaced(replaced(replaced(sends_first(2), "send 1 output[3:1]",
                                                "send 1 output[3:1] lane 1"),
                                       "recv 0 output[1:1]", "recv 0 output[1:1] lane 1"),
                              "send 0 output[1:1]", "send 0 output[1:1] lane 1"),
                     "recv 1 output[3:1]", "recv 1 output[3:1] lane 1"),
            1)) == "");
}

TEST_CASE("buffered: the oldest message of a channel makes room") {
  // The third send needs the first receive to have ended, but not the second, which waits for it.
  const std::string text =
      head("broadcast", 2, "input 0\noutput 4\nin_place\ndependencies listed") +
      "rank 0\nsend 1 output[0:1]\nsend 1 output[1:1] after 0\nsend 1 output[2:1] after 1\n"
      "send 1 output[3:1] lane 1 after 2\n"
      "rank 1\nrecv 0 output[0:1]\nrecv 0 output[3:1] lane 1 after 0\n"
      "recv 0 output[1:1] after 1\nrecv 0 output[2:1] after 2\n";
  CHECK(flaws(text) == "deadlock 0");
  CHECK(summary(prove_buffered(text, 1)) == "deadlock 0");
  CHECK(summary(prove_buffered(text, 2)) == "");
}

TEST_CASE("buffered: who receives first waits for ever, whatever the buffers") {
  const std::string text = head("broadcast", 2, "input 0\noutput 1\nin_place") +
                           "rank 0\nrecv 1 output[0:1]\nsend 1 output[0:1]\n"
                           "rank 1\nrecv 0 output[0:1]\nsend 0 output[0:1]\n";
  CHECK(flaws(text) == "deadlock 0");
  CHECK(summary(prove_buffered(text)) == "deadlock 0");
  // Messages of one lane stay in order in a buffer, too.
  const std::string window = head("barrier", 2, "input 1\noutput 0") +
                             "rank 0\nrecv 1 scratch[0:1]\nsend 1 scratch[0:1]\nsend 1 input[0:1]\n"
                             "rank 1\nrecv 0 scratch[0:1]\nrecv 0 scratch[1:1]\n"
                             "send 0 scratch[1:1]\n";
  CHECK(summary(prove_buffered(window)) == "deadlock 0");
}

TEST_CASE("buffered: all other questions are asked as well") {
  const std::string text = sends_first(1);
  CHECK(summary(prove_buffered(replaced(text, " after 0", ""))) == "hazard 0");
  CHECK(summary(prove_buffered(replaced(text, "recv 0 output[0:1]", "recv 0 output[1:1]"))) ==
        "contribution 1");
  CHECK(summary(prove_buffered(replaced(text, "recv 0", "recv 0 scratch[0:1],"))) == "unmatched 1");
  CHECK(summary(prove_buffered(replaced(exchange, "input[0:2] + slot", "scratch[0:2] + slot"))) ==
        "undefined 0");
  // A message that waits in a buffer says nothing of its receiver.
  const std::string told = head("barrier", 2, "input 1\noutput 0");
  CHECK(
      summary(prove_buffered(told + "rank 0\nsend 1 input[0:1]\nrank 1\nrecv 0 scratch[0:1]\n")) ==
      "contribution 0");
  CHECK(summary(prove_buffered(told +
                               "rank 0\nsend 1 input[0:1]\nrecv 1 scratch[0:1] after 0\n"
                               "rank 1\nsend 0 input[0:1]\nrecv 0 scratch[0:1] after 0\n")) == "");
  const std::vector<Schedule> schedules = parse(text);
  CHECK(refuses([&] { verify(schedules, problems_of(schedules), {-1}); }));
}

TEST_CASE("buffered: what is proved with synchronous sends is proved with any buffer") {
  const Registry registry = Registry::builtin();
  for (const Algorithm& algorithm : registry.all()) {
    for (const int size : {1, 2, 3, 4, 5, 7, 8}) {
      Problem problem = support::problem(algorithm.collective, size, 0, 3);
      problem.hosts = support::hosts_for(algorithm, size);
      if (algorithm.collective == Collective::barrier) problem.count = 1;
      if (!refusal(algorithm, problem).empty()) continue;
      const auto problems = support::problems(problem);
      const auto schedules = support::schedules(algorithm, problems);
      for (const int slots : {1, 3}) {
        const Proof proof = verify(schedules, problems, {slots});
        INFO(name(algorithm.collective), " ", algorithm.name, " ", size);
        CHECK(summary(proof) == "");
      }
    }
  }
}
