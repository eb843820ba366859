/// The cause of a hang, from pages written by hand.

#include "status/diagnosis.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "baton/collective.hpp"
#include "baton/types.hpp"

using namespace baton;
using namespace baton::status;

namespace {

constexpr std::int64_t second = 1'000'000'000, now = 100 * second;

Call all_reduce(std::int64_t count, const char* algorithm = "ring") {
  Call call;
  call.kind = Call::Kind::collective;
  call.collective = static_cast<std::uint8_t>(Collective::all_reduce);
  call.type = static_cast<std::uint8_t>(Datatype::f32);
  call.count = count;
  call.set_text(algorithm);
  return call;
}

Call broadcast(int root) {
  Call call = all_reduce(10, "binomial");
  call.collective = static_cast<std::uint8_t>(Collective::broadcast);
  call.root = root;
  return call;
}

/// A living rank that has finished broadcast #11 4.1 s ago.
Witness rank(int r) {
  Standing s;
  s.first = 2;
  s.rank = r;
  s.read_ns = now;
  s.operations.push_back({11, now - 5 * second, now - 4 * second - second / 10, broadcast(0)});
  return {s, {.life = Life::sleeps}};
}

/// One that waits in operation 12 for another rank.
Witness waiting(int r, int blocker, const Call& call = all_reduce(10)) {
  Witness witness = rank(r);
  witness.standing->operations.push_back({12, now - 3 * second, 0, call});
  witness.standing->blocker = blocker;
  witness.standing->waits = "waits for rank " + std::to_string(blocker) + " (step 4: recv 40 B)";
  return witness;
}

std::string said(const std::vector<Witness>& ranks, std::uint64_t number = 12) {
  return diagnosis(
      {.label = "world", .rank = 0, .number = number, .name = "all_reduce", .seconds = 2}, ranks);
}

const std::string head =
    "all_reduce #12 of communicator 'world' cannot complete (no progress for 2 s): ";

}  // namespace

TEST_CASE("diagnosis: a rank that has not come, and whether it lives") {
  std::vector<Witness> ranks = {waiting(0, 1), waiting(1, 2), rank(2)};
  const std::string waits =
      "rank 0 waits for rank 1 (step 4: recv 40 B); rank 1 waits for rank 2 (step 4: recv 40 B)";
  CHECK(said(ranks) ==
        head +
            "rank 2 has not entered it (last: broadcast #11, finished 4.1 s ago; its "
            "process is alive and sleeps); " +
            waits);
  CHECK(said(ranks, 13) == said(ranks));  // whatever a rank waits for
  ranks[2].condition = {.life = Life::runs};
  CHECK(said(ranks).find("its process is alive and computes)") != std::string::npos);
  ranks[2].condition = {.life = Life::sleeps, .thread_ended = true};
  CHECK(said(ranks).find("its process is alive, its thread has ended)") != std::string::npos);
  ranks[2].condition = {.life = Life::stopped};
  CHECK(said(ranks).find("its process is stopped)") != std::string::npos);
  ranks[2].condition = {.life = Life::ended, .signal = 9};
  CHECK(said(ranks).find("its process has ended with signal 9)") != std::string::npos);
  ranks[2].standing.reset();
  CHECK(said(ranks) == head + "rank 2: its process has ended with signal 9; " + waits);
  ranks[2].condition = {.life = Life::sleeps};
  CHECK(said(ranks) ==
        head + "rank 2 has left the communicator (its process is alive and sleeps); " + waits);
  ranks[2].condition = {};
  CHECK(said(ranks) == head + "rank 2: it runs on another machine and does not answer; " + waits);
}

TEST_CASE("diagnosis: a rank that is in something else") {
  std::vector<Witness> ranks = {waiting(0, 1), rank(1)};
  Standing& s = *ranks[1].standing;
  Call message;
  message.kind = Call::Kind::recv;
  message.root = 0;
  message.set_text("tag 7");
  s.operations.push_back({0, now - second, 0, message});
  s.blocker = 0;
  s.waits = "waits for rank 0 (step 0: recv 4 B)";
  CHECK(said(ranks).find("finished 4.1 s ago; it has been in recv from rank 0 for 1.0 s, where it "
                         "waits for rank 0 (step 0: recv 4 B); its process is alive") !=
        std::string::npos);
  ranks[1] = rank(1);
  Standing other = *waiting(0, 1, broadcast(1)).standing;
  other.label = "pairs";
  ranks[1].others.push_back(other);
  CHECK(said(ranks).find("it has been in broadcast #12 of communicator 'pairs' for 3.0 s, where it "
                         "waits for rank 1 (step 4: recv 40 B)") != std::string::npos);
}

TEST_CASE("diagnosis: the operation before counts, if one rank has not completed it") {
  std::vector<Witness> ranks = {rank(0), waiting(1, 0), rank(2)};
  ranks[0].standing->operations.push_back({12, now - 3 * second, now - 2 * second, all_reduce(10)});
  ranks[0].standing->operations.push_back({13, now - second, 0, broadcast(0)});
  CHECK(said(ranks, 13).starts_with(head + "rank 2 has not entered it"));
}

TEST_CASE("diagnosis: ranks that disagree about a call") {
  const std::vector<Witness> ranks = {waiting(0, 1), waiting(1, 2), waiting(2, 0, broadcast(2)),
                                      waiting(3, 0, all_reduce(11))};
  CHECK(said(ranks).starts_with(
      head +
      "ranks disagree about it: all_reduce of 10 f32, sum (ring) on ranks 0, 1; broadcast of 10 "
      "f32, root 2 (binomial) on rank 2; all_reduce of 11 f32, sum (ring) on rank 3; rank 0 "
      "waits"));
}

TEST_CASE("diagnosis: ranks that wait for each other, and one that does not wait") {
  std::vector<Witness> ranks = {waiting(0, 1), waiting(1, 2), waiting(2, 1)};
  CHECK(said(ranks).starts_with(head + "ranks 1, 2 wait for each other in a circle; rank 0 waits"));
  ranks[2].standing->blocker = -1;
  CHECK(said(ranks).starts_with(
      head +
      "rank 2 began it 3.0 s ago and does not wait in it (its process is alive and sleeps)"));
  ranks[2].condition.life = Life::stopped;
  CHECK(said(ranks).starts_with(head + "rank 2 is in it: its process is stopped; rank 0 waits"));
  ranks[2] = rank(2);
  ranks[2].standing->failure = "all_reduce #12: a send failed";
  CHECK(said(ranks).starts_with(head + "rank 2 has failed: \"all_reduce #12: a send failed\""));
  ranks[2] = waiting(2, -1);
  ranks[2].standing->operations.back().end_ns = now - second;
  ranks[1].standing->blocker = 2;
  CHECK(said(ranks).starts_with(head + "all ranks have entered it; rank 0 waits"));
}

TEST_CASE("diagnosis: a rank that waits may show it late") {
  int looks = 0;
  const auto ranks_where_one_waits_from = [&](int look) {
    return look_closely([&, look] {
      std::vector<Witness> ranks = {waiting(0, 1), rank(1), waiting(2, 0)};
      if (++looks < look) ranks[2].standing->blocker = -1;
      return ranks;
    });
  };
  CHECK(said(ranks_where_one_waits_from(1)).find("rank 2 began it") == std::string::npos);
  CHECK(looks == 1);
  looks = 0;
  CHECK(said(ranks_where_one_waits_from(3)).find("rank 2 began it") == std::string::npos);
  CHECK(looks == 3);
  looks = 0;
  CHECK(said(ranks_where_one_waits_from(1000)).find("rank 2 began it") != std::string::npos);
  CHECK(looks == 4);
  looks = 0;
  const auto ended = [&] {
    ++looks;
    std::vector<Witness> ranks = {waiting(0, 1), waiting(1, -1)};
    ranks[1].condition.life = Life::ended;
    return ranks;
  };
  CHECK(said(look_closely(ended)).find("rank 1 is in it: its process has ended") !=
        std::string::npos);
  CHECK(looks == 1);
}

TEST_CASE("diagnosis: a message names its peer") {
  std::vector<Witness> ranks = {rank(0), rank(1)};
  ranks[0].standing->blocker = 1;
  ranks[0].standing->waits = "waits for rank 1 (step 0: recv 4 B)";
  const auto of = [&](int peer) {
    return diagnosis(
        {.label = "world", .rank = 0, .number = 0, .name = "recv", .peer = peer, .seconds = 2},
        ranks);
  };
  CHECK(
      of(1) ==
      "recv of communicator 'world' cannot complete (no progress for 2 s): rank 1 has not answered "
      "it (last: broadcast #11, finished 4.1 s ago; its process is alive and sleeps); rank 0 waits "
      "for rank 1 (step 0: recv 4 B)");
  CHECK(of(-1).find("nobody has answered it") != std::string::npos);
  ranks[1].standing->failure = "no more";
  CHECK(of(1).find("rank 1 has failed: \"no more\"") != std::string::npos);
}

TEST_CASE("diagnosis: a failure blames no rank that may come yet") {
  std::vector<Witness> ranks = {waiting(0, 1), waiting(1, 0, all_reduce(11)), rank(2), rank(3)};
  ranks[3].standing.reset();
  const auto text = [&] {
    return diagnosis({.label = "world",
                      .rank = 1,
                      .number = 12,
                      .name = "all_reduce",
                      .failure = "expected a message of 4 bytes"},
                     ranks);
  };
  const std::string begin =
      "all_reduce #12 of communicator 'world' failed: ranks disagree about it: all_reduce of 10 "
      "f32, "
      "sum (ring) on rank 0; all_reduce of 11 f32, sum (ring) on rank 1; ";
  const std::string end = "rank 1 found: expected a message of 4 bytes";
  CHECK(text() ==
        begin + "rank 3 has left the communicator (" + describe(ranks[3].condition) + "); " + end);
  ranks[3] = rank(3);
  ranks[3].condition = {.life = Life::ended};
  CHECK(text() ==
        begin +
            "rank 3 has not entered it (last: broadcast #11, finished 4.1 s ago; its process "
            "has ended); " +
            end);
  ranks[3].condition = {};
  CHECK(text() == begin + end);
}

TEST_CASE("diagnosis: a rank without a page is not one that has left") {
  std::vector<Witness> ranks = {waiting(0, 1), rank(1)};
  ranks[1].standing.reset();
  CHECK(said(ranks).starts_with(
      head + "rank 1 has left the communicator (its process is alive and sleeps); rank 0 waits"));
  ranks[1].shown = false;
  CHECK(said(ranks).starts_with(
      head + "rank 1: its process is alive and sleeps, it has no status page; rank 0 waits"));
  ranks[1].condition = {.life = Life::ended, .signal = 9};
  CHECK(said(ranks).starts_with(head + "rank 1: its process has ended with signal 9, it has no"));
  ranks[1].shown = true;
  ranks[1].condition = {.life = Life::unknown};
  CHECK(said(ranks).starts_with(head + "rank 1: its process cannot be looked at"));
}

TEST_CASE("diagnosis: many ranks are counted") {
  std::vector<Witness> ranks;
  for (int r = 0; r < 16; ++r) ranks.push_back(r < 4 ? waiting(r, 15) : rank(r));
  const std::string text = said(ranks);
  CHECK(text.find("rank 11 has not entered it") != std::string::npos);
  CHECK(text.find("rank 12 has not entered it") == std::string::npos);
  CHECK(text.find("; and 4 ranks more; rank 0 waits") != std::string::npos);
}
