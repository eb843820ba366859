#include "execute/run.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "baton/error.hpp"
#include "stage.hpp"
#include "support/ranks.hpp"

using namespace baton;
using namespace baton::execute;
using namespace support;

namespace {

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("at most `window` messages of a channel are in flight, posted in program order") {
  const std::string six =
      "send 1 input[0:1]\nsend 1 input[0:2]\nsend 1 input[0:3]\nsend 1 input[0:4]\n"
      "send 2 input[0:5]\nrecv 1 output[0:6]\nsend 1 input[0:7]";
  for (const int window : {1, 2}) {
    Stage s(six, window);
    s.start();
    Texts expected{"send 1 of 1", "send 1 of 2", "send 2 of 5", "recv 1 of 6"};
    if (window == 1) expected.erase(expected.begin() + 1);
    CHECK(s.transport.fresh() == expected);
    CHECK(!s.run->drive());
    CHECK(s.transport.fresh().empty());
    s.transport.complete(0);
    CHECK(!s.run->drive());
    CHECK(s.transport.fresh() == Texts{window == 1 ? "send 1 of 2" : "send 1 of 3"});
    if (window == 2) {
      s.transport.complete(4);  // the later one of the two in flight
      CHECK(!s.run->drive());
      CHECK(s.transport.fresh() == Texts{"send 1 of 4"});
    }
    for (int i = 0; i < 10; ++i) {
      for (std::size_t k = 0; k < s.transport.posted.size(); ++k) s.transport.complete(k);
      s.run->drive();
    }
    CHECK(s.run->done());
    CHECK(s.run->completed() == 7);
    CHECK(s.transport.posted.size() == 7);
  }
}

TEST_CASE("a window holds up to 32 messages") {
  std::string forty;
  for (int i = 0; i < 40; ++i) forty += "send 1 input[0:1]\n";
  for (const int window : {31, 32, 33}) {
    CAPTURE(window);
    Stage s(forty, window);
    s.start();
    REQUIRE(s.transport.posted.size() == static_cast<std::size_t>(std::min(window, 32)));
    for (std::size_t i = 0; i < 40; ++i) {
      s.transport.complete(i);
      CHECK(s.run->drive() == (i == 39));
    }
    CHECK(s.transport.posted.size() == 40);
  }
}

TEST_CASE("a message that must wait holds up those after it in its channel, and no others") {
  Stage s("recv 2 output[0:2]\nsend 1 output[0:2]\nsend 1 input[0:3]\nsend 2 input[0:4]", 4);
  s.start();
  CHECK(s.transport.fresh() == Texts{"recv 2 of 2", "send 2 of 4"});
  s.transport.complete(0);
  s.run->drive();
  CHECK(s.transport.fresh() == Texts{"send 1 of 2", "send 1 of 3"});
}

TEST_CASE("what waits for a message goes on though the next has taken its place in the window") {
  Stage s("recv 1 output[0:1]\nrecv 1 output[1:2]\nsend 2 output[0:1]", 1);
  s.start();
  CHECK(s.transport.fresh() == Texts{"recv 1 of 1"});
  s.transport.complete(0);
  s.run->drive();
  CHECK(s.transport.fresh() == Texts{"recv 1 of 2", "send 2 of 1"});
}

TEST_CASE("receives into slots are posted at once; folds follow them") {
  Stage s("send 1 output[0:2]\nrecv_reduce 1 output[0:2]\nsend 2 output[0:2]", 2);
  s.output[0] = std::byte{5};
  s.start();
  CHECK(s.transport.fresh() == Texts{"send 1 of 2", "recv 1 of 2"});
  const std::byte got[2] = {std::byte{3}, std::byte{4}};
  std::memcpy(s.transport.posted[1].data, got, 2);
  s.transport.complete(1);
  s.run->drive();
  CHECK(s.output[0] == std::byte{5});  // still to be sent
  s.transport.complete(0);
  s.run->drive();
  CHECK(s.output[0] == std::byte{8});
  CHECK(s.output[1] == std::byte{4});
  CHECK(s.transport.fresh() == Texts{"send 2 of 2"});
}

TEST_CASE("tags: the operation's, plus the lane") {
  Stage s("send 1 input[0:1]\nsend 1 input[0:1] lane 3\nrecv 1 output[0:1] lane 3", 2);
  s.start(40);
  CHECK(s.transport.posted[0].tag == 40);
  CHECK(s.transport.posted[1].tag == 43);
  CHECK(s.transport.posted[2].tag == 43);
}

TEST_CASE("local steps run in the order of their dependencies, at start if they wait for nothing") {
  Stage s(
      "copy output[0:4] = input[0:4]\nfold output[0:4] = output[0:4] + input[4:4]\ndivide "
      "output[0:4]",
      2);
  for (std::size_t i = 0; i < 16; ++i) s.input[i] = static_cast<std::byte>(3 * i);
  CHECK(s.start_scripted(0));
  CHECK(s.run->done());
  CHECK(s.run->drive());
  for (std::size_t i = 0; i < 4; ++i)
    CHECK(s.output[i] == static_cast<std::byte>((3 * i + 3 * (i + 4)) / 3));
}

TEST_CASE("scratch and slots of up to 4096 bytes together are the run's own") {
  const auto run = [](std::size_t scratch, std::size_t slots) {
    std::string steps = "recv_reduce 1 output[0:" + std::to_string(slots) + "]";
    if (scratch > 0) {
      const std::string all = "[0:" + std::to_string(scratch) + "]";
      steps = "copy scratch" + all + " = input" + all + "\n" + steps;
    }
    Stage s(steps, 1, 1, 5000);
    if (s.run->has_scratch()) {
      const auto distance = s.run->bases()[slot_base] - s.run->bases()[scratch_base];
      CHECK(distance >= static_cast<std::ptrdiff_t>(scratch));
      CHECK(distance % 64 == 0);
    }
    return s.run->has_scratch();
  };
  CHECK(run(0, 1));
  CHECK(run(0, 4096));
  CHECK(!run(0, 4097));
  CHECK(run(64, 4032));
  CHECK(!run(65, 4032));  // slots begin at a multiple of 64
  CHECK(run(65, 3968));
  CHECK(!run(4100, 1));
}

TEST_CASE("a run may be started again") {
  Stage s("send 1 input[0:1]\nrecv_reduce 1 output[0:1]", 1);
  for (int turn = 0; turn < 3; ++turn) {
    s.transport.posted.clear();
    s.start(turn);
    CHECK(!s.run->done());
    REQUIRE(s.transport.posted.size() == 2);
    CHECK(s.transport.posted[0].tag == turn);
    s.transport.complete(0);
    s.transport.complete(1);
    CHECK(s.run->drive());
  }
}

TEST_CASE("a length that does not fit is an error that says where") {
  for (const std::size_t found : {2u, 4u}) {
    Stage s("recv 1 output[0:3]", 1);
    s.start();
    s.transport.complete(0, found);
    try {
      s.run->drive();
      FAIL_CHECK("expected an Error");
    } catch (const Error& error) {
      CHECK(error.code == ErrorCode::truncated);
      CHECK(error.peer == 1);
      CHECK(error.step == 0);
      CHECK(std::string(error.what())
                .find("expected a message of 3 bytes from rank 1, found " +
                      std::to_string(found)) != std::string::npos);
    }
  }
}

TEST_CASE("waiting: what is in flight, in words; abandon gives it up") {
  Stage s("send 1 input[0:1]\nrecv 2 output[0:5]", 1);
  s.start();
  CHECK(s.run->waiting() ==
        "waits for rank 1 (step 0: send 1 B, lane 0), rank 2 (step 1: recv 5 B, lane 0)");
  CHECK(s.run->blocker() == std::pair(1, 0));
  s.transport.complete(0);
  s.run->drive();
  CHECK(s.run->blocker() == std::pair(2, 1));
  s.run->abandon();
  CHECK(s.transport.posted[1].cancelled);
  CHECK(!s.transport.posted[0].cancelled);
  CHECK(s.run->blocker() == std::pair(-1, -1));
}

TEST_CASE("an empty schedule is done at once") {
  Stage s("", 2);
  s.start();
  CHECK(s.run->done());
  CHECK(s.run->drive());
}

namespace {

// Of each kind of step some that wait and some that do not.
const std::string mixed =
    "copy output[0:4] = input[0:4]\n"                 // 0
    "send 1 output[0:4]\n"                            // 1
    "recv 1 scratch[0:4]\n"                           // 2
    "fold output[4:4] = input[4:4] + scratch[0:4]\n"  // 3
    "send 2 output[4:4]\n"                            // 4
    "send 2 input[8:2]\n"                             // 5: ready, but behind 4
    "recv 2 output[8:4]\n"                            // 6
    "send 1 input[12:3]";                             // 7: ready, but behind 1

}  // namespace

TEST_CASE("a script posts what waits for nothing, and is gone through where all is near") {
  Stage s(mixed, 4);
  REQUIRE(s.run->scripted());
  s.transport.near = true;
  CHECK(s.start_scripted(1));
  CHECK(s.transport.fresh() == Texts{"recv 1 of 4", "recv 2 of 4", "send 1 of 4", "send 2 of 4",
                                     "send 2 of 2", "send 1 of 3"});
  CHECK(s.run->done());
  CHECK(s.run->completed() == 8);
  CHECK(s.transport.tests == 6);
  CHECK(s.run->waiting() == "waits for no message");
}

TEST_CASE("a script that is left anywhere goes on in the order of arrival") {
  // The message of each order that arrives last holds the script up; the rest must go on.
  for (const int attempts : {1, 2, 5}) {
    std::vector<std::size_t> order{0, 1, 2, 3, 4, 5};
    do {
      Stage s(mixed, 4);
      Recorded recorded(s);
      for (int i = 0; i < 16; ++i) s.input[static_cast<std::size_t>(i)] = std::byte(i + 1);
      bool done = s.start_scripted(attempts);
      std::vector<bool> complete(6);
      while (!done) {
        const auto next = std::find_if(order.begin(), order.end(), [&](std::size_t i) {
          return i < s.transport.posted.size() && !complete[i];
        });
        REQUIRE(next != order.end());
        complete[*next] = true;
        if (!s.transport.posted[*next].send) {
          std::fill_n(s.transport.posted[*next].data, 4, std::byte{7});
        }
        s.transport.complete(*next);
        done = s.run->drive();
      }
      CHECK(s.run->completed() == 8);
      CHECK(s.transport.posted.size() == 6);
      CHECK(s.output[0] == std::byte{1});
      CHECK(s.output[4] == std::byte{5 + 7});
      CHECK(s.output[11] == std::byte{7});
      recorded.check(8);
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

constexpr const char* exchange =
    "send 1 input[0:4]\nrecv 1 scratch[0:4]\n"
    "fold output[0:4] = input[0:4] + scratch[0:4]\nsend 2 output[0:4]";

TEST_CASE("a script waits in the transport for a receive that nothing can be done without") {
  Stage s(exchange, 4);
  s.transport.near = true;
  CHECK(s.start_scripted(1, true));
  CHECK(s.transport.fresh() == Texts{"send 1 of 4", "recv 1 of 4", "send 2 of 4"});
  CHECK(s.transport.waited == "1 ");
  CHECK(s.transport.sent_waiting == 1);
  CHECK(s.transport.tests == 2);
  Stage left(exchange, 4);
  left.transport.near_peer = 2;
  CHECK(!left.start_scripted(1, true));  // over its first send
  left.transport.complete(0);
  CHECK(left.run->drive());
  CHECK(left.transport.posted.size() == 3);
  Stage polled(exchange, 4);
  CHECK(!polled.start_scripted(3));
  CHECK(polled.transport.waited.empty());
  polled.transport.complete(1);
  CHECK(!polled.run->drive());
  CHECK(polled.transport.fresh() == Texts{"send 1 of 4", "recv 1 of 4", "send 2 of 4"});
}

TEST_CASE("a small send goes with the last receive, a large one before it") {
  const std::string both = "send 1 input[0:4]\ncopy output[8:4] = input[8:4]\nrecv 1 output[0:4]";
  Stage s(both, 4);
  s.transport.near = true;
  CHECK(s.start_scripted(1, true));
  CHECK(s.transport.together == 1);
  CHECK(s.run->done());
  CHECK(s.transport.fresh() == Texts{"send 1 of 4", "recv 1 of 4"});
  Stage polled(both, 4);
  polled.transport.near = true;
  CHECK(polled.start_scripted(2));
  CHECK(polled.transport.together == 0);
  CHECK(polled.transport.waited.empty());
  // A send behind it is still to be awaited.
  Stage left("send 2 input[0:4]\nsend 1 input[4:4]\nrecv 1 output[0:4]", 4);
  left.transport.near_peer = 1;
  CHECK(!left.start_scripted(1, true));
  CHECK(left.transport.together == 1);
  CHECK(left.run->waiting() == "waits for rank 2 (step 0: send 4 B, lane 0)");
  left.transport.complete(0);
  CHECK(left.run->drive());
}

TEST_CASE("a small send that is the last message is waited for in the transport") {
  Stage s("send 2 input[0:4]\nsend 1 input[4:4]\ncopy output[8:4] = input[8:4]", 4);
  s.transport.near_peer = 1;
  CHECK(!s.start_scripted(1, true));  // over its first send
  CHECK(s.transport.sent_waiting == 1);
  CHECK(s.run->waiting() == "waits for rank 2 (step 0: send 4 B, lane 0)");
  s.transport.complete(0);
  CHECK(s.run->drive());
  CHECK(s.transport.fresh() == Texts{"send 2 of 4", "send 1 of 4"});
  // Not while a receive is under way, whose data others may wait for; nor if the rank may not wait.
  Stage busy("recv 2 output[0:4]\nrecv 1 output[4:4]\nsend 1 input[4:4]", 4);
  busy.transport.near = true;
  CHECK(busy.start_scripted(9, true));
  CHECK(busy.transport.sent_waiting == 0);
  Stage polled("send 1 input[4:4]", 4);
  polled.transport.near = true;
  CHECK(polled.start_scripted(9));
  CHECK(polled.transport.sent_waiting == 0);
}

TEST_CASE("a script tells of its waits in the transport, until they return or throw") {
  Stage s(exchange, 4);
  s.transport.near = true;
  CHECK(s.start_scripted(1, true));
  CHECK(s.view.seen == "recv 1 in step 1 left send 2 in step 3 left ");
  Stage both("send 1 input[0:4]\nrecv 2 output[0:4]", 4);
  both.transport.near = true;
  CHECK(both.start_scripted(1, true));
  CHECK(both.view.seen == "recv 2 in step 1 send 1 in step 0 left ");
  Stage polled(exchange, 4);
  polled.transport.near = true;
  CHECK(polled.start_scripted(9));
  CHECK(polled.view.seen.empty());
  Stage refused("send 1 input[0:4]", 4);
  refused.transport.refused = 0;
  CHECK_THROWS_AS(refused.start_scripted(1, true), Error);
  CHECK(refused.view.seen == "send 1 in step 0 left ");
}

TEST_CASE("what is waited for in the transport is recorded too, and what fails as far as it came") {
  for (const char* steps : {exchange, "send 1 input[0:4]", "recv 1 output[0:4]"}) {
    Stage s(steps, 4);
    s.transport.near = true;
    Recorded recorded(s);
    CHECK(s.start_scripted(9, true));
    recorded.check(s.run->plan().items().size());
  }
  Stage failing(exchange, 4);
  failing.transport.lost = 1;
  const Recorded recorded(failing);
  CHECK_THROWS_AS(failing.start_scripted(1, true), Error);
  failing.run->abandon();
  recorded.check(0);

  // One run is recorded, not those that follow it.
  Stage s("send 1 input[0:4]", 4);
  s.transport.near = true;
  const Recorded once(s);
  for (int i = 0; i < 3; ++i) CHECK(s.start_scripted(9));
  once.check(1);
}

TEST_CASE("a receive that a script waited for and that is short fails the run") {
  Stage s(exchange, 4);
  s.transport.lost = 1;
  const Error error = support::error_of([&] { s.start_scripted(1, true); });
  CHECK(error.code == ErrorCode::truncated);
  CHECK(error.step == 1);
  s.run->abandon();
  CHECK(s.transport.posted[0].cancelled);
  CHECK(!s.transport.posted[1].cancelled);
}

TEST_CASE("a scripted run that fails can be abandoned") {
  Stage s(mixed, 4);
  s.transport.near = true;
  s.transport.lost = 1;
  const Error error = support::error_of([&] { s.start_scripted(10); });
  CHECK(error.code == ErrorCode::truncated);
  CHECK(error.step == 2);
  s.run->abandon();
  // The first receive came to its end, and the send that its fold was for was not posted.
  CHECK(s.transport.fresh() == Texts{"recv 1 of 4", "recv 2 of 4", "send 1 of 4"});
  for (std::size_t i = 0; i < s.transport.posted.size(); ++i) {
    CHECK(s.transport.posted[i].cancelled == (i != 0));
  }
  Stage late(mixed, 4);
  CHECK(!late.start_scripted(3));
  CHECK(late.run->waiting().find("rank 1 (step 2: recv 4 B, lane 0)") != std::string::npos);
}

TEST_CASE("a run that fails while it leaves its script abandons each message once") {
  // The script waits for rank 1's message; the send behind it is ready when it is left.
  Stage s(
      "recv 1 scratch[0:4]\nrecv 2 output[8:4]\n"
      "fold output[0:4] = input[0:4] + scratch[0:4]\n"
      "copy scratch[4:4] = input[4:4]\nsend 2 scratch[4:4]",
      4);
  s.transport.refused = 2;
  CHECK(support::error_of([&] { s.start_scripted(1); }).code == ErrorCode::transport);
  s.run->abandon();
  CHECK(s.transport.posted.size() == 2);
  for (const auto& posted : s.transport.posted) CHECK(posted.cancelled);
}

TEST_CASE("a script that is left keeps the places of messages in flight") {
  Stage s("send 1 input[0:1]\nsend 1 input[1:1]\nrecv 2 output[0:1]\nsend 1 output[0:1]", 3);
  REQUIRE(s.run->scripted());  // the window has room for three
  CHECK(!s.start_scripted(1));
  CHECK(s.transport.posted.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    if (!s.transport.posted[i].send) s.transport.complete(i);
  }
  CHECK(!s.run->drive());
  REQUIRE(s.transport.posted.size() == 4);
  CHECK(s.transport.posted[3].send);
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(s.transport.posted[i].message != s.transport.posted[3].message);
  for (std::size_t i = 0; i < 4; ++i) s.transport.complete(i);
  CHECK(s.run->drive());
}

TEST_CASE("no script where a channel has more messages than the window") {
  CHECK(!Stage(mixed, 1).run->scripted());
  std::string long_one = "copy output[0:1] = input[0:1]";
  for (int i = 1; i < 49; ++i) long_one += "\ncopy output[0:1] = input[1:1]";
  CHECK(!Stage(long_one, 4).run->scripted());
}
