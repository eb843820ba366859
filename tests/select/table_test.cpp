#include "select/table.hpp"

#include <doctest/doctest.h>

#include <stdlib.h>  // NOLINT: setenv is POSIX's

#include "baton/error.hpp"
#include "baton/own_algorithms.hpp"
#include "select/select.hpp"
#include "select/shipped_tables.hpp"
#include "support/ranks.hpp"
#include "support/schedules.hpp"
#include "support/temporary_folder.hpp"

using namespace baton;
using namespace baton::selecting;
using support::error_of;
using support::holds;
using support::TemporaryFolder;

namespace {

const Registry& registry() {
  static const Registry builtin = Registry::builtin();
  return builtin;
}

Table read(std::string_view text) { return parse_table(text, "pair.txt", registry()); }

constexpr const char* pair =
    "baton-table 1\n"
    "transport thread\n"
    "machine one, 2 cores  # of those\n"
    "hosts 1x2\n"
    "all_reduce 0 recursive_doubling 0\n"
    "all_reduce 64K ring 16K\n"
    "all_reduce 1M circulant 0\n"
    "broadcast 0 binomial 0\n";

Choice all_reduce_choice(Communicator& c, std::int64_t elements) {
  std::vector<float> data(static_cast<std::size_t>(elements));
  Call call;
  call.collective = Collective::all_reduce;
  const Data whole(data.data(), elements, Datatype::f32);
  call.outputs = {&whole, 1};
  return c.chosen(call);
}

baton::Options with_table(const std::string& table) {
  baton::Options options = support::test_options();
  options.table = table;
  return options;
}

}  // namespace

TEST_CASE("a table is read, and written as it was") {
  const Table table = read(pair);
  REQUIRE(table.sections.size() == 1);
  const TableSection& section = table.sections[0];
  CHECK(section.scope == TableScope{"thread", "", "1x2"});
  CHECK(section.machine == "one, 2 cores");
  REQUIRE(section.rows.size() == 4);
  const auto row = [&](std::int64_t bytes) {
    return section.find(Collective::all_reduce, bytes)->choice;
  };
  CHECK(row(0) == Choice{"recursive_doubling", 0});
  CHECK(row((64 << 10) - 1) == Choice{"recursive_doubling", 0});
  CHECK(row(64 << 10) == Choice{"ring", 16 << 10});
  CHECK(row(1LL << 40) == Choice{"circulant", 0});
  CHECK(section.find(Collective::scan, 8) == nullptr);
  CHECK(read(print(section)).sections == table.sections);

  // Joined end to end: each text has a transport of its own, and may hold for several hosts.
  const Table joined = read(std::string(pair) + "hosts 2x1\nscan 0 recursive_doubling 0\n" +
                            "baton-table 1\ntransport mpi\nlibrary Open MPI v4\nhosts 1x2\n");
  REQUIRE(joined.sections.size() == 3);
  CHECK(joined.sections[1].scope == TableScope{"thread", "", "2x1"});
  CHECK(joined.sections[1].machine == "one, 2 cores");
  CHECK(joined.find({"mpi", "Open MPI v4", "1x2"}) == &joined.sections[2]);
  CHECK(joined.find({"mpi", "Open MPI v5", "1x2"}) == nullptr);
  CHECK(joined.find({"thread", "any", "2x1"}) == &joined.sections[1]);
}

TEST_CASE("what is no table is refused with its line") {
  const auto refuses = [](const std::string& text, const std::vector<std::string>& parts) {
    const Error error = error_of([&] { read(text); });
    CHECK(error.code == ErrorCode::invalid_argument);
    CHECK_MESSAGE(holds(error.what(), parts), std::string(error.what()));
  };
  const std::string head = "baton-table 1\ntransport thread\nhosts 1x2\n";
  refuses("", {"pair.txt:1", "expected \"baton-table 1\"", "end of the text"});
  refuses("all_reduce 0 ring 0\n", {":1:", "expected \"baton-table 1\"", "all_reduce"});
  refuses("baton-table 2\n", {":1:", "expected version 1", "found \"2\""});
  refuses("baton-table 1\n", {":2:", "expected \"hosts\""});
  refuses("baton-table 1\nhosts 1x2\n", {":2:", "\"transport\" before \"hosts\""});
  refuses("baton-table 1\ntransport mpi\nscan 0 linear 0\n", {":3:", "\"hosts\" before the rows"});
  refuses(head + "hosts 1x2\n", {":4:", "without a section above"});
  refuses(head + "hosts 0x2\n", {":4:", "expected"});
  refuses(head + "reduce_all 0 ring 0\n", {":4:", "reduce_all"});
  refuses(head + "all_reduce 0 rings 0\n", {":4:", "ring", "rings"});
  refuses(head + "all_reduce 8 ring 0\n", {":4:", "first row to begin at 0", "8"});
  refuses(head + "all_reduce 0 ring 0\nall_reduce 0 tree 0\n", {":5:", "more than 0 bytes"});
  refuses(head + "all_reduce 0 ring 1 2\n", {":4:", "end of the line", "2"});
  refuses(head + "all_reduce 0 ring many\n", {":4:", "expected bytes", "many"});
}

TEST_CASE("a communicator goes by its table, and by cost where the table has nothing for it") {
  // Longer than what the agreement takes in one message.
  const TemporaryFolder folder;
  const std::string file = folder.write("table", std::string(4000, '#') + "\n" + pair);
  support::on_ranks(
      2,
      [&](Communicator& c) {
        CHECK(all_reduce_choice(c, 8).algorithm == "recursive_doubling");
        CHECK(all_reduce_choice(c, 32 << 10) == Choice{"ring", 16 << 10});
        CHECK(all_reduce_choice(c, 1 << 20).algorithm == "circulant");
        std::vector<float> data(32 << 10, 1);
        c.all_reduce(Data(data.data(), 32 << 10, Datatype::f32), OpKind::sum);
        CHECK(data[17] == 2);
        Communicator same = c.split(0, 0);
        CHECK(all_reduce_choice(same, 32 << 10) == Choice{"ring", 16 << 10});
        Communicator alone = c.split(c.rank(), 0);
        CHECK(!all_reduce_choice(alone, 8).algorithm.empty());
      },
      with_table(file));
}

TEST_CASE("a row names an algorithm of a registry, as one made of schedules") {
  std::vector<Schedule> schedules;
  for (int r = 0; r < 2; ++r) {
    Problem p = support::problem(Collective::all_reduce, 2, r, 6);
    ScheduleBuilder exchange(p);
    exchange.send(1 - r, exchange.work());
    exchange.recv_reduce(1 - r, exchange.work());
    schedules.push_back(exchange.build("mine"));
  }
  auto with_mine = std::make_shared<Registry>(Registry::builtin());
  with_mine->add(algorithm_of(schedules));
  const TemporaryFolder folder;
  Options options = with_table(folder.write("table",
                                            "baton-table 1\ntransport thread\nhosts 1x2\n"
                                            "all_reduce 0 ring 0\nall_reduce 24 mine 16\n"));
  options.registry = with_mine;
  support::on_ranks(
      2,
      [&](Communicator& c) {
        CHECK(all_reduce_choice(c, 5) == Choice{"ring", 0});
        CHECK(all_reduce_choice(c, 6) == Choice{"mine", 16});
        CHECK(all_reduce_choice(c, 600) == Choice{"mine", 16});
        CHECK(all_reduce_choice(c, 601).algorithm != "mine");  // not a multiple of 6
        std::vector<std::int32_t> data(600);
        for (int i = 0; i < 600; ++i) data[static_cast<std::size_t>(i)] = i + c.rank();
        c.all_reduce(data, sum);
        for (int i = 0; i < 600; ++i) CHECK(data[static_cast<std::size_t>(i)] == 2 * i + 1);
      },
      options);
  // Without the registry the row names nothing.
  options.registry = nullptr;
  run_threads(2, [&](std::unique_ptr<Transport> transport) {
    const Error error = error_of([&] { Communicator(std::move(transport), options); });
    CHECK_MESSAGE(holds(error.what(), {":5:", "expected an algorithm of all_reduce (", "\"mine\""}),
                  std::string(error.what()));
  });
}

TEST_CASE("a foreign table is refused on all ranks") {
  const auto refuses = [](const std::string& table, const std::vector<std::string>& parts) {
    for (const int size : {3, 5}) {
      run_threads(size, [&](std::unique_ptr<Transport> transport) {
        const Error error =
            error_of([&] { Communicator(std::move(transport), with_table(table)); });
        CHECK(error.code == ErrorCode::invalid_argument);
        CHECK_MESSAGE(holds(error.what(), parts), std::string(error.what()));
      });
    }
  };
  const TemporaryFolder folder;
  refuses(folder.write("pair", pair),
          {"expected a table for hosts 1x", "over thread", "found one for hosts 1x2 over thread"});
  refuses("no such table", {"expected a tuning table, a file or one of", "\"no such table\""});
  refuses(folder.write("broken", "baton-table 7\n"), {"expected version 1"});
}

TEST_CASE("a table's algorithm that does not serve a call is not used") {
  const TableSection section =
      read("baton-table 1\ntransport thread\nhosts 1x4\nall_reduce 0 ring 0\n").sections[0];
  Problem p = support::problem(Collective::all_reduce, 4, 0, 1000);
  CHECK(select(registry(), p, 4, {}, {}, &section).reason == "by the table, from 0 B");
  CHECK(select(registry(), p, 4, {"tree", 0}, {}, &section).algorithm->name == "tree");
  p.commutative = false;
  CHECK(select(registry(), p, 4, {}, {}, &section).algorithm->ordered);
}

TEST_CASE("few bytes of a table do not name ranks without end") {
  const std::string head = "baton-table 1\ntransport thread\n", row = "all_reduce 0 ring 0\n";
  const std::string two = head + "hosts 1x1048576\n" + row + "hosts 2x524288\n" + row;
  CHECK(read(two).sections.size() == 2);
  CHECK_THROWS_WITH_AS(
      read(two + "hosts 1x1\n" + row),
      doctest::Contains(":7: expected sections of at most 2097152 ranks, found more"), Error);
  std::string many = "baton-table 1\n";
  for (int i = 0; i < 100'000; ++i) many += "transport t" + std::to_string(i) + "\nhosts 1x1\n";
  CHECK_THROWS_WITH_AS(read(many), doctest::Contains("expected at most 1000 sections, found more"),
                       Error);
}

TEST_CASE("the tables that come with the library can be read") {
  CHECK(shipped_tables().size() == 2);
  for (const ShippedTable& table : shipped_tables()) {
    const Table read = parse_table(table.text, std::string(table.name), registry());
    CHECK(!read.sections.empty());
  }
}
