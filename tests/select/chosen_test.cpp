// The choice of communicators, without one.

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <set>
#include <string>
#include <vector>

#include "baton/select.hpp"
#include "support/cores.hpp"

using namespace baton;

TEST_CASE("a choice without a communicator is a communicator's, and so is its schedule") {
  const Registry registry = Registry::builtin();
  std::set<std::string> on_own_cores, on_two_cores;
  for (const int size : {1, 2, 3, 4, 5, 7, 8}) {
    for (const std::int64_t count : {0, 1, 1000, 100'003}) {
      for (const int cores : {0, 2}) {
        Problem problem;
        problem.size = size;
        problem.count = count;
        const Choice choice = chosen(registry, problem, 4, cores);
        (cores == 0 ? on_own_cores : on_two_cores)
            .insert(fmt::format("{} {} {} {}", size, count, choice.algorithm, *choice.segment));
        support::on_ranks_of_cores(size, cores, [&](Communicator& world) {
          std::vector<float> in(static_cast<std::size_t>(count)), out(in.size());
          const Call call = calls::all_reduce(std::span<const float>(in), std::span(out), sum);
          CHECK(world.chosen(call) == choice);
          const Schedule schedule =
              scheduled(registry, problem.at(world.rank()), sizeof(float), choice);
          CHECK(schedule.sent() * 4 == world.traffic(call).bytes);
          CHECK(schedule.messages() == world.traffic(call).messages);
        });
      }
    }
  }
  CHECK(on_own_cores != on_two_cores);
}

TEST_CASE("a choice that does not serve is refused") {
  const Registry registry = Registry::builtin();
  Problem problem;
  problem.size = 3;
  problem.count = 10;
  CHECK_THROWS_AS(scheduled(registry, problem, 4, {"nothing", 0}), Error);
  CHECK_THROWS_AS(chosen(registry, problem, 0), Error);
  CHECK_THROWS_AS(chosen(registry, problem, 4, -1), Error);
  CHECK_THROWS_AS(scheduled(registry, problem, 0, {"ring", 1024}), Error);
  problem.commutative = false;
  CHECK_THROWS_AS(scheduled(registry, problem, 4, {"ring", 0}), Error);
}
