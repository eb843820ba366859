#include "execute/plan.hpp"

#include <doctest/doctest.h>

#include "baton/error.hpp"
#include "support/programs.hpp"
#include "support/schedules.hpp"

using namespace baton;
using namespace baton::execute;

namespace {

Schedule one(const std::string& steps, const std::string& head = "input 12\noutput 12\n") {
  return parse("baton-schedule 1\ncollective all_reduce\nsize 3\n" + head + "rank 0\n" + steps +
               "\nrank 1\nrank 2\n")[0];
}

Plan plan(const Schedule& schedule, std::vector<std::int64_t> inputs = {12},
          std::vector<std::int64_t> outputs = {12}) {
  return Plan(schedule, 4, inputs, outputs);
}

bool refused(const Schedule& schedule, std::vector<std::int64_t> inputs,
             std::vector<std::int64_t> outputs, std::string_view says) {
  try {
    plan(schedule, std::move(inputs), std::move(outputs));
  } catch (const Error& error) {
    return error.code == ErrorCode::invalid_argument &&
           std::string(error.what()).find(says) != std::string::npos;
  }
  return false;
}

}  // namespace

TEST_CASE("channels hold the messages of one lane, peer and direction, in program order") {
  const Plan p = plan(
      one("send 2 input[0:1]\nsend 1 input[0:2] lane 1\nrecv 2 output[0:1]\nsend 2 input[1:1]\n"
          "send 1 input[2:2]\nsend 1 input[4:2] lane 1"));
  CHECK(p.lanes() == 2);
  REQUIRE(p.channels().size() == 4);
  const auto messages = [&](std::size_t channel) {
    const Plan::Channel& s = p.channels()[channel];
    return std::vector<std::uint32_t>(p.messages().begin() + s.first,
                                      p.messages().begin() + s.last);
  };
  // In the order of their first messages.
  CHECK(messages(0) == std::vector<std::uint32_t>{0, 3});
  CHECK(messages(1) == std::vector<std::uint32_t>{1, 5});
  CHECK(messages(2) == std::vector<std::uint32_t>{2});
  CHECK(messages(3) == std::vector<std::uint32_t>{4});
  CHECK(p.items()[5].bytes == 8);
  CHECK(p.items()[5].lane == 1);
}

TEST_CASE("dependents are dependencies the other way round") {
  const Schedule s = one("recv 1 output[0:4]\ncopy output[4:4] = output[0:4]\nsend 2 output[0:8]");
  const Plan p = plan(s);
  CHECK(p.items()[0].waits == 0);
  CHECK(p.items()[1].waits == 1);
  CHECK(p.items()[2].waits == 2);
  std::vector<std::vector<std::uint32_t>> found(3);
  for (std::uint32_t i = 0; i < 3; ++i) {
    const auto dependents = p.dependents_of(i);
    found[i].assign(dependents.begin(), dependents.end());
  }
  CHECK(found == std::vector<std::vector<std::uint32_t>>{{1, 2}, {2}, {}});
  CHECK(p.initial().empty());
  const Plan local = plan(one("copy output[0:4] = input[0:4]"));
  CHECK(local.initial().size() == 1);
}

TEST_CASE("pieces: operands that are cut differently meet piece by piece") {
  const Plan p = plan(one("fold output[0:2 x3 /4] = input[0:6] + input[6:1 x2 /2], input[0:4]"));
  struct Elements {
    std::int64_t into, left, right;
    bool operator==(const Elements&) const = default;
  };
  std::vector<Elements> found;
  for (const Piece& piece : p.pieces()) {
    for (std::int64_t row = 0; row < piece.rows; ++row) {
      for (std::int64_t i = 0; i < piece.block; ++i) {
        const auto at = [&](int k) { return (piece.at[k].offset + row * piece.stride[k]) / 4 + i; };
        found.push_back({at(0), at(1), at(2)});
      }
    }
  }
  CHECK(found ==
        std::vector<Elements>{{0, 0, 6}, {1, 1, 8}, {4, 2, 0}, {5, 3, 1}, {8, 4, 2}, {9, 5, 3}});
}

TEST_CASE("rows of equal strides are one piece") {
  const Plan p = plan(one("copy output[0:2 x4 /3] = input[1:2 x4 /3]"));
  REQUIRE(p.pieces().size() == 1);
  CHECK(p.pieces()[0].rows == 4);
  CHECK(p.pieces()[0].block == 2);
  CHECK(p.pieces()[0].stride[0] == 12);
}

TEST_CASE("lists of tensors: places are counted from the tensor that holds them") {
  const Plan p = plan(one("copy output[0:12] = input[0:12]"), {5, 0, 7}, {4, 8});
  CHECK(p.bases() == first_tensor_base + 5);
  struct Part {
    std::uint32_t to, from;
    std::int64_t to_offset, from_offset, length;
    bool operator==(const Part&) const = default;
  };
  std::vector<Part> found;
  for (const Piece& piece : p.pieces()) {
    found.push_back({piece.at[0].base, piece.at[1].base, piece.at[0].offset, piece.at[1].offset,
                     piece.block * piece.rows});
  }
  CHECK(found == std::vector<Part>{{5, 2, 0, 0, 4}, {6, 2, 0, 16, 1}, {6, 4, 4, 0, 7}});
}

TEST_CASE("messages across tensors are packed") {
  const Plan p = plan(one("send 1 input[0:12]"), {5, 7}, {12});
  REQUIRE(p.items().size() == 2);
  CHECK(p.items()[0].kind == StepKind::copy);
  CHECK(p.items()[1].kind == StepKind::send);
  CHECK(p.slot_bytes() == 48);
  CHECK(p.items()[1].piece_count == 1);
}

TEST_CASE("buffers that are too small, and regions out of bounds") {
  const Schedule s = one("copy output[0:4] = input[8:4]");
  CHECK(refused(s, {11}, {12}, "input of 12 elements"));
  CHECK(refused(s, {12}, {5, 6}, "output of 12 elements, as the schedule says, found 11"));
  CHECK(!refused(s, {12}, {12, 3}, ""));
  Schedule::Header header;
  header.size = 2;
  header.input = header.output = 12;
  Step send;
  send.kind = StepKind::send;
  send.peer = 1;
  send.parts[0] = 1;
  CHECK(refused(Schedule(header, {send}, {contiguous(Buffer::input, 10, 3)}), {12}, {12},
                "ends at 13"));
  CHECK(refused(Schedule(header, {send}, {contiguous(Buffer::slot, 0, 1)}), {12}, {12},
                "0 elements of slots"));
}

TEST_CASE("the schedule that a plan gives back is the one that it runs") {
  const Registry registry = Registry::builtin();
  for (const Algorithm& algorithm : registry.all()) {
    for (const int ranks : {1, 4, 5}) {
      Problem p = support::problem(algorithm.collective, ranks, 0, 12);
      p.hosts = support::hosts_for(algorithm, ranks);
      if (!refusal(algorithm, p).empty()) continue;
      CAPTURE(algorithm.name);
      const auto problems = support::problems(p);
      std::vector<Schedule> given_back;
      for (const Schedule& schedule : support::schedules(algorithm, problems)) {
        const auto& [input, output] = std::pair(schedule.header().input, schedule.header().output);
        // Lists of two tensors each, where there is enough for two.
        const auto halves = [](std::int64_t n) {
          return n < 2 ? std::vector<std::int64_t>{n} : std::vector<std::int64_t>{n / 2, n - n / 2};
        };
        const Plan first = plan(schedule, halves(input), halves(output));
        given_back.push_back(first.schedule());
        const Schedule runs = bound(schedule, halves(input), halves(output));
        REQUIRE(given_back.back().steps().size() == runs.steps().size());
        for (std::size_t i = 0; i < runs.steps().size(); ++i)
          CHECK(given_back.back().steps()[i].round == runs.steps()[i].round);
        const Plan second = plan(given_back.back(), halves(input), halves(output));
        CHECK(second.schedule() == given_back.back());
        CHECK(second.items().size() == first.items().size());
      }
      CHECK(support::flaws(given_back, problems) == "");
    }
  }
}

TEST_CASE("a program is not run, and the sentence says why") {
  CHECK(refused(parse(support::two_stages)[1], {}, {},
                "schedule of rank 1, step 1: expected messages and work on their data, found the "
                "computation \"1F0\": programs are simulated and drawn, not run"));
}
