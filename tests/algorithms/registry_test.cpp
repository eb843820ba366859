#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "../../algorithms/row.hpp"

using namespace baton;

TEST_CASE("each file's row has the file's name, and a place of its own") {
  std::map<Collective, std::set<int>> places;
  for (const algorithms::NamedRow& named : algorithms::all_rows()) {
    const algorithms::Row& row = *named.row;
    CHECK(std::string(name(row.collective)) + "_" + row.name == named.file);
    const bool placed = row.place != std::numeric_limits<int>::max();
    if (placed) CHECK(places[row.collective].insert(row.place).second);
    CHECK(std::string(row.rounds) != "");
    CHECK(std::string(row.sent) != "");
    CHECK(std::string(row.source) != "");
    Problem p;  // that every algorithm serves
    p.collective = row.collective;
    p.size = 4;
    p.count = 4;
    if (row.hierarchical) p.hosts = host_grouping(std::vector{0, 0, 1, 1});
    CHECK(row.generate(p).header().algorithm == row.name);
  }
}

TEST_CASE("the last round has messages, so that pictures show no round too many") {
  const Registry registry = Registry::builtin();
  for (const Algorithm& algorithm : registry.all()) {
    for (const int size : {2, 3, 4, 5, 8}) {
      Problem p;
      p.collective = algorithm.collective;
      p.size = size;
      p.count = 2 * size;
      if (!refusal(algorithm, p).empty()) continue;
      CAPTURE(std::string(name(p.collective)));
      CAPTURE(algorithm.name);
      CAPTURE(size);
      int rounds = 0, messages = 0;
      for (int r = 0; r < size; ++r) {
        const Schedule schedule = algorithm.generate(p.at(r));
        rounds = std::max(rounds, schedule.rounds());
        for (const Step& step : schedule.steps())
          if (step.message()) messages = std::max(messages, step.round + 1);
      }
      CHECK(rounds == messages);
    }
  }
}

TEST_CASE("the registry's order: by place, those without one behind the others by name") {
  const Registry registry = Registry::builtin();
  CHECK(registry.all().size() == algorithms::all_rows().size());
  std::map<std::pair<Collective, std::string>, int> places;
  for (const algorithms::NamedRow& named : algorithms::all_rows())
    places[{named.row->collective, named.row->name}] = named.row->place;
  for (int c = 0; c < collective_count; ++c) {
    const auto collective = static_cast<Collective>(c);
    std::pair<int, std::string> before;
    for (const Algorithm* algorithm : registry.of(collective)) {
      const std::pair here(places.at({collective, algorithm->name}), algorithm->name);
      CHECK(before < here);
      before = here;
    }
  }
  const auto reference = [&](Collective collective) { return registry.of(collective)[0]->name; };
  CHECK(reference(Collective::broadcast) == "linear");
  CHECK(reference(Collective::reduce) == "linear");
  CHECK(reference(Collective::all_reduce) == "gather_broadcast");
  CHECK(reference(Collective::gather) == "linear");
  CHECK(reference(Collective::scatter) == "linear");
  CHECK(reference(Collective::all_gather) == "linear");
  CHECK(reference(Collective::reduce_scatter) == "linear");
  CHECK(reference(Collective::all_to_all) == "spread_out");
  CHECK(reference(Collective::scan) == "recursive_doubling");
  CHECK(reference(Collective::exscan) == "recursive_doubling");
  CHECK(reference(Collective::barrier) == "dissemination");
}
