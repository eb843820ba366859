/// The data of pages.

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "diagrams/diagrams.hpp"
#include "support/schedules.hpp"
#include "timeline/timelines.hpp"

using namespace baton;
using nlohmann::json;

namespace {

json data_of(const Timeline& timeline, const diagrams::Options& options = {}) {
  const std::string page = diagrams::page(timeline, options);
  constexpr std::string_view begin = "id=\"timeline\">";
  const std::size_t from = page.find(begin) + begin.size();
  return json::parse(page.substr(from, page.find("</script>", from) - from));
}

/// Each operation's memory has a row before the first round, and one for every round.
void check_rows(const Timeline& timeline) {
  const json data = data_of(timeline);
  for (const json& operation : data["operations"]) {
    const json& rows = data["memories"][operation["memory"].get<std::size_t>()];
    const auto rounds = operation["rounds"].get<std::size_t>();
    REQUIRE(rows.size() == rounds + 1);
    CHECK(rows[0]["label"] == "before");
    for (std::size_t round = 0; round < rounds; ++round)
      CHECK(rows[round + 1]["label"] == "after round " + std::to_string(round));
  }
}

/// Operations of one timeline after each other; their times do not matter.
Timeline together(const std::vector<Timeline>& timelines) {
  Timeline all = timelines[0];
  for (std::size_t i = 1; i < timelines.size(); ++i)
    all.operations.push_back(timelines[i].operations[0]);
  return all;
}

Timeline rooted_at(int root) {
  Problem p = support::problem(Collective::broadcast, 2, 0, 1);
  p.root = root;
  const Registry registry = Registry::builtin();
  return rounds_of(std::make_shared<const std::vector<Schedule>>(support::schedules(
                       registry.find(Collective::broadcast, "linear"), support::problems(p))),
                   4);
}

}  // namespace

TEST_CASE("a page has what ranks hold after every round, whether or not anything happens in it") {
  support::for_each_algorithm({2, 3, 4, 5, 6}, [](const Algorithm& algorithm, const Problem& p) {
    CAPTURE(name(p.collective));
    CAPTURE(algorithm.name);
    CAPTURE(p.size);
    check_rows(support::rounds(p.collective, algorithm.name, p.size, p.count));
  });
  const json data =
      data_of(support::rounds("baton-schedule 1\ncollective broadcast\nsize 2\ninput 0\noutput 1\n"
                              "rank 0\nround 2\nsend 1 output[0:1]\n"
                              "rank 1\nround 4\nrecv 0 output[0:1]\n"));
  CHECK(data["operations"][0]["rounds"] == 5);
  const json& rows = data["memories"][0];
  REQUIRE(rows.size() == 6);
  for (std::size_t round = 0; round < 6; ++round) {
    CHECK(rows[round]["label"] ==
          (round == 0 ? "before" : "after round " + std::to_string(round - 1)));
    CHECK(rows[round]["ranks"][1] == json{round < 5 ? "20" : "10"});
  }
}

TEST_CASE("a page has the memory of each operation: its schedules, what it reduces by") {
  const Timeline first = rooted_at(0);
  Timeline reduced = support::rounds(Collective::all_reduce, "ring", 2, 2);
  reduced.operations[0].op = "sum";
  Timeline largest = reduced;
  largest.operations[0].op = "max";
  Timeline own = reduced;
  own.operations[0].op = "user";
  const json data = data_of(together({first, rooted_at(1), first, reduced, largest, own}));
  const auto end = [&](std::size_t operation) {
    const json& rows = data["memories"][data["operations"][operation]["memory"].get<std::size_t>()];
    return rows.is_null() ? rows : rows.back()["ranks"][1];
  };
  CHECK(data["memories"].size() == 5);
  CHECK(end(0) == json{"10"});
  CHECK(end(1) == json{"20"});
  CHECK(end(2) == end(0));
  CHECK(end(3) == json{"30", "32"});
  CHECK(end(4) == json{"20", "21"});
  CHECK(end(5).is_null());  // nobody but its program knows
}
