#include <doctest/doctest.h>

#include "baton/error.hpp"
#include "baton/simulate.hpp"

using namespace baton;

namespace {

std::string refusal_of(const std::string& text) {
  try {
    parse_network(text, "n.txt");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

const std::string head = "baton-network 1\nname n\n";

}  // namespace

TEST_CASE("a time table is straight between its points and beyond") {
  CHECK(TimeTable().of(1000) == 0);
  const TimeTable one({{0, 7.4}});
  CHECK(one.of(0) == 7);
  CHECK(one.of(1 << 30) == 7);
  const TimeTable proportional({{100, 50}});
  CHECK(proportional.of(0) == 0);
  CHECK(proportional.of(10) == 5);
  CHECK(proportional.of(1000) == 500);
  const TimeTable bent({{0, 10}, {100, 110}, {200, 160}});
  CHECK(bent.of(0) == 10);
  CHECK(bent.of(50) == 60);
  CHECK(bent.of(100) == 110);
  CHECK(bent.of(150) == 135);
  CHECK(bent.of(400) == 260);
  CHECK(TimeTable::line(3, 0.5).of(9) == 8);
  CHECK(TimeTable({{0, 1e300}}).of(5) == 1'000'000'000'000'000'000);
  CHECK(TimeTable({{1, 1e300}, {2, 1.7e308}}).of(1 << 30) == 1'000'000'000'000'000'000);
  CHECK_THROWS_WITH_AS(TimeTable({{10, 5}, {10, 6}}),
                       "expected more than 10 bytes and at least 5 ns, found 10 and 6", Error);
  CHECK_THROWS_WITH_AS(TimeTable({{10, 5}, {11, 4}}),
                       "expected more than 10 bytes and at least 5 ns, found 11 and 4", Error);
}

TEST_CASE("every network that is shipped is read, printed and read again") {
  CHECK(shipped_networks().size() == 5);
  for (const std::string& name : shipped_networks()) {
    CAPTURE(name);
    const Network network = network_named(name);
    CHECK(network.name == name);
    CHECK_FALSE(network.source.empty());
    CHECK(parse_network(print(network), "again") == network);
    CHECK(summary(network).starts_with(name + ": within a host "));
  }
}

TEST_CASE("all that a network can say is read") {
  const Network network = parse_network(
      "# a comment\n\nbaton-network 1\nname n n\nsource a\nsource b # c\nranks-per-host 4\n"
      "processors 2\ncall 5\nfold 0 1\nfold 1K 2.5\ncopy 8 3\nwithin\nlatency 6\nacross\n"
      "latency 7\npost 8\nhandshake 9\neager 64K\npacket 32K\nburst 16K 0.25\nsend 0 10\n"
      "receive 0 11\nwire 1M 12\n",
      "n.txt");
  CHECK(network.name == "n n");
  CHECK(network.source == "a\nb");
  CHECK(network.ranks_per_host == 4);
  CHECK(network.processors == 2);
  CHECK(network.call == 5);
  CHECK(network.fold == TimeTable({{0, 1}, {1024, 2.5}}));
  CHECK(network.copy == TimeTable({{8, 3}}));
  CHECK(network.within.latency == 6);
  CHECK(network.across.latency == 7);
  CHECK(network.across.post == 8);
  CHECK(network.across.handshake == 9);
  CHECK(network.across.eager == 65536);
  CHECK(network.across.packet == 32768);
  CHECK(network.across.burst == 16384);
  CHECK(network.across.burst_per_byte == 0.25);
  CHECK(network.across.send == TimeTable({{0, 10}}));
  CHECK(network.across.receive == TimeTable({{0, 11}}));
  CHECK(network.across.wire == TimeTable({{1 << 20, 12}}));
  CHECK(parse_network(print(network), "again") == network);
}

TEST_CASE("print refuses what would not be read back") {
  const auto refusal = [](const auto& change) {
    Network network = parse_network(head + "within\nlatency 6\n", "n.txt");
    change(network);
    try {
      const Network again = parse_network(print(network), "again");
      CHECK(again == network);
    } catch (const Error& error) {
      CHECK(error.code == ErrorCode::invalid_argument);
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refusal([](Network& n) { n.across.latency = 1'000'000'000'000; }) == "");
  CHECK(refusal([](Network& n) {
          n.across.latency = 1'000'000'000'001;
        }).find("expected whole nanoseconds from 0 to 1000000000000, found") != std::string::npos);
  CHECK(refusal([](Network& n) { n.call = -1; }).find("found \"-1\"") != std::string::npos);
  CHECK(refusal([](Network& n) { n.within.packet = -1; }) ==
        "expected a network of numbers of 0 or more, found others");
  CHECK(refusal([](Network& n) { n.name = "lab #2"; }) ==
        "expected a network's name without # and blanks at its ends, found \"lab #2\"");
  CHECK(refusal([](Network& n) { n.name = ""; }).find("name without") != std::string::npos);
  CHECK(refusal([](Network& n) { n.name = "a\ncall 5"; }).find("name without") !=
        std::string::npos);
  CHECK(refusal([](Network& n) { n.source = "a\n\nb"; }) == "");
  CHECK(refusal([](Network& n) { n.source = "see\nissue #12"; }).find("source without") !=
        std::string::npos);
}

TEST_CASE("a level that is not given is the other one") {
  const Network network = parse_network(head + "within\nlatency 6\n", "n.txt");
  CHECK(network.across == network.within);
}

TEST_CASE("what is wrong with a network file is said with its line") {
  CHECK(refusal_of("") == "n.txt:1: expected \"baton-network 1\", found the end of the text");
  CHECK(refusal_of("latency 5\n") == "n.txt:1: expected \"baton-network 1\", found \"latency\"");
  CHECK(refusal_of("baton-network 2\n") == "n.txt:1: expected version 1 of the form, found \"2\"");
  CHECK(refusal_of(head) ==
        "n.txt:3: expected \"within\" or \"across\", found the end of the text");
  CHECK(refusal_of("baton-network 1\nwithin\n") ==
        "n.txt:3: expected \"name\", found the end of the text");
  CHECK(refusal_of(head + "latency 5\n") ==
        "n.txt:3: expected name, source, ranks-per-host, processors, call, fold, copy, within or "
        "across, found \"latency\"");
  CHECK(refusal_of(head + "within\nspeed 5\n") ==
        "n.txt:4: expected latency, post, handshake, send, receive, wire, eager, packet, burst, "
        "within or across, found \"speed\"");
  CHECK(refusal_of(head + "within\nlatency -5\n") ==
        "n.txt:4: expected whole nanoseconds from 0 to 1000000000000, found \"-5\"");
  CHECK(refusal_of(head + "within\nlatency\n") ==
        "n.txt:4: expected whole nanoseconds from 0 to 1000000000000, found \"\"");
  CHECK(refusal_of(head + "within\nlatency 5 us\n") ==
        "n.txt:4: expected the end of the line, found \"us\"");
  CHECK(refusal_of(head + "within\nsend 8 fast\n") ==
        "n.txt:4: expected nanoseconds of at least 0, found \"fast\"");
  CHECK(refusal_of(head + "within\nsend 8 9\nsend 4 9\n") ==
        "n.txt:5: expected more than 8 bytes and at least 9 ns, found 4 and 9");
  CHECK(refusal_of(head + "within\nwithin\n") ==
        "n.txt:4: expected \"within\" once, found it again");
  CHECK(refusal_of(head + "within\neager many\n").starts_with("n.txt:4: expected "));
  CHECK_THROWS_WITH_AS(network_named("nowhere"),
                       "network: expected a file or one of infiniband-100g, nvlink, shared-memory, "
                       "virtual-cluster-1gbit, virtual-cluster-200mbit, found \"nowhere\"",
                       Error);
}

TEST_CASE("a table of a network has a bounded number of points") {
  const auto text = [](int points) {
    std::string text = head + "within\nlatency 1\n";
    for (int i = 0; i < points; ++i)
      text += "send " + std::to_string(i) + " " + std::to_string(i) + "\n";
    return text;
  };
  CHECK(parse_network(text(1000), "n.txt").within.send.points().size() == 1000);
  CHECK(refusal_of(text(100'000)) == "n.txt:1005: expected at most 1000 of these, found more");
}
