// Every number here is worked out from the rules in lib/simulate/README.md, none by the simulator.

#include <doctest/doctest.h>

#include "baton/schedule/text.hpp"
#include "simulate/support.hpp"

using namespace baton;
using simulate_support::by_hand;
using simulate_support::on_hosts;
using simulate_support::predicted;
using simulate_support::Program;
using Times = std::vector<std::int64_t>;

TEST_CASE("a broadcast by a binomial tree on 8 ranks") {
  // The root's messages leave at 100, 210 (behind the first) and 320; each is there 1110 later.
  const Prediction p = predicted("broadcast", "binomial", 8, 25, by_hand());
  CHECK(p.finish == Times{300, 1630, 1620, 2930, 1610, 2930, 2920, 4230});
  CHECK(p.total == 4230);
  CHECK(p.messages == 7);
  CHECK(p.steps == 14);
  CHECK(p.bytes_within == 700);
}

TEST_CASE("a ring all-reduce on 4 ranks") {
  // Five times 1110 on the way; 3 times taken, (posted,) folded, sent; then taken, posted, sent.
  const Prediction p = predicted("all_reduce", "ring", 4, 100, by_hand());
  CHECK(p.finish == Times{9000, 9000, 9000, 9000});
  CHECK(p.messages == 24);
}

TEST_CASE("a long message is announced, answered, and then sent") {
  Network network = by_hand();
  network.within.eager = 99;
  network.within.handshake = 40;
  const Prediction p = predicted("broadcast", "linear", 2, 25, network);
  CHECK(p.finish == Times{2330, 3530});
  network.within.eager = 100;
  CHECK(predicted("broadcast", "linear", 2, 25, network).finish == Times{100, 1410});
}

TEST_CASE("a rendezvous waits for the receive to be posted") {
  Network network = by_hand();
  network.within.eager = 99;
  network.within.handshake = 40;
  network.copy = TimeTable::line(5000, 0);
  Program program(2);
  program.rank(0).send(1, 0, 25);
  program.rank(1).copy(0, 25, 25).recv(0, 25, 25);  // into what the copy reads
  // Posted from 5000 to 5050, answered until 5090, known at 6110, under way from 6150.
  CHECK(program.simulated(network).finish == Times{6260, 7460});
}

TEST_CASE("an eager message that comes before its receive is taken when that is posted") {
  Network network = by_hand();
  network.copy = TimeTable::line(5000, 0);
  Program program(2);
  program.rank(0).send(1, 0, 25);
  program.rank(1).copy(0, 25, 25).recv(0, 25, 25);
  CHECK(program.simulated(network).finish == Times{100, 5250});
}

TEST_CASE("a window holds up what is behind it") {
  SimulateOptions options;
  options.window = 1;
  CHECK(predicted("broadcast", "chain", 2, 75, by_hand(), options, 25).total == 1910);
  options.window = 2;
  CHECK(predicted("broadcast", "chain", 2, 75, by_hand(), options, 25).total == 1860);

  Network network = by_hand();
  network.within.eager = 99;
  network.within.handshake = 40;
  options.window = 1;
  CHECK(predicted("broadcast", "chain", 2, 50, network, options, 25).finish == Times{4790, 5990});
}

TEST_CASE("ranks of a host share its wire to others") {
  Program program(4);
  program.rank(0).send(2, 0, 25);
  program.rank(1).send(3, 0, 25);
  program.rank(2).recv(0, 0, 25);
  program.rank(3).recv(1, 0, 25);
  CHECK(program.simulated(by_hand()).finish == Times{100, 100, 1410, 1410});
  const Prediction p = program.simulated(by_hand(), on_hosts({0, 0, 1, 1}));
  CHECK(p.finish == Times{100, 100, 1410, 1520});
  CHECK(p.bytes_within == 0);
  REQUIRE(p.hosts.size() == 2);
  CHECK(p.hosts[0].sent == 200);
  CHECK(p.hosts[0].received == 0);
  CHECK(p.hosts[1].received == 200);
}

TEST_CASE("an announcement holds up no message that is ready before it") {
  Network network;
  network.copy = TimeTable::line(0, 1000);
  network.across.latency = 1000;
  network.across.eager = 100;
  network.across.wire = TimeTable::line(0, 1);
  // Rank 0 announces a long message after 1,000,000 ns of copying, which rank 1 knows nothing of.
  Program two_hosts(4);
  two_hosts.rank(0).copy(0, 500, 250).send(2, 0, 250);
  two_hosts.rank(1).send(3, 0, 25);
  two_hosts.rank(2).recv(0, 0, 250);
  two_hosts.rank(3).recv(1, 0, 25);
  for (const std::int64_t packet : {0, 4000}) {
    network.across.packet = packet;
    const Prediction result = two_hosts.simulated(network, on_hosts({0, 0, 1, 1}));
    CHECK(result.finish[3] == 100 + 1000);
    CHECK(result.finish[2] == 1'000'000 + 3 * 1000 + 1000);
  }
  // In packets, messages of one rank alone meet as well.
  Program three_hosts(3);
  three_hosts.rank(0).send(1, 900, 25).copy(0, 500, 250).send(2, 0, 250);
  three_hosts.rank(1).recv(0, 0, 25);
  three_hosts.rank(2).recv(0, 0, 250);
  network.across.packet = 10;
  CHECK(three_hosts.simulated(network, on_hosts({0, 1, 2})).finish[1] == 100 + 1000);
}

TEST_CASE("a short message passes between the packets of a long one") {
  Program program(4);
  program.rank(0).send(2, 0, 250);
  program.rank(1).send(3, 0, 5);
  program.rank(2).recv(0, 0, 250);
  program.rank(3).recv(1, 0, 5);
  // First in, first out: behind the 1010 of the other, on both wires; 30 for its own 20 bytes.
  Network network = by_hand();
  CHECK(program.simulated(network, on_hosts({0, 0, 1, 1})).finish == Times{100, 100, 2310, 2340});
  // In turn: a packet of the long one until 210, the short one until 240, nine more packets until
  // 1140; a latency later all of that at the other wire.
  network.across.packet = 100;
  const Prediction p = program.simulated(network, on_hosts({0, 0, 1, 1}));
  CHECK(p.finish == Times{100, 100, 1140 + 1000 + 200, 240 + 1000 + 200});
  CHECK(p.hosts[0].sent == 1020);
}

TEST_CASE("packets of several hosts take turns at the receiver's wire, and save no time") {
  Network network = by_hand();
  network.across.packet = 100;
  Program program(3);
  program.rank(0).send(2, 0, 75);
  program.rank(1).send(2, 0, 50);
  program.rank(2).recv(0, 0, 75).recv(1, 75, 50);
  // Both on their own wires from 100 on. At the last one from 1100 on: 110 of the first, 110 of the
  // second, 100 each, 100 of the first: until 1620; the second is there at 1520 and taken until
  // 1720.
  const Prediction p = program.simulated(network, on_hosts({0, 1, 2}));
  CHECK(p.finish == Times{100, 100, 1720 + 200});
}

TEST_CASE("messages of one channel do not overtake each other in packets") {
  Network network = by_hand();
  network.across.packet = 100;
  Program program(2);
  program.rank(0).send(1, 0, 50).send(1, 50, 25);
  program.rank(1).recv(0, 0, 50).recv(0, 50, 25);
  // The first is on the wire until 310 and there at 1310, the second until 420 and there at 1420,
  // while the first is taken.
  CHECK(program.simulated(network, on_hosts({0, 1})).finish == Times{200, 1310 + 200 + 200});
}

TEST_CASE("messages of several lanes from one rank to another share a connection") {
  Network network = by_hand();
  network.across.packet = 100;
  const auto schedules = std::make_shared<const std::vector<Schedule>>(
      parse("baton-schedule 1\ncollective program\nsize 2\ninput 0\noutput 0\n"
            "rank 0\nsend 1 scratch[0:250]\nsend 1 scratch[250:5] lane 1\n"
            "rank 1\nrecv 0 scratch[0:250]\nrecv 0 scratch[250:5] lane 1\n"));
  // The first is on the wire until 1110 and there at 2110, the short one behind it.
  CHECK(simulate(schedules, 4, network, on_hosts({0, 1})).finish == Times{200, 2110 + 200 + 200});
}

TEST_CASE("calls follow each other on each rank") {
  SimulateOptions options;
  options.calls = 3;
  // One call takes 1410 on the receiver and 100 on the sender, who runs ahead.
  const Prediction p = predicted("broadcast", "linear", 2, 25, by_hand(), options);
  CHECK(p.messages == 3);
  CHECK(p.finish[0] == 300);
  // Then taken and posted in turn: the others have long been there.
  CHECK(p.finish[1] == 1410 + 2 * (50 + 200));
  // Where everybody waits for everybody, calls cost what they cost alone.
  const auto total = [&](int calls) {
    options.calls = calls;
    return predicted("all_reduce", "ring", 4, 100, by_hand(), options).total;
  };
  CHECK(total(4) == 4 * total(1));
}

TEST_CASE("a bucket lets a burst pass after a pause") {
  Network network = by_hand();
  network.across.burst = 50;
  Program program(2);
  program.rank(0).send(1, 0, 25).send(1, 25, 25);
  program.rank(1).recv(0, 0, 25).recv(0, 25, 25);
  // The first passes in 60; the bucket is empty then, so the second takes all its 110 from 160 on.
  const Prediction p = program.simulated(network, on_hosts({0, 1}));
  CHECK(p.finish == Times{200, 1270 + 200 + 90});
}

TEST_CASE("ranks share processors") {
  Network network = by_hand();
  Program program(2);
  program.rank(0).send(1, 0, 25).recv(1, 25, 25);
  program.rank(1).send(0, 0, 25).recv(0, 25, 25);
  CHECK(program.simulated(network).finish == Times{1410, 1410});
  network.processors = 2;
  CHECK(program.simulated(network).finish == Times{1410, 1410});
  network.processors = 1;
  // Rank 1 begins at 150; its message is there at 1360, while it takes its own until 1410.
  CHECK(program.simulated(network).finish == Times{1610, 1410});
}

TEST_CASE("what a processor copies overlaps the wire") {
  Network network = by_hand();
  network.within.send = TimeTable::line(100, 0.5);
  network.within.receive = TimeTable::line(200, 0.5);
  // On the wire from 100, copied until 150; taken from 1160, when what is left takes as long as the
  // wire still does.
  CHECK(predicted("broadcast", "linear", 2, 25, network).finish == Times{150, 1410});
  // A copy that is slower than the wire: sent until 100 + 200, taken in 200 + 300 after the head.
  network.within.send = TimeTable::line(100, 2);
  network.within.receive = TimeTable::line(200, 3);
  CHECK(predicted("broadcast", "linear", 2, 25, network).finish == Times{300, 1600});
}

TEST_CASE("the timeline has every step's times") {
  SimulateOptions options;
  options.timeline = true;
  const Prediction p = predicted("all_reduce", "ring", 2, 50, by_hand(), options);
  REQUIRE(p.timeline);
  const Timeline& t = *p.timeline;
  CHECK(t.kind == TimelineKind::predicted);
  CHECK(t.ranks == 2);
  REQUIRE(t.operations.size() == 1);
  CHECK(t.operations[0].name == "all_reduce");
  CHECK(t.operations[0].choice.algorithm == "ring");
  CHECK(t.operations[0].bytes == 200);
  REQUIRE(t.events.size() == 10);
  struct Row {
    StepKind kind;
    std::int64_t posted, start, end;
  };
  const Row rows[] = {{StepKind::send, 0, 100, 100},
                      {StepKind::recv, 100, 150, 1410},
                      {StepKind::recv, 150, 200, 2950},
                      {StepKind::fold, 1410, 1410, 1540},
                      {StepKind::send, 1540, 1640, 1640}};
  for (std::size_t i = 0; i < 10; ++i) {
    const Event& event = t.events[i];
    const Row& row = rows[i % 5];
    CHECK(event.rank == static_cast<int>(i / 5));
    CHECK(event.kind == row.kind);
    CHECK(event.bytes == 100);
    CHECK(event.peer == (event.message() ? 1 - event.rank : -1));
    CHECK(event.posted == row.posted);
    CHECK(event.start == row.start);
    CHECK(event.end == row.end);
  }
}
