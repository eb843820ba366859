#include "schedule/matching.hpp"

#include <doctest/doctest.h>

#include "baton/schedule/text.hpp"
#include "support/schedules.hpp"

using namespace baton;
using scheduling::Channels;
using scheduling::Matching;
using scheduling::none;

namespace {

/// Three ranks; rank 0 and 1 exchange in two lanes, both send to rank 2 twice.
std::vector<Schedule> three() {
  return parse(R"(baton-schedule 1
collective all_reduce
size 3
input 4
output 4
rank 0
send 2 input[0:1]
send 1 input[0:2]
recv 1 output[0:2] lane 1
send 1 input[2:2]
send 2 input[1:1]
rank 1
recv 0 output[0:2]
send 2 input[0:1]
send 0 input[0:2] lane 1
recv 0 output[2:2]
send 2 input[1:1]
rank 2
recv 1 output[0:1]
recv 0 output[1:1]
recv 0 output[2:1]
recv 1 output[3:1]
)");
}

Matching matched(const std::vector<Schedule>& schedules, std::string* wrong = nullptr) {
  Matching matching;
  for (const Schedule& schedule : schedules) matching.add(schedule);
  const auto found = matching.match();
  if (wrong) *wrong = found.value_or("");
  return matching;
}

}  // namespace

TEST_CASE("a rank's channels stand in the order of their first messages") {
  const Channels channels = scheduling::channels_of(three()[0]);
  REQUIRE(channels.list.size() == 3);
  CHECK(channels.peers == std::vector<std::int32_t>{2, 1, 1});
  CHECK(channels.messages == std::vector<std::uint32_t>{0, 4, 1, 3, 2});
  CHECK(channels.list[1] == scheduling::Channel{2, 4, 0, true});
  CHECK(channels.list[2] == scheduling::Channel{4, 5, 1, false});
}

TEST_CASE("the k-th send of a channel meets the k-th receive") {
  std::string wrong;
  const Matching matching = matched(three(), &wrong);
  CHECK(wrong == "");
  CHECK(matching.ranks() == 3);
  CHECK(matching.count() == 14);
  const auto step = [&](int rank, std::uint32_t i) { return matching.first(rank) + i; };
  const auto meet = [&](std::uint32_t a, std::uint32_t b) {
    CHECK(matching.partner(a) == b);
    CHECK(matching.partner(b) == a);
  };
  meet(step(0, 0), step(2, 1));
  meet(step(0, 4), step(2, 2));
  meet(step(0, 1), step(1, 0));
  meet(step(0, 3), step(1, 3));
  meet(step(1, 2), step(0, 2));
  meet(step(1, 1), step(2, 0));
  meet(step(1, 4), step(2, 3));
}

TEST_CASE("every message of every algorithm has another end, of its own length") {
  const Registry registry = Registry::builtin();
  for (const Algorithm& algorithm : registry.all()) {
    for (const int size : {1, 2, 3, 4, 5, 7, 8}) {
      Problem p = support::problem(algorithm.collective, size, 0, 2 * size + 3);
      if (algorithm.collective == Collective::barrier) p.count = 1;
      p.hosts = support::hosts_for(algorithm, size);
      if (!refusal(algorithm, p).empty()) continue;
      const auto schedules = support::schedules(algorithm, support::problems(p));
      std::string wrong;
      const Matching matching = matched(schedules, &wrong);
      CHECK(wrong == "");
      const auto at = [&](std::uint32_t s) {
        int rank = 0;
        while (matching.first(rank + 1) <= s) ++rank;
        return std::pair(rank, s - matching.first(rank));
      };
      for (std::uint32_t s = 0; s < matching.count(); ++s) {
        const auto [rank, i] = at(s);
        const Schedule& schedule = schedules[static_cast<std::size_t>(rank)];
        const Step& step = schedule.steps()[i];
        const std::uint32_t other = matching.partner(s);
        REQUIRE((other != none) == step.message());
        if (other == none) continue;
        const auto [peer, k] = at(other);
        const Schedule& theirs = schedules[static_cast<std::size_t>(peer)];
        CHECK(peer == step.peer);
        CHECK(theirs.steps()[k].peer == rank);
        CHECK(theirs.steps()[k].kind != step.kind);
        CHECK(theirs.length(theirs.steps()[k]) == schedule.length(step));
      }
    }
  }
}

TEST_CASE("channels with more messages at one end are named; the others meet all the same") {
  const auto pair = [](const std::string& ranks) {
    return parse("baton-schedule 1\ncollective all_reduce\nsize 2\ninput 2\noutput 2\n" + ranks);
  };
  std::string wrong;
  Matching matching = matched(
      pair("rank 0\nsend 1 input[0:1]\nsend 1 input[1:1]\nrank 1\nrecv 0 output[0:1]\n"), &wrong);
  CHECK(wrong ==
        "expected as many receives as sends from rank 0 to rank 1 in lane 0, found 1 receive, "
        "2 sends");
  CHECK(matching.partner(0) == 2);
  CHECK(matching.partner(1) == none);

  matched(pair("rank 0\nsend 1 input[0:1] lane 3\nrank 1\nrecv 0 output[0:1]\n"), &wrong);
  CHECK(wrong ==
        "expected as many receives as sends from rank 0 to rank 1 in lane 3, found 0 receives, "
        "1 send");
  matched(pair("rank 0\ncopy output[0:1] = input[0:1]\nrank 1\nrecv 0 output[0:1]\n"), &wrong);
  CHECK(wrong ==
        "expected as many receives as sends from rank 0 to rank 1 in lane 0, found 1 receive, "
        "0 sends");
  // A rank that is not there sends nothing.
  matching = matched({pair("rank 0\nsend 1 input[0:1]\nrank 1\nrecv 0 output[0:1]\n")[0]}, &wrong);
  CHECK(wrong != "");
  CHECK(matching.partner(0) == none);
}
