// Programs: schedules that also compute.

#include <doctest/doctest.h>

#include <algorithm>

#include "baton/error.hpp"
#include "baton/schedule/passes.hpp"
#include "support/programs.hpp"
#include "support/schedules.hpp"

using namespace baton;
using support::compute_reduce_compute;

namespace {

std::string refused(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    CHECK(error.code == ErrorCode::invalid_argument);
    return error.what();
  }
  return "";
}

std::string refused_line(const std::string& line) {
  return refused([&] {
    parse("baton-schedule 1\ncollective program\nsize 2\ninput 0\noutput 0\nrank 0\n" + line, "f");
  });
}

Schedule::Header header() {
  Schedule::Header header;
  header.collective = Collective::program;
  header.scratch = 4;
  return header;
}

Step compute(std::int32_t computation) {
  Step step;
  step.kind = StepKind::compute;
  step.peer = computation;
  return step;
}

std::vector<std::uint32_t> waits(const Schedule& schedule, std::size_t i) {
  const auto list = schedule.dependencies(i);
  return {list.begin(), list.end()};
}

int computations(const Schedule& schedule) {
  return static_cast<int>(std::ranges::count(schedule.steps(), StepKind::compute, &Step::kind));
}

}  // namespace

static_assert(sizeof(Step) == 28, "a training step has millions of steps");

TEST_CASE("computations follow each other, receives and sends follow their data") {
  const Schedule first = parse(support::two_stages)[0];
  CHECK(waits(first, 0).empty());
  CHECK(waits(first, 1) == std::vector<std::uint32_t>{0});     // the send of 0F0
  CHECK(waits(first, 2) == std::vector<std::uint32_t>{0});     // 0F1, but not the send
  CHECK(waits(first, 4).empty());                              // a receive
  CHECK(waits(first, 5) == std::vector<std::uint32_t>{2, 4});  // 0B0
  CHECK(first.computed() == 6000);
  CHECK(first.computations().size() == 4);
  CHECK(first.computation(first.steps()[5]) == Computation{"0B0", ComputationKind::backward, 2000});
  CHECK(print(first, 0) == "compute 1000 forward 0F0 writes scratch[0:4]");
}

TEST_CASE("programs are printed and read back") {
  const Registry registry = Registry::builtin();
  std::vector<Schedule> all = parse(support::two_stages);
  for (const int size : {1, 2, 3, 4, 5, 7, 8}) {
    for (const Algorithm* algorithm : registry.of(Collective::all_reduce)) {
      if (algorithm->hierarchical) continue;
      all.push_back(compute_reduce_compute(*algorithm, size, size / 2, 13, size % 3));
    }
  }
  for (const Schedule& schedule : all) {
    const Schedule read = parse(print(schedule))[0];
    CHECK(difference(read, schedule).value_or("") == "");
    CHECK(read == schedule);
  }
  ScheduleBuilder builder(support::problem(Collective::program, 1, 0, 0));
  builder.compute({"", ComputationKind::other, 0});
  builder.compute({"layer 3, \"left\" # half\n", ComputationKind::backward_weight, 7});
  builder.compute({"lane", ComputationKind::backward_input, 7});
  builder.compute({"alone", ComputationKind::forward, 7, false});
  const Schedule odd = builder.build("odd names");
  CHECK(parse(print(odd))[0] == odd);
}

TEST_CASE("equal computations are listed once") {
  ScheduleBuilder builder(support::problem(Collective::program, 1, 0, 0));
  for (int i = 0; i < 3; ++i) {
    builder.compute({"a", ComputationKind::forward, 1});
    builder.compute({"b", ComputationKind::forward, 1});
  }
  const Schedule schedule = builder.build();
  CHECK(schedule.steps().size() == 6);
  REQUIRE(schedule.computations().size() == 2);
  CHECK(schedule.computations()[1].name == "b");
  const Schedule other(header(), {compute(1)}, {},
                       std::vector<Computation>{{"x", {}, 1}, {"a", {}, 1}});
  REQUIRE(other.computations().size() == 1);
  CHECK(other.computations()[0].name == "a");
  const Computation advancing{"x", {}, 1}, alone{"x", {}, 1, false};
  const Schedule both(header(), {compute(0), compute(1)}, {}, std::vector{advancing, alone});
  REQUIRE(both.computations().size() == 2);
  CHECK(both.computations()[1] == alone);
  CHECK(parse(print(both))[0] == both);
}

TEST_CASE("a computation of any time that a schedule has is read back") {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() / 2;
  const auto taking = [](std::int64_t ns) {
    return Schedule(header(), {compute(0)}, {}, std::vector<Computation>{{"a", {}, ns}});
  };
  CHECK(parse(print(taking(most)))[0] == taking(most));
  CHECK(refused([&] { taking(most + 1); }).find("found 4611686018427387904") != std::string::npos);
}

TEST_CASE("schedules that differ in a computation differ") {
  const Schedule a = parse(support::two_stages)[0];
  std::string text = support::two_stages;
  text.replace(text.find("compute 1000"), 12, "compute 1001");
  const Schedule b = parse(text)[0];
  CHECK(a != b);
  CHECK(difference(a, b).value_or("").find("compute 1001 forward 0F0") != std::string::npos);
}

TEST_CASE("an embedded collective keeps its order beside computations") {
  const Registry registry = Registry::builtin();
  for (const int size : {1, 2, 3, 4, 5, 7, 8}) {
    for (const Algorithm* algorithm : registry.of(Collective::all_reduce)) {
      if (algorithm->hierarchical) continue;
      std::vector<Schedule> schedules;
      for (int r = 0; r < size; ++r)
        schedules.push_back(compute_reduce_compute(*algorithm, size, r, 13, 3));
      CHECK(support::flaws(schedules, problems_of(schedules)) == "");
      CHECK(schedules[0].header().slots == 0);  // operations share none
      for (const Step& step : schedules[0].steps())
        CHECK((step.kind == StepKind::compute ? step.lane == 0 : step.lane >= 3));
      // The last computation waits for the result, directly or not at all.
      CHECK(!waits(schedules[0], schedules[0].steps().size() - 1).empty());
    }
  }
}

TEST_CASE("an embedded program keeps its computations") {
  const Schedule part = parse(support::two_stages)[1];
  ScheduleBuilder builder(support::problem(Collective::program, 3, 0, 0));
  const std::vector<int> ranks{2, 0};
  builder.compute({"before", ComputationKind::other, 5});
  builder.embed(part, ranks, {}, {});
  const Schedule whole = builder.build();
  CHECK(computations(whole) == 1 + computations(part));
  CHECK(whole.computed() == 5 + part.computed());
  CHECK(whole.steps()[1].peer == 2);
  CHECK(print(whole, 2) == "compute 1000 forward 1F0 reads scratch[0:4]");
}

TEST_CASE("passes keep computations whole") {
  const std::vector<Schedule> schedules = parse(support::two_stages);
  for (const Schedule& schedule : schedules) {
    const Schedule cut = segmented(schedule, 3);
    CHECK(computations(cut) == computations(schedule));
    CHECK(cut.computed() == schedule.computed());
    CHECK(cut.messages() == 2 * schedule.messages());
    CHECK(packed(schedule) == schedule);
    CHECK(split_at(schedule, {}, {}) == schedule);
  }
  CHECK(support::flaws({segmented(schedules[0], 3), segmented(schedules[1], 3)},
                       problems_of(schedules)) == "");
  const std::vector<Schedule> in_groups = fused(schedules);
  CHECK(verify_fused(in_groups, problems_of(in_groups)).holds());
  for (std::size_t r = 0; r < 2; ++r) {
    CHECK(in_groups[r].computed() == schedules[r].computed());
    CHECK(computations(in_groups[r]) == computations(schedules[r]));
  }
}

TEST_CASE("computations that are none are refused") {
  const std::vector<Computation> one{{"a", ComputationKind::forward, 1}};
  CHECK(refused([&] { Schedule(header(), {compute(1)}, {}, one); }) ==
        "schedule of rank 0, step 0: expected one of 1 computations, found number 1");
  CHECK(refused([&] { Schedule(header(), {compute(-1)}, {}, one); }).find("found number -1") !=
        std::string::npos);
  CHECK(refused([&] {
          Schedule(header(), {compute(0)}, {},
                   std::vector<Computation>{{"a", ComputationKind::forward, -1}});
        }) ==
        "schedule of rank 0, step 0: expected a computation of 0 to 4611686018427387903 ns, "
        "found -1");
  Dependencies none;
  none.end_step();
  none.end_step();
  CHECK(refused([&] {
          Schedule(header(), {compute(0), compute(0)}, {}, none, one);
        }).find("waits for the one before it, step 0") != std::string::npos);
  Step in_slot = compute(0);
  in_slot.parts[0] = 1;
  CHECK(refused([&] {
          Schedule(header(), {in_slot}, {contiguous(Buffer::slot, 0, 1)}, one);
        }).find("touches no slot") != std::string::npos);
  CHECK(refused_line("compute forward 0F0") ==
        "f:7: expected a time in ns from 0 to 4611686018427387903, found \"forward\"");
  CHECK(refused_line("compute 4611686018427387904 forward a") ==
        "f:7: expected a time in ns from 0 to 4611686018427387903, found 4611686018427387904");
  CHECK(refused_line("compute 5 sideways 0F0") ==
        "f:7: expected the class of a computation, found \"sideways\"");
  CHECK(refused_line("compute 5 forward") ==
        "f:7: expected the name of a computation, found the end of the line");
  CHECK(refused_line("compute 5 forward a writes slot[0:2]").find("touches no slot") !=
        std::string::npos);
  CHECK(refused_line("compute 5 forward a into scratch[0:2]").find("\"into\"") !=
        std::string::npos);
}

TEST_CASE("a program is no collective to be called") {
  CHECK(name(Collective::program) == "program");
  CHECK(refused([] { collective_named("program"); }).find("found \"program\"") !=
        std::string::npos);
  for (int k = 0; k < computation_kind_count; ++k) {
    const auto kind = static_cast<ComputationKind>(k);
    CHECK(computation_kind_named(name(kind)) == kind);
  }
}
