#include "transformer/program/cores.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "baton/error.hpp"
#include "baton/schedule/hosts.hpp"
#include "support/ranks.hpp"

namespace baton::transformer::program {
namespace {

using Cores = std::vector<std::vector<int>>;

TEST_CASE("each rank has cores of its own where there are enough, otherwise round-robin") {
  const std::vector<int> machine = {0, 1, 2, 5, 6, 9, 10, 11};
  for (const int ranks : {1, 2, 3, 4, 5, 7, 8})
    for (const int each : {1, 2, 3, 8}) {
      CAPTURE(ranks);
      CAPTURE(each);
      const Cores usable(static_cast<std::size_t>(ranks), machine);
      const Pinning pinning = shared_out(usable, each, nullptr);
      std::vector<int> users(12, 0);
      for (const std::vector<int>& cores : pinning.cores) {
        CHECK(std::set<int>(cores.begin(), cores.end()).size() == static_cast<std::size_t>(each));
        CHECK(std::is_sorted(cores.begin(), cores.end()));
        for (const int core : cores) ++users[static_cast<std::size_t>(core)];
      }
      CHECK(pinning.cores.size() == usable.size());
      CHECK(pinning.shared == (ranks * each > 8));
      std::vector<int> of_machine;
      for (const int core : machine) of_machine.push_back(users[static_cast<std::size_t>(core)]);
      const auto [least, most] = std::minmax_element(of_machine.begin(), of_machine.end());
      CHECK(*most - *least <= 1);
    }
  CHECK(shared_out({{0, 1, 2}, {0, 1, 2}, {0, 1, 2}}, 2, nullptr).cores ==
        Cores{{0, 1}, {0, 2}, {1, 2}});
}

TEST_CASE("ranks of different hosts share no cores") {
  const std::vector<int> host_of = {0, 1, 0, 1};
  const Hosts hosts(host_of);
  const Pinning pinning = shared_out({{0, 1}, {0, 1}, {0, 1}, {0, 1}}, 1, &hosts);
  CHECK(pinning.cores == Cores{{0}, {0}, {1}, {1}});
  CHECK(!pinning.shared);
}

TEST_CASE("a rank that its launcher has bound keeps to its cores") {
  const Pinning bound = shared_out({{0}, {1}, {2}}, 1, nullptr);
  CHECK(bound.cores == Cores{{0}, {1}, {2}});
  CHECK(!bound.shared);
  // Rank 1 takes what rank 0 leaves.
  CHECK(shared_out({{0}, {0, 1, 2, 3}}, 1, nullptr).cores == Cores{{0}, {1}});
  CHECK(shared_out({{0}, {0}}, 1, nullptr).shared);
  const std::string sentence = support::error_of([] {
                                 shared_out({{0, 1}, {0}}, 2, nullptr);
                               }).what();
  CHECK(support::holds(sentence,
                       {"--cores-per-rank", "at most the 1 core that rank 1 may use", "found 2"}));
}

}  // namespace
}  // namespace baton::transformer::program
