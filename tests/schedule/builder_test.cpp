#include "baton/schedule/builder.hpp"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include "support/schedules.hpp"

using namespace baton;
using support::problem;
using support::steps;

TEST_CASE("work is the input until it is written, and the output from then on") {
  ScheduleBuilder b(problem(Collective::all_reduce, 3, 1, 6));
  b.send(0, b.work());
  b.recv_reduce(2, b.chunks(3)[1]);
  b.send(2, b.work());
  b.recv(0, b.chunks(3)[0]);
  b.send(2, b.work());
  CHECK(steps(b.build()) ==
        "send input[0:6] to 0\n"
        "recv slot[0:2] from 2\n"
        "fold output[2:2] = input[2:2] + slot[0:2]\n"
        "send input[0:2], output[2:2], input[4:2] to 2\n"
        "recv output[0:2] from 0\n"
        "send output[0:4], input[4:2] to 2\n"
        "copy output[4:2] = input[4:2]");  // the result that no step wrote
}

TEST_CASE("in place, input and output are one buffer") {
  ScheduleBuilder b(problem(Collective::all_reduce, 2, 0, 4, true));
  CHECK(b.input() == b.output());
  b.send(1, b.work());
  b.recv_reduce(1, b.work());
  const Schedule s = b.build("pair");
  CHECK(steps(s) ==
        "send output[0:4] to 1\nrecv slot[0:4] from 1\nfold output[0:4] = output[0:4] + slot[0:4]");
  CHECK(s.header().input == 0);
  CHECK(s.header().in_place);
  CHECK(s.header().algorithm == "pair");
  CHECK(std::vector(s.dependencies(2).begin(), s.dependencies(2).end()) ==
        std::vector<std::uint32_t>{0, 1});
  CHECK(s.dependencies(1).empty());  // the receive into the slot may be posted at once
}

TEST_CASE("reduce away from the root gathers in scratch") {
  Problem p = problem(Collective::reduce, 3, 1, 4);
  p.root = 0;
  ScheduleBuilder b(p);
  b.recv_reduce(2, b.work());
  b.send(0, b.work());
  const Schedule s = b.build();
  CHECK(
      steps(s) ==
      "recv slot[0:4] from 2\nfold scratch[0:4] = input[0:4] + slot[0:4]\nsend scratch[0:4] to 0");
  CHECK(s.header().scratch == 4);
  CHECK(s.header().output == 0);
}

TEST_CASE("reduce_scatter gathers its own block in the output, the others in scratch") {
  for (const bool in_place : {false, true}) {
    ScheduleBuilder b(problem(Collective::reduce_scatter, 3, 1, 2, in_place));
    const auto chunk = b.chunks(3);
    b.recv_reduce(0, chunk[0]);
    b.recv_reduce(0, chunk[1]);
    b.recv_reduce(0, chunk[2]);
    b.send(2, b.work());
    const Schedule s = b.build();
    const std::string own = in_place ? "input[2:2]" : "output[0:2]";
    CHECK(steps(s) ==
          fmt::format("recv slot[0:2] from 0\nfold scratch[0:2] = slot[0:2] + input[0:2]\n"
                      "recv slot[2:2] from 0\nfold {0} = slot[2:2] + input[2:2]\n"
                      "recv slot[0:2] from 0\nfold scratch[2:2] = slot[0:2] + input[4:2]\n"
                      "send scratch[0:2], {0}, scratch[2:2] to 2",
                      own));
    CHECK(s.header().scratch == 4);
  }
}

TEST_CASE("one rank alone fills its output; in place it has nothing to do") {
  for (const Collective collective :
       {Collective::all_reduce, Collective::reduce, Collective::scan, Collective::reduce_scatter}) {
    CHECK(steps(ScheduleBuilder(problem(collective, 1, 0, 5)).build()) ==
          "copy output[0:5] = input[0:5]");
    CHECK(steps(ScheduleBuilder(problem(collective, 1, 0, 5, true)).build()).empty());
  }
}

TEST_CASE("the message stands on the side of its sender, unless said otherwise") {
  ScheduleBuilder b(problem(Collective::all_reduce, 3, 1, 1));
  b.recv_reduce(0, b.work());
  b.recv_reduce(2, b.work());
  b.recv_reduce(2, b.work(), Side::left);
  const Region other = b.scratch(1);
  b.recv_reduce(0, other, b.work(), Side::right);
  CHECK(steps(b.build()) ==
        "recv slot[0:1] from 0\nfold output[0:1] = slot[0:1] + input[0:1]\n"
        "recv slot[1:1] from 2\nfold output[0:1] = output[0:1] + slot[1:1]\n"
        "recv slot[0:1] from 2\nfold output[0:1] = slot[0:1] + output[0:1]\n"
        "recv slot[1:1] from 0\nfold scratch[0:1] = output[0:1] + slot[1:1]");
}

TEST_CASE("two slots a lane, used in turn, each as long as the longest message") {
  ScheduleBuilder b(problem(Collective::all_reduce, 4, 0, 8));
  for (const std::int64_t n : {3, 5, 2}) b.recv_reduce(1, contiguous(Buffer::work, 0, n));
  b.lane(1);
  b.recv_reduce(2, contiguous(Buffer::work, 0, 1));
  const Schedule s = b.build();
  CHECK(s.header().slots == 5 + 5 + 1);
  CHECK(s.lanes() == 2);
  CHECK(print(s, 0) == "recv slot[0:3] from 1");
  CHECK(print(s, 2) == "recv slot[5:5] from 1");
  CHECK(print(s, 4) == "recv slot[0:2] from 1");
  CHECK(print(s, 6) == "recv slot[10:1] from 2");
  // The third receive waits for the first fold, which frees its slot; the others wait for nothing.
  CHECK(s.dependencies(0).empty());
  CHECK(s.dependencies(2).empty());
  CHECK(std::vector(s.dependencies(4).begin(), s.dependencies(4).end()) ==
        std::vector<std::uint32_t>{0, 1});
  CHECK(s.dependencies(6).empty());
}

TEST_CASE("recv_late receives at once and copies when the region is free") {
  ScheduleBuilder b(problem(Collective::all_to_all, 2, 0, 3, true));
  b.send(1, b.input_blocks()[1]);
  b.recv_late(1, b.output_blocks()[1]);
  const Schedule s = b.build();
  CHECK(steps(s) == "send output[3:3] to 1\nrecv slot[0:3] from 1\ncopy output[3:3] = slot[0:3]");
  CHECK(s.dependencies(1).empty());
  CHECK(s.dependencies(2).size() == 2);
}

TEST_CASE("what is empty is dropped, and a copy onto itself") {
  ScheduleBuilder b(problem(Collective::all_reduce, 4, 0, 2));
  const auto chunk = b.chunks(4);
  CHECK(chunk[2].empty());
  b.send(1, chunk[2]);
  b.recv(1, chunk[3]);
  b.recv_reduce(1, chunk[2]);
  b.recv_late(1, chunk[3]);
  b.fold(chunk[2], chunk[3], chunk[2]);
  b.copy(b.output(), b.output());
  b.reduced(chunk[2]);
  b.send(1, Regions{chunk[0], chunk[2], chunk[1]});
  CHECK(steps(b.build()) == "send input[0:1], input[1:1] to 1\ncopy output[0:2] = input[0:2]");
}

TEST_CASE("avg ends with a division, where the algorithm says that a region is whole") {
  Problem p = problem(Collective::all_reduce, 2, 0, 4);
  for (const bool average : {false, true}) {
    p.average = average;
    ScheduleBuilder b(p);
    b.recv_reduce(1, b.chunks(2)[0]);
    b.reduced(b.chunks(2)[0]);
    b.recv(1, b.chunks(2)[1]);
    CHECK(steps(b.build()) ==
          std::string("recv slot[0:2] from 1\nfold output[0:2] = input[0:2] + slot[0:2]\n") +
              (average ? "divide output[0:2]\n" : "") + "recv output[2:2] from 1");
  }
  p.size = 1;
  ScheduleBuilder alone(p);
  alone.reduced(alone.work());
  CHECK(steps(alone.build()) == "copy output[0:4] = input[0:4]\ndivide output[0:4]");
}

TEST_CASE("chunks are cyclic and near-equal, the larger first") {
  ScheduleBuilder b(problem(Collective::all_reduce, 4, 0, 10));
  const auto chunk = b.chunks(4);
  CHECK(chunk.size() == 4);
  CHECK(chunk[0] == contiguous(Buffer::work, 0, 3));
  CHECK(chunk[1] == contiguous(Buffer::work, 3, 3));
  CHECK(chunk[2] == contiguous(Buffer::work, 6, 2));
  CHECK(chunk[3] == contiguous(Buffer::work, 8, 2));
  CHECK(chunk[-1] == chunk[3]);
  CHECK(chunk[6] == chunk[2]);
  CHECK(chunk[-8] == chunk[0]);
  CHECK(chunk.count(5) == 3);
  CHECK(chunk.range(1, 2) == Regions{contiguous(Buffer::work, 3, 5)});
  CHECK(chunk.range(3, 2) ==
        Regions{contiguous(Buffer::work, 8, 2), contiguous(Buffer::work, 0, 3)});
  CHECK(chunk.range(-1, 4) ==
        Regions{contiguous(Buffer::work, 8, 2), contiguous(Buffer::work, 0, 8)});
  CHECK(chunk.range(2, 0).empty());
  const auto half = b.chunks(contiguous(Buffer::scratch, 5, 7), 2);
  CHECK(half[0] == contiguous(Buffer::scratch, 5, 4));
  CHECK(half[1] == contiguous(Buffer::scratch, 9, 3));
}

TEST_CASE("blocks: uneven ones where they lie, tensors' ones by rows") {
  Problem p = problem(Collective::all_gather, 3, 1, 2);
  const std::int64_t counts[] = {3, 2, 0}, offsets[] = {4, 0, 9};
  p.output_blocks = Blocks::placed(counts, offsets);
  {
    ScheduleBuilder b(p);
    CHECK(b.output_blocks()[0] == contiguous(Buffer::output, 4, 3));
    CHECK(b.output_blocks()[1] == contiguous(Buffer::output, 0, 2));
    CHECK(b.output_blocks()[2].empty());
    CHECK(b.output_blocks().range(1, 3) ==
          Regions{contiguous(Buffer::output, 0, 2), contiguous(Buffer::output, 4, 3)});
  }
  p = problem(Collective::all_gather, 3, 1, 6);
  p.output_rows = 2;
  ScheduleBuilder b(p);
  CHECK(b.input() == contiguous(Buffer::input, 0, 6));
  CHECK(b.output_blocks()[1] == strided(Buffer::output, 3, 3, 2, 9));
  CHECK(b.output_blocks()[-1] == strided(Buffer::output, 6, 3, 2, 9));
}

TEST_CASE("rounds and lanes are labels") {
  ScheduleBuilder b(problem(Collective::broadcast, 4, 0, 1));
  b.send(1, b.output());
  b.end_round();
  b.lane(3);
  CHECK(b.round() == 1);
  b.send(2, b.output());
  const Schedule s = b.build();
  CHECK(s.steps()[0].round == 0);
  CHECK(s.steps()[1].round == 1);
  CHECK(s.steps()[1].lane == 3);
  CHECK(s.rounds() == 2);
  CHECK(s.lanes() == 4);
}

TEST_CASE("a schedule is a value: equal problems give equal schedules") {
  const Registry registry = Registry::builtin();
  for (const Algorithm& algorithm : registry.all()) {
    Problem p = problem(algorithm.collective, 6, 4, 9);
    p.hosts = support::hosts_for(algorithm, p.size);
    const Schedule a = algorithm.generate(p), b = algorithm.generate(p);
    CHECK(a == b);
    CHECK(!difference(a, b));
    p.count = 10;
    CHECK((algorithm.collective == Collective::barrier || a != algorithm.generate(p)));
  }
}

TEST_CASE("a group's collective, embedded") {
  // Ranks 3 and 1 of 4 add up the middle of their vectors; the others have nothing to do.
  Problem p = support::problem(Collective::all_reduce, 4, 3, 6);
  Problem group = support::problem(Collective::all_reduce, 2, 0, 2, true);
  group.average = p.average = true;
  ScheduleBuilder pair(group), builder(p);
  const Region all = pair.work();
  pair.send(1, all);
  pair.recv_reduce(1, all);
  pair.end_round();
  const Region spare = pair.scratch(2);
  pair.copy(spare, all);
  pair.reduced(all);

  builder.scratch(5);
  builder.end_round();
  const int ranks[] = {3, 1};
  const auto work = [&](std::int64_t offset) { return contiguous(Buffer::work, offset, 1); };
  builder.embed(pair.build(), ranks, {}, {work(4), work(2)});
  CHECK(builder.round() == 2);
  builder.send(0, builder.work());
  const Schedule schedule = builder.build("embedded");
  CHECK(support::steps(schedule) ==
        "send input[4:1], input[2:1] to 1\n"
        "recv slot[0:2] from 1\n"
        "fold output[4:1], output[2:1] = input[4:1], input[2:1] + slot[0:2]\n"
        "copy scratch[5:2] = output[4:1], output[2:1]\n"
        "divide output[4:1], output[2:1]\n"
        "send input[0:2], output[2:1], input[3:1], output[4:1], input[5:1] to 0\n"
        "copy output[0:2] = input[0:2]\n"
        "copy output[3:1] = input[3:1]\n"
        "copy output[5:1] = input[5:1]");
  CHECK(schedule.steps()[0].round == 1);
  CHECK(schedule.steps()[4].round == 1);
  CHECK(schedule.header().scratch == 7);
}

TEST_CASE("copies behind the last round belong to it, messages do not") {
  ScheduleBuilder b(problem(Collective::all_gather, 2, 0, 1));
  const Chunks out = b.output_blocks();
  b.send(1, b.input());
  b.recv(1, out[1]);
  b.end_round();
  b.copy(out[0], b.input());
  CHECK(b.build().rounds() == 1);

  ScheduleBuilder c(problem(Collective::all_gather, 2, 0, 1));
  c.send(1, c.input());
  c.end_round();
  c.recv(1, c.output_blocks()[1]);
  c.copy(c.output_blocks()[0], c.input());
  const Schedule s = c.build();
  CHECK(s.rounds() == 2);
  CHECK(s.steps().back().round == 1);

  ScheduleBuilder alone(problem(Collective::all_gather, 1, 0, 1));
  alone.copy(alone.output(), alone.input());
  CHECK(alone.build().rounds() == 1);
}
