/// The last operations of ranks as a recording, from pages written by hand.

#include "status/flight.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "baton/collective.hpp"
#include "trace/part.hpp"

using namespace baton;
using namespace baton::status;

namespace {

Call named(const char* what) {
  Call call;
  call.kind = Call::Kind::internal;
  call.set_text(what);
  return call;
}

Standing page(std::uint64_t communicator, const char* label, int rank, std::int32_t thread) {
  Standing s;
  s.communicator = communicator;
  s.label = label;
  s.rank = rank;
  s.size = 2;
  s.process.pid = 7;
  s.thread = thread;
  s.read_ns = 900;
  return s;
}

/// "0 a 100-200" for each event of rank 0.
std::vector<std::string> events(const std::vector<Standing>& pages) {
  const auto parts = tracing::read_parts(recording_of(pages), "test");
  CHECK(parts.damage.empty());
  std::vector<std::string> all;
  for (const tracing::Part& part : parts.parts)
    for (const tracing::Part::Record& record : part.records)
      all.push_back(std::to_string(part.rank) + " " + part.plans[record.plan].what.name + " " +
                    std::to_string(record.start) + "-" + std::to_string(record.end));
  return all;
}

}  // namespace

TEST_CASE("flight: operations by rank, those of other communicators in the row of their thread") {
  Standing split = page(1, "world/1:0", 1, 10), world = page(2, "world", 0, 10),
           other = page(2, "world", 1, 11), stranger = page(3, "world", 0, 12);
  stranger.size = 1;  // another program
  split.operations.push_back({1, 300, 400, named("c")});
  world.operations.push_back({1, 100, 200, named("a")});
  world.operations.push_back({2, 350, 0, named("a")});  // overlaps with c, and goes on
  other.operations.push_back({1, 150, 180, named("a")});
  stranger.operations.push_back({1, 100, 200, named("d")});
  const std::vector<std::string> expected = {"0 a 100-200", "0 c, world/1:0 300-400",
                                             "0 a, under way 400-900", "1 a 150-180"};
  // Whatever order the files have: the communicator that others were split from has the rows.
  CHECK(events({split, world, other, stranger}) == expected);
  CHECK(events({stranger, other, world, split}) == expected);
  CHECK(recording_of({}).empty());
  // Processes of two machines may have the same number.
  other.process.machine = 1;
  other.thread = 10;
  CHECK(events({split, world, other}) == expected);
}
