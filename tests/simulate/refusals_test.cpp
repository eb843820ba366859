#include <doctest/doctest.h>

#include "baton/error.hpp"
#include "simulate/memory.hpp"
#include "simulate/support.hpp"

using namespace baton;
using simulate_support::by_hand;
using simulate_support::Program;

namespace {

template <class Call>
std::string refusal_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string refusal_of(const Program& program, int window = 2) {
  SimulateOptions options;
  options.window = window;
  return refusal_of([&] { program.simulated(by_hand(), options); });
}

}  // namespace

TEST_CASE("who waits for whom is said") {
  Program program(3);
  program.rank(0).recv(1, 0, 4).send(2, 0, 4);
  program.rank(1).recv(2, 0, 4).send(0, 0, 4);
  program.rank(2).recv(0, 0, 4).send(1, 0, 4);
  CHECK(refusal_of(program) ==
        "simulate: ranks wait for ever: rank 0 waits for rank 1 in step 0 (recv of 16 B from rank "
        "1, lane 0), which waits for rank 2 in step 0 (recv of 16 B from rank 2, lane 0), which "
        "waits for rank 0 in step 0 (recv of 16 B from rank 0, lane 0)");
}

TEST_CASE("messages without a partner of their length") {
  Program program(2);
  program.rank(0).send(1, 0, 4).send(1, 4, 4);
  program.rank(1).recv(0, 0, 4);
  CHECK(refusal_of(program) ==
        "expected as many receives as sends from rank 0 to rank 1 in lane 0, found 1 receive, 2 "
        "sends");

  Program lonely(2);
  lonely.rank(1).recv(0, 0, 4);
  CHECK(refusal_of(lonely) ==
        "expected as many receives as sends from rank 0 to rank 1 in lane 0, found 1 receive, 0 "
        "sends");

  Program longer(2);
  longer.rank(0).send(1, 0, 5);
  longer.rank(1).recv(0, 0, 4);
  CHECK(refusal_of(longer) ==
        "rank 1, step 0 (recv of 16 B from rank 0, lane 0): expected a message of 16 B, found that "
        "rank 0 sends 20 B");
}

TEST_CASE("a rendezvous that both begin with deadlocks only where it waits for the receive") {
  Network network = by_hand();
  Program program(2);
  for (const int r : {0, 1}) program.rank(r).send(1 - r, 0, 4).recv(1 - r, 0, 4);
  CHECK(program.simulated(network).total > 0);
  network.within.eager = 0;
  CHECK(refusal_of([&] {
          program.simulated(network);
        }).starts_with("simulate: ranks wait for ever: rank 0 waits for rank 1 in step 0"));
}

TEST_CASE("schedules must be all ranks', in order") {
  CHECK(refusal_of([] { simulate(nullptr, 4, by_hand()); }) ==
        "simulate: expected schedules, found none");
  const Algorithm ring = Registry::builtin().find(Collective::all_reduce, "ring");
  Problem problem;
  problem.size = 3;
  problem.count = 3;
  auto schedules = std::make_shared<std::vector<Schedule>>();
  for (const int r : {0, 2, 1}) schedules->push_back(ring.generate(problem.at(r)));
  CHECK(refusal_of([&] { simulate(schedules, 4, by_hand()); }) ==
        "simulate: expected the schedule of rank 1 of 3, found that of rank 2 of 3");
}

TEST_CASE("hosts must be those of all ranks") {
  Program program(3);
  CHECK(refusal_of([&] {
          program.simulated(by_hand(), simulate_support::on_hosts({0, 1}));
        }) == "simulate: expected the hosts of 3 ranks, found those of 2");
}

TEST_CASE("more memory than there is") {
  CHECK(refusal_of([] { simulating::refuse_beyond(65536, 3e9, 2e9); }) ==
        "simulate: expected at least 2.8 GiB of memory for 65536 ranks, found 1.9 GiB available");
  CHECK(refusal_of([] { simulating::refuse_beyond(65536, 2e9, 3e9); }) == "");
  const Algorithm ring = Registry::builtin().find(Collective::all_reduce, "ring");
  const auto schedule_of = [&](int rank) {
    Problem problem;
    problem.size = 1 << 16;
    problem.rank = rank;
    problem.count = 1 << 16;
    return ring.generate(problem);
  };
  // 2^16 ranks of 5 * 2^16 steps each: a terabyte.
  CHECK(refusal_of([&] {
          simulate(1 << 16, schedule_of, 4, by_hand());
        }).starts_with("simulate: expected at least "));
}
