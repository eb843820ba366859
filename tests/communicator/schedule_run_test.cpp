#include <doctest/doctest.h>

#include "baton/schedule/text.hpp"
#include "baton/verify.hpp"
#include "support/ranks.hpp"

using namespace baton;
using namespace support;

namespace {

/// All-reduce of two ranks by one exchange, written by hand.
constexpr const char* exchange = R"(baton-schedule 1
collective all_reduce
size 2
input 6
output 6
rank 0
send 1 input[0:6]
recv 1 slot[0:6]
fold output[0:6] = input[0:6] + slot[0:6]
rank 1
send 0 input[0:6]
recv 0 slot[0:6]
fold output[0:6] = slot[0:6] + input[0:6]
)";

/// Everybody sends to rank 0, which answers: an all_reduce that the library does not have.
Schedule star(const Problem& p) {
  ScheduleBuilder b(p);
  for (int peer = 1; peer < p.size; ++peer) {
    if (p.rank == 0) b.recv_reduce(peer, b.work(), Side::right);
    if (p.rank == peer) b.send(0, b.work());
  }
  if (p.rank == 0) b.reduced(b.work());
  for (int peer = 1; peer < p.size; ++peer) {
    if (p.rank == 0) b.send(peer, b.work());
    if (p.rank == peer) b.recv(0, b.work());
  }
  return b.build("star");
}

}  // namespace

TEST_CASE("a schedule that no registry knows runs as it is") {
  const std::vector<Schedule> schedules = parse(exchange);
  on_ranks(2, [&](Communicator& c) {
    std::vector<std::int32_t> in(6, c.rank() + 3), out(6);
    const Schedule& mine = schedules[static_cast<std::size_t>(c.rank())];
    c.run(mine, in, out);
    CHECK(out == std::vector<std::int32_t>(6, 7));
    c.run(mine, in, out, max);
    CHECK(out == std::vector<std::int32_t>(6, 4));
    std::vector<double> wide_in(6, 0.5), wide_out(6);
    c.run(mine, wide_in, wide_out);
    CHECK(wide_out[5] == 1.0);
    c.all_reduce(in, sum);
    CHECK(in[0] == 7);
  });
}

TEST_CASE("a schedule that does not fit is refused") {
  const std::vector<Schedule> schedules = parse(exchange);
  on_ranks(2, [&](Communicator& c) {
    const auto says = [&](const Schedule& schedule, ConstData in, Data out, Op op,
                          const std::vector<std::string>& parts) {
      const Error error = error_of([&] { c.run(schedule, in, out, op); });
      CHECK(error.code == ErrorCode::invalid_argument);
      CHECK_MESSAGE(holds(error.what(), parts), std::string(error.what()));
    };
    const Schedule& mine = schedules[static_cast<std::size_t>(c.rank())];
    std::vector<float> six(6), five(5), out(6);
    std::vector<double> other(6);
    says(
        schedules[static_cast<std::size_t>(1 - c.rank())], six, out, sum,
        {"rank " + std::to_string(c.rank()), "found one for rank " + std::to_string(1 - c.rank())});
    says(mine, five, out, sum, {"input of 6", "found 5"});
    says(mine, six, five, sum, {"output of 6", "found 5"});
    says(mine, other, out, sum, {"input of f32", "found f64"});
    says(mine, six, out, bit_or, {"operation", "f32", "bit_or"});
    says(mine, {nullptr, 6, Datatype::f32}, out, sum, {"input", "null pointer"});
    says(mine, six, {nullptr, 6, Datatype::f32}, sum, {"output", "null pointer"});
    says(mine, six, six, sum, {"apart", "overlapping"});
    c.barrier();
  });
}

TEST_CASE("a schedule with more lanes than an operation has tags is refused") {
  on_ranks(2, [](Communicator& c) {
    Schedule::Header header;
    header.collective = Collective::broadcast;
    header.size = 2;
    header.rank = c.rank();
    header.output = 1;
    Step step;
    step.kind = c.rank() == 0 ? StepKind::send : StepKind::recv;
    step.peer = 1 - c.rank();
    step.parts[0] = 1;
    const Regions regions{contiguous(Buffer::output, 0, 1)};
    std::vector<float> data(1, 5.0F * static_cast<float>(1 - c.rank()));
    step.lane = 32;
    const Error error = error_of([&] { c.run(Schedule(header, {step}, regions), {}, data); });
    CHECK(error.code == ErrorCode::invalid_argument);
    CHECK(std::string(error.what()).find("at most 32 lanes, found 33") != std::string::npos);
    step.lane = 31;
    c.run(Schedule(header, {step}, regions), {}, data);
    CHECK(data[0] == 5);
  });
}

TEST_CASE("an algorithm with more lanes than an operation has tags is refused") {
  const auto lane = [](int number) {
    return [number](const Problem& p) {
      ScheduleBuilder b(p);
      b.lane(number);
      for (int peer = 1; peer < p.size; ++peer) {
        if (p.rank == 0) b.send(peer, b.output());
        if (p.rank == peer) b.recv(0, b.output());
      }
      return b.build(number == 31 ? "last" : "beyond");
    };
  };
  Registry registry = Registry::builtin();
  Algorithm algorithm = registry.find(Collective::broadcast, "linear");
  algorithm.name = "last";
  algorithm.generate = lane(31);
  registry.add(algorithm);
  algorithm.name = "beyond";
  algorithm.generate = lane(32);
  registry.add(algorithm);
  Options options = test_options();
  options.registry = std::make_shared<const Registry>(registry);
  on_ranks(
      2,
      [](Communicator& c) {
        std::vector<float> data(3, 5.0F * static_cast<float>(1 - c.rank()));
        for (int i = 0; i < 2; ++i) {  // also where the call is a repeated one
          const Error error = error_of([&] { c.broadcast(data, 0, {"beyond", 0}); });
          CHECK(error.code == ErrorCode::invalid_argument);
          CHECK(holds(error.what(), {"at most 32 lanes, found 33"}));
        }
        c.broadcast(data, 0, {"last", 0});
        CHECK(data == std::vector<float>(3, 5));
      },
      options);
}

TEST_CASE("a user's own algorithm: registered, chosen by name, proved, run") {
  Registry registry = Registry::builtin();
  registry.add({.collective = Collective::all_reduce,
                .name = "star",
                .generate = star,
                .cost =
                    [](const Problem& p) {
                      const std::int64_t peers = p.size - 1;
                      const std::int64_t mine = p.rank == 0 ? peers * p.count : p.count;
                      return Cost{.rounds = 2 * peers,
                                  .sent = p.size == 1 ? 0 : mine,
                                  .received = p.size == 1 ? 0 : mine,
                                  .scratch = 0,
                                  .folded = p.rank == 0 ? peers * p.count : 0};
                    },
                .refuses = {},
                .ordered = true,
                .rounds = "2(P-1)",
                .sent = "n",
                .source = "this test"});
  const Algorithm& algorithm = registry.find(Collective::all_reduce, "star");
  Options options = test_options();
  options.registry = std::make_shared<const Registry>(registry);
  for (const int size : {1, 2, 5}) {
    std::vector<Problem> problems;
    for (int rank = 0; rank < size; ++rank) {
      Problem problem;
      problem.size = size;
      problem.rank = rank;
      problem.count = 10;
      problems.push_back(problem);
    }
    const Proof proof = verify(algorithm, problems);
    CHECK_MESSAGE(proof.holds(), (proof.holds() ? std::string() : proof.findings[0].sentence));
    on_ranks(
        size,
        [&](Communicator& c) {
          std::vector<std::int32_t> x(10, 1);
          c.all_reduce(x, sum, {"star", 0});
          CHECK(x == std::vector<std::int32_t>(10, size));
          c.all_reduce(x, sum, {"star", 12});
          CHECK(x == std::vector<std::int32_t>(10, size * size));
        },
        options);
  }
  CHECK(holds(error_of([&] {
                Registry twice = registry;
                twice.add(algorithm);
              }).what(),
              {"star", "all_reduce", "registered already"}));
}

TEST_CASE("what a call would run can be asked") {
  on_ranks(3, [](Communicator& c) {
    std::vector<float> x(12);
    Call call = calls::all_reduce(x, x, sum);
    call.choice = {"ring", 16};
    CHECK(c.chosen(call) == Choice{"ring", 16});
    const Schedule schedule = c.schedule(call);
    CHECK(schedule.header().algorithm == "ring");
    CHECK(schedule.header().in_place);
    CHECK(schedule.messages() == 4);  // uncut
    CHECK(schedule.rank() == c.rank());
    call.choice = {};
    CHECK(!c.chosen(call).algorithm.empty());
    CHECK(c.chosen(call).segment >= 0);
  });
}
