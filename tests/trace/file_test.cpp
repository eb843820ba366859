#include <doctest/doctest.h>

#include "baton/trace.hpp"
#include "parts.hpp"
#include "support/programs.hpp"
#include "support/ranks.hpp"
#include "trace/section.hpp"

using namespace baton;
using namespace support;

namespace {

/// A file of three ranks; rank 2 has a clock of its own.
std::vector<tracing::Part> three_parts() {
  std::vector<tracing::Part> parts{ring_part(0, 3, 2), ring_part(1, 3, 2), ring_part(2, 3, 2)};
  parts[2].clock = 2;
  parts[2].before = {{100, -5, 3}};
  parts[2].after = {{900000, -7, 4}};
  parts[1].dropped = 77;
  parts[1].groups.push_back({{1, 0}, 5});
  return parts;
}

std::string file_of(const std::vector<tracing::Part>& parts) {
  std::string bytes = tracing::file_head();
  for (const tracing::Part& part : parts) bytes += written(part);
  return bytes;
}

std::size_t events_in(const std::vector<tracing::Part>& parts) {
  std::size_t events = 0;
  for (const tracing::Part& part : parts) events += part.records.size();
  return events;
}

}  // namespace

TEST_CASE("what is written is read back") {
  const auto parts = three_parts();
  const auto read = tracing::read_parts(file_of(parts), "x");
  CHECK(read.damage.empty());
  REQUIRE(read.parts.size() == 3);
  for (std::size_t p = 0; p < 3; ++p) CHECK(same(read.parts[p], parts[p]));
}

TEST_CASE("programs are read back") {
  for (const Schedule& schedule : parse(support::two_stages)) {
    tracing::Part part = ring_part(schedule.rank(), 2, 1);
    part.plans[0].schedule = schedule;
    part.records.clear();
    const auto read = tracing::read_parts(file_of({part}), "x");
    CHECK(read.damage.empty());
    REQUIRE(read.parts.size() == 1);
    CHECK(same(read.parts[0], part));
  }
}

TEST_CASE("schedules of all algorithms are read back") {
  const Registry registry = Registry::builtin();
  for (const Algorithm& algorithm : registry.all()) {
    for (const int ranks : {1, 4, 5}) {
      Problem p = problem(algorithm.collective, ranks, ranks - 1, 7);
      p.hosts = hosts_for(algorithm, ranks);
      if (!refusal(algorithm, p).empty()) continue;
      CAPTURE(algorithm.name);
      tracing::Part part = ring_part(ranks - 1, ranks, 1);
      part.plans[0].schedule = algorithm.generate(p);
      part.records.clear();
      const auto read = tracing::read_parts(file_of({part}), "x");
      CHECK(read.damage.empty());
      REQUIRE(read.parts.size() == 1);
      CHECK(same(read.parts[0], part));
    }
  }
}

TEST_CASE("files may be put together") {
  const auto parts = three_parts();
  std::string bytes;
  for (const tracing::Part& part : parts) bytes += file_of({part});
  const auto read = tracing::read_parts(bytes, "x");
  CHECK(read.damage.empty());
  REQUIRE(read.parts.size() == 3);
  for (std::size_t p = 0; p < 3; ++p) CHECK(same(read.parts[p], parts[p]));
}

TEST_CASE("more events than a section holds") {
  const auto part = ring_part(0, 2, 5000);
  REQUIRE(part.records.size() > 3 * 4096);
  const auto read = tracing::read_parts(file_of({part}), "x");
  CHECK(read.damage.empty());
  CHECK(same(read.parts.at(0), part));
}

TEST_CASE("a file that was cut off anywhere gives what it still has, and says so") {
  const auto parts = three_parts();
  const std::string whole = file_of(parts);
  for (std::size_t length = tracing::file_head().size(); length < whole.size(); ++length) {
    CAPTURE(length);
    const auto read = tracing::read_parts(whole.substr(0, length), "x.trace");
    REQUIRE(read.parts.size() <= 3);
    // At the end of a part nothing shows that others should follow.
    const bool between = read.damage.empty();
    for (std::size_t p = 0; p < read.parts.size(); ++p) {
      if (between || p + 1 < read.parts.size()) CHECK(same(read.parts[p], parts[p]));
    }
    if (!between) CHECK(holds(read.damage[0], {"x.trace", "expected", "found"}));
  }
}

TEST_CASE("a byte that was changed anywhere costs its section at most, and is noticed") {
  const auto parts = three_parts();
  const std::string whole = file_of(parts);
  const std::size_t all = events_in(parts);
  for (std::size_t at = tracing::file_head().size(); at < whole.size(); ++at) {
    CAPTURE(at);
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    const auto read = tracing::read_parts(damaged, "x");
    CHECK(!read.damage.empty());
    // Sections of one rank are lost, not those of the others.
    CHECK(events_in(read.parts) >= all - parts[0].records.size());
    CHECK(read.parts.size() >= 2);
  }
}

TEST_CASE("a plan that its rank cannot follow is left out with its events, and said to be") {
  for (const std::vector<int>& members :
       {std::vector{0, 2, 1}, std::vector{0, 1}, std::vector{0, 1, 9}, std::vector<int>{}}) {
    CAPTURE(members.size());
    auto part = ring_part(1, 3, 2);
    part.groups[0].members = members;
    const auto read = tracing::read_parts(file_of({part}), "x");
    REQUIRE(read.parts.size() == 1);
    CHECK(read.parts[0].plans.empty());
    CHECK(read.parts[0].records.empty());
    REQUIRE(!read.damage.empty());
    CHECK(holds(read.damage[0], {"x", "rank 1", "expected 1 plans, found 0"}));
  }
}

TEST_CASE("what is no trace is refused") {
  const auto refusal_of = [](const std::string& bytes) {
    return std::string(error_of([&] { tracing::read_parts(bytes, "its_name"); }).what());
  };
  CHECK(holds(refusal_of(""), {"its_name", "expected a trace", "baton trace 1", "found none"}));
  CHECK(holds(refusal_of("PNG..."), {"its_name", "expected a trace"}));
  CHECK(holds(refusal_of("baton trace 2\nabc"), {"its_name", "version 1", "found version \"2\""}));
  const std::string missing = "/nowhere/a.trace";
  CHECK(holds(error_of([&] {
                read_trace({&missing, 1});
              }).what(),
              {"/nowhere/a.trace", "cannot be read", "No such file"}));
}

TEST_CASE("markers with long lengths and no sections are damage, found in linear time") {
  // Checking each of them as far as it says would take hours.
  std::string bytes = tracing::file_head();
  const std::size_t whole = 4 << 20;
  while (bytes.size() < whole) {
    bytes += "\xb5\x0aTS\x04";
    const auto length = static_cast<std::uint32_t>((whole - bytes.size()) / 2);
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(length >> shift);
    bytes += "sum.";
  }
  const auto read = tracing::read_parts(bytes, "x");
  CHECK(read.parts.empty());
  CHECK(read.damage.size() == 1);
}

TEST_CASE("numbers that make no sense are damage") {
  const auto damage_of = [](const auto& change) {
    std::vector<tracing::Part> parts = three_parts();
    change(parts[0]);
    const auto read = tracing::read_parts(file_of(parts), "x");
    static_cast<void>(tracing::merged(read.parts, true));
    return read.damage.empty() ? "" : read.damage[0];
  };
  CHECK(damage_of([](tracing::Part&) {}).empty());
  CHECK(holds(damage_of([](tracing::Part& part) { part.records[1].end = INT64_MAX; }),
              {"x: section at byte", "found a time that is too far away"}));
  CHECK(holds(damage_of([](tracing::Part& part) {
                part.before = {{INT64_MIN, 0, 0}};
              }),
              {"found a time that is too far away"}));
  CHECK(holds(damage_of([](tracing::Part& part) {
                part.plans[0].what.element_bytes = std::size_t{1} << 47;
              }),
              {"found a step of too many bytes"}));
  CHECK(holds(damage_of([](tracing::Part& part) { part.ranks = 1 << 21; }),
              {"found a number that is too large"}));
}

TEST_CASE("a text that ends behind its section is damage, at every length") {
  for (std::size_t beyond = 0; beyond < 4; ++beyond) {
    // Rank, ranks, host, and the length of a host name that has two bytes.
    const std::string content = std::string("\0\1\0", 3) + static_cast<char>(2 + beyond) + "ab";
    const std::string bytes =
        tracing::file_head() + tracing::section(tracing::SectionKind::rank, content);
    const auto read = tracing::read_parts(bytes, "x");
    REQUIRE(read.damage.size() == 1);
    CHECK(holds(read.damage[0], {beyond == 0 ? "found a number that ends too early"
                                             : "found a number that is too large"}));
  }
}
