#include "diagrams/readers.hpp"

#include <fstream>
#include <map>
#include <sstream>
#include <tuple>

#include "../timeline/timelines.hpp"
#include "baton/error.hpp"
#include "baton/own_algorithms.hpp"
#include "diagrams/diagrams.hpp"
#include "support/schedules.hpp"

using namespace baton;
using namespace baton::diagrams;

namespace {

std::string sample(const std::string& name) {
  std::stringstream text;
  text << std::ifstream(SAMPLES + name).rdbuf();
  REQUIRE(!text.str().empty());
  return text.str();
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

template <class Read>
std::string refused(const Read& read, const std::string& text) {
  try {
    read(text, "file");
  } catch (const Error& error) {
    CHECK(error.code == ErrorCode::invalid_argument);
    return error.what();
  }
  return "accepted";
}
std::string msccl_refused(const std::string& text) {
  return refused([](const auto&... arguments) { return parse_msccl(arguments...); }, text);
}
std::string goal_refused(const std::string& text) { return refused(parse_goal, text); }

std::string flaws(const std::vector<Schedule>& schedules, int buffered = 0) {
  const Proof proof = verify(schedules, problems_of(schedules), {buffered});
  return proof.findings.empty() ? "" : std::string(name(proof.findings[0].flaw));
}

std::string goal_of(const std::vector<Schedule>& schedules) {
  TimedOperation operation;
  operation.schedules = std::make_shared<const std::vector<Schedule>>(schedules);
  operation.element_bytes = 1;
  Timeline timeline;
  timeline.kind = TimelineKind::rounds;
  timeline.operations.push_back(operation);
  return goal(timeline);
}

/// The elements that a rank sends to and receives from each peer in each lane, and those that it
/// folds into, in this order; slots are scratch. An element of the schedule stands for `factor`.
std::map<std::tuple<StepKind, int, int>, std::vector<std::pair<Buffer, std::int64_t>>> moved(
    const Schedule& schedule, std::int64_t factor) {
  std::map<std::tuple<StepKind, int, int>, std::vector<std::pair<Buffer, std::int64_t>>> all;
  for (const Step& step : schedule.steps()) {
    if (!step.message() && step.kind != StepKind::fold) continue;
    auto& elements = all[{step.kind, step.peer, step.message() ? step.lane : 0}];
    for (const Region& region : schedule.operand(step, 0)) {
      const bool slot = region.buffer == Buffer::slot;
      const std::int64_t first = region.offset + (slot ? schedule.header().scratch : 0);
      for (std::int64_t i = 0; i < region.length() * factor; ++i) {
        const std::int64_t block = region.block * factor;
        elements.emplace_back(slot ? Buffer::scratch : region.buffer,
                              (first + i / block * region.stride) * factor + i % block);
      }
    }
  }
  return all;
}

/// Calls use(schedules) for each built-in algorithm on 2 to 9 ranks, in place and not.
template <class F>
void for_each_set(const F& use) {
  const Registry registry = Registry::builtin();
  int sets = 0;
  for (const Algorithm& algorithm : registry.all()) {
    for (int size = 2; size <= 9; ++size) {
      for (const bool in_place : {false, true}) {
        Problem problem = support::problem(algorithm.collective, size, 0, 2 * size, in_place);
        problem.hosts = support::hosts_for(algorithm, size);
        if (rooted(algorithm.collective)) problem.root = size - 1;
        if (algorithm.pipelined) problem.blocks = 3;
        if (algorithm.collective == Collective::barrier) problem.count = 1;
        if (!refusal(algorithm, problem).empty()) continue;
        INFO(name(algorithm.collective), " ", algorithm.name, ", ", size, " ranks, in place ",
             in_place);
        use(support::schedules(algorithm, support::problems(problem)));
        ++sets;
      }
    }
  }
  CHECK(sets > 400);
}

}  // namespace

TEST_CASE("MSCCL: what is written is read back, for every algorithm that the form can hold") {
  for_each_set([](const std::vector<Schedule>& schedules) {
    if (schedules[0].collective() == Collective::barrier) return;
    const std::string text = msccl(schedules);
    const std::vector<Schedule> read = parse_msccl(text, "file");
    REQUIRE(read.size() == schedules.size());
    // The form has chunks: as many elements each as all regions have in common.
    const Schedule::Header &was = schedules[0].header(), &is = read[0].header();
    const std::int64_t chunk =
        (was.input + was.output) / std::max<std::int64_t>(is.input + is.output, 1);
    for (std::size_t r = 0; r < read.size(); ++r) {
      Schedule::Header expected = schedules[r].header();
      expected.scratch = read[r].header().scratch * chunk;  // has the slots, too
      expected.slots = 0;
      Schedule::Header found = read[r].header();
      found.input *= chunk;
      found.output *= chunk;
      found.scratch *= chunk;
      CHECK(found == expected);
      CHECK((moved(read[r], chunk) == moved(schedules[r], 1)));
    }
    CHECK(flaws(read) == "");
    // All that the form holds comes back.
    const std::string again = msccl(read);
    CHECK(parse_msccl(again, "file") == read);
    const std::vector<Schedule> larger = parse_msccl(text, "file", {5, false});
    CHECK(larger[0].sent() == 5 * read[0].sent());
    CHECK(flaws(larger) == "");
    CHECK(msccl(larger) == again);
  });
}

TEST_CASE("MSCCL: instructions that receive, reduce, store and send") {
  const std::string text = sample("fused_ring.xml");
  const std::vector<Schedule> ring = parse_msccl(text, "file");
  REQUIRE(ring.size() == 3);
  CHECK(support::steps(ring[1]) ==
        "send input[1:1] to 2\n"
        "recv slot[0:1] from 0\n"
        "fold slot[0:1] = slot[0:1] + input[0:1]\n"
        "send slot[0:1] to 2\n"
        "recv slot[1:1] from 0\n"
        "fold output[2:1] = slot[1:1] + input[2:1]\n"
        "send output[2:1] to 2\n"
        "recv output[1:1] from 0\n"
        "send output[1:1] to 2\n"
        "recv output[0:1] from 0");
  for (std::size_t i = 1; i < ring[1].steps().size(); ++i) {
    CHECK(ring[1].dependencies(i).size() == 1);
    CHECK(ring[1].dependencies(i)[0] == i - 1);
  }
  CHECK(ring[1].steps()[9].round == 7);
  // All ranks send first: a thread block does one thing after another.
  CHECK(flaws(ring) == "deadlock");
  CHECK(flaws(ring, 1) == "");
  CHECK(flaws(parse_msccl(replaced(text, R"(type="rrcs")", R"(type="rrc")"), "file"), 1) ==
        "unmatched");
  CHECK(flaws(parse_msccl(replaced(text, R"(type="rrs" srcbuf="i" srcoff="2")",
                                   R"(type="rrs" srcbuf="i" srcoff="1")"),
                          "file"),
              1) == "contribution");
}

TEST_CASE(
    "MSCCL: an algorithm that needs buffers is one for any transport in the order of its data") {
  std::vector<Schedule> ring;
  for (const Schedule& s : parse_msccl(sample("fused_ring.xml"), "file")) {
    ring.emplace_back(s.header(), std::vector<Step>(s.steps().begin(), s.steps().end()),
                      Regions(s.regions().begin(), s.regions().end()));
  }
  CHECK(flaws(ring) == "");
  const Algorithm algorithm = algorithm_of(ring);
  for (const std::int64_t count : {3, 30}) {
    for (const bool in_place : {false, true}) {
      for (const std::int64_t segment : {0, 1, 4}) {
        const auto problems =
            support::problems(support::problem(Collective::all_reduce, 3, 0, count, in_place));
        const Proof proof = verify(algorithm, problems, segment);
        CAPTURE(count);
        CAPTURE(in_place);
        CAPTURE(segment);
        CHECK((proof.holds() ? "" : proof.findings[0].sentence) == "");
      }
    }
  }
}

TEST_CASE("MSCCL: in place, and both") {
  const std::string both = replaced(sample("fused_ring.xml"), R"(inplace="0")", R"(inplace="1")");
  CHECK(!parse_msccl(both, "file")[0].header().in_place);
  const std::vector<Schedule> in_place = parse_msccl(both, "file", {1, true});
  CHECK(in_place[2].header().in_place);
  CHECK(in_place[2].header().input == 0);
  CHECK(print(in_place[0], 0) == "send output[0:1] to 1");
  CHECK(flaws(in_place, 1) == "");
  CHECK(parse_msccl(replaced(both, R"(outofplace="1")", R"(outofplace="0")"), "file")[0]
            .header()
            .in_place);
  CHECK_THROWS_AS(parse_msccl(sample("fused_ring.xml"), "file", {1, true}), Error);
}

TEST_CASE("MSCCL: steps that wait for other thread blocks, and nops between") {
  const std::string text =
      "<algo name='n' ngpus='2' coll='broadcast'>\n"
      "<gpu id='1' i_chunks='0' o_chunks='1' s_chunks='2'>\n"
      "<tb id='0' send='-1' recv='-1' chan='0'>\n"
      "<step s='0' type='nop' depid='1' deps='0' hasdep='0'/>\n"
      "<step s='1' type='nop' depid='2' deps='0' hasdep='1'/>\n"
      "<step s='2' type='cpy' srcbuf='s' srcoff='1' dstbuf='o' dstoff='0' cnt='1' depid='-1' "
      "deps='-1' hasdep='1'/>\n"
      "</tb><tb id='1' send='-1' recv='0' chan='31'>\n"
      "<step s='0' type='r' srcbuf='s' srcoff='0' dstbuf='s' dstoff='0' cnt='1' depid='-1' "
      "deps='-1' hasdep='1'/>\n"
      "</tb><tb id='2' send='-1' recv='0' chan='3'>\n"
      "<step s='0' type='r' srcbuf='s' srcoff='0' dstbuf='s' dstoff='1' cnt='1' depid='-1' "
      "deps='-1' hasdep='1'/>\n"
      "</tb><tb id='3' send='-1' recv='-1' chan='-1'>\n"
      "<step s='0' type='cpy' srcbuf='s' srcoff='1' dstbuf='s' dstoff='0' cnt='1' depid='0' "
      "deps='1' hasdep='0'/>\n"
      "</tb></gpu>\n"
      "<gpu id='0' i_chunks='1' o_chunks='0' s_chunks='0'>\n"
      "<tb id='0' send='1' recv='-1' chan='31'>\n"
      "<step s='0' type='s' srcbuf='i' srcoff='0' dstbuf='i' dstoff='0' cnt='1' depid='-1' "
      "deps='-1' hasdep='0'/>\n"
      "</tb><tb id='1' send='1' recv='-1' chan='3'>\n"
      "<step s='0' type='s' srcbuf='i' srcoff='0' dstbuf='i' dstoff='0' cnt='1' depid='-1' "
      "deps='-1' hasdep='0'/>\n"
      "</tb></gpu></algo>\n";
  const std::vector<Schedule> read = parse_msccl(text, "file");
  CHECK(support::steps(read[1]) ==
        "recv scratch[0:1] from 0\nrecv scratch[1:1] from 0\n"
        "copy output[0:1] = scratch[1:1]\ncopy scratch[0:1] = scratch[1:1]");
  for (const std::size_t i : {2, 3}) {  // both wait for both receives
    const auto after = read[1].dependencies(i);
    CHECK(std::vector<std::uint32_t>(after.begin(), after.end()) ==
          std::vector<std::uint32_t>{0, 1});
  }
  CHECK(read[1].lanes() == 32);
  CHECK(flaws(read) == "");
  // A race of the file is found: the last copy no longer waits for the receive that it overwrites.
  CHECK(flaws(parse_msccl(replaced(text,
                                   "<step s='0' type='cpy' srcbuf='s' srcoff='1' dstbuf='s' "
                                   "dstoff='0' cnt='1' depid='0' deps='1'",
                                   "<step s='0' type='cpy' srcbuf='s' srcoff='1' dstbuf='s' "
                                   "dstoff='0' cnt='1' depid='2' deps='0'"),
                          "file")) == "hazard");
  CHECK(msccl_refused(replaced(text, "type='nop' depid='1' deps='0' hasdep='0'",
                               "type='nop' depid='0' deps='2' hasdep='0'")) ==
        "file:4: expected steps that do not wait for themselves, found a circle of depid and deps");
}

TEST_CASE("MSCCL: a wrong file is refused in one sentence") {
  const std::string good = sample("fused_ring.xml");
  const auto wrong = [&](std::string_view from, std::string_view to) {
    return msccl_refused(replaced(good, from, to));
  };
  CHECK(msccl_refused("") == "file:1: expected XML, found no element found");
  CHECK(msccl_refused("hello") == "file:1: expected XML, found syntax error");
  CHECK(wrong("</gpu>", "</tb>") == "file:11: expected XML, found mismatched tag");
  CHECK(msccl_refused("<gpu/>") == "file:1: expected <algo>, found <gpu>");
  CHECK(wrong("<gpu id=\"1\"", "<tb id=\"1\"") == "file:12: expected <gpu>, found <tb>");
  CHECK(wrong(R"(ngpus="3")", R"(ngpus="4")") == "file:30: expected <gpu id=\"3\">, found none");
  CHECK(wrong(R"(ngpus="3" )", "") == "file:2: expected the attribute ngpus of <algo>, found none");
  CHECK(wrong(R"(ngpus="3")", R"(ngpus="three")") ==
        "file:2: expected ngpus of <algo> from 1 to 4096, found \"three\"");
  CHECK(wrong("allreduce", "allsum") ==
        "file:2: expected coll to be one of broadcast, reduce, allreduce, allgather, "
        "reduce_scatter, reducescatter, alltoall, gather, scatter, scan, exscan, found \"allsum\"");
  CHECK(wrong(R"(outofplace="1")", R"(outofplace="0")") ==
        "file:2: expected inplace or outofplace to be 1, found both 0");
  CHECK(wrong(R"(gpu id="1")", R"(gpu id="0")") ==
        "file:12: expected one <gpu id=\"0\">, found a second one");
  CHECK(wrong(R"(tb id="0")", R"(tb id="1")") == "file:4: expected <tb id=\"0\">, found id=\"1\"");
  CHECK(wrong(R"(send="1")", R"(send="3")") ==
        "file:4: expected send of <tb> from -1 to 2, found \"3\"");
  CHECK(wrong(R"(send="1")", R"(send="0")") ==
        "file:4: expected another GPU as peer, found GPU 0 itself");
  CHECK(wrong(R"(send="1")", R"(send="-1")") ==
        "file:5: expected a thread block with a peer in send, found none");
  CHECK(wrong(R"(recv="2")", R"(recv="-1")") ==
        "file:6: expected a thread block with a peer in recv, found none");
  CHECK(wrong(R"(chan="0")", R"(chan="256")") ==
        "file:4: expected chan of <tb> from 0 to 255, found \"256\"");
  CHECK(wrong(R"(chan="0")", R"(chan="-1")") ==
        "file:4: expected chan of <tb> from 0 to 255, found \"-1\"");
  CHECK(wrong(R"(step s="1")", R"(step s="2")") == "file:6: expected step s=\"1\", found s=\"2\"");
  CHECK(wrong(R"(type="rrs")", R"(type="rss")") ==
        "file:6: expected type to be one of nop, s, r, rcs, rrs, rrc, rrcs, re, cpy, found "
        "\"rss\"");
  CHECK(wrong(R"(srcbuf="i")", R"(srcbuf="x")") ==
        "file:5: expected srcbuf to be i, o or s, found \"x\"");
  CHECK(wrong(R"(srcoff="0")", R"(srcoff="3")") ==
        "file:5: expected chunks of \"i\" from 0 to 2, found 3");
  CHECK(wrong(R"(srcoff="0" dstbuf="o" dstoff="0" cnt="1")",
              R"(srcoff="1" dstbuf="o" dstoff="0" cnt="3")") ==
        "file:5: expected chunks of \"i\" from 0 to 2, found 1 to 3");
  CHECK(wrong(R"(cnt="1")", R"(cnt="0")") ==
        "file:5: expected cnt of <step> from 1 to 2147483647, found \"0\"");
  CHECK(wrong(R"(depid="-1")", R"(depid="7")") ==
        "file:5: expected a thread block 7 of this GPU, as this step waits for it (depid, deps), "
        "found none");
  CHECK(wrong(R"(depid="-1" deps="-1")", R"(depid="0" deps="5")") ==
        "file:5: expected a step 5 of thread block 0, as this step waits for it (depid, deps), "
        "found none");
  CHECK(wrong(R"(depid="-1" deps="-1")", R"(depid="0" deps="4")") ==
        "file:9: expected hasdep=\"1\", as the step in line 5 waits for this one, found \"0\"");
  CHECK(
      wrong("    </tb>\n", "    </tb>\n    <tb id=\"1\" send=\"1\" recv=\"-1\" chan=\"0\"/>\n") ==
      "file:11: expected one thread block that sends to GPU 1 on channel 0, found thread blocks 0 "
      "and 1");
}

TEST_CASE("MSCCL, GOAL: few lines do not imply waits without end") {
  std::string steps, nops, goal = "num_ranks 1\nrank 0 {\nb0: calc 1\n";
  for (int i = 0; i < 5000; ++i) {
    const auto step = [i](const std::string& attributes) {
      return "<step s=\"" + std::to_string(i) + "\" " + attributes + "/>";
    };
    steps += step(R"(type="re" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" )"
                  R"(deps="-1" hasdep="1")");
    nops += step("type=\"nop\" depid=\"0\" deps=\"" + std::to_string(i) + "\" hasdep=\"0\"");
    goal += "a" + std::to_string(i) + ": calc 1\nb0 requires a" + std::to_string(i) + "\n";
  }
  CHECK(msccl_refused(R"(<algo coll="allreduce" ngpus="1" inplace="1"><gpu id="0" i_chunks="2" )"
                      R"(o_chunks="0" s_chunks="0"><tb id="0" send="-1" recv="-1" chan="0">)" +
                      steps + R"(</tb><tb id="1" send="-1" recv="-1" chan="1">)" + nops +
                      "</tb></gpu></algo>") ==
        "file:1: expected steps of a GPU that wait for at most 4194304 in all, found more");
  for (int i = 1; i < 5000; ++i) {
    const std::string own = "b" + std::to_string(i);
    goal += own + ": calc 1\n" + own + " irequires b" + std::to_string(i - 1) + "\n";
  }
  CHECK_MESSAGE(
      goal_refused(goal + "}\n")
          .ends_with(": expected operations of a rank that wait for at most 4194304 in all, found "
                     "more"),
      goal_refused(goal + "}\n"));
}

TEST_CASE("GOAL: what is written is read back, and what is read is written") {
  for_each_set([](const std::vector<Schedule>& schedules) {
    const std::vector<Schedule> read = parse_goal(goal_of(schedules), "file");
    REQUIRE(read.size() == schedules.size());
    CHECK(flaws(read) == "");
    for (std::size_t r = 0; r < read.size(); ++r) {
      CHECK(read[r].sent() == schedules[r].sent());
      CHECK(read[r].messages() == schedules[r].messages());
      CHECK(read[r].steps().size() == schedules[r].steps().size());
    }
    CHECK(parse_goal(goal_of(read), "file") == read);
  });
}

TEST_CASE("GOAL: tags, comments, labels and operations that begin together") {
  const std::string text = sample("overtaking.goal");
  const std::vector<Schedule> read = parse_goal(text, "file");
  CHECK(support::steps(read[0]) ==
        "compute 1000 other calc\nsend scratch[0:16] to 1\nsend scratch[0:8] to 1\n"
        "recv scratch[16:8] from 1");
  CHECK(support::steps(read[1]) ==
        "recv scratch[8:8] from 0\nrecv scratch[16:16] from 0\ncompute 500 other calc\n"
        "send scratch[0:8] to 0");
  CHECK(read[0].steps()[1].lane != read[0].steps()[2].lane);
  CHECK(read[1].steps()[0].lane == read[0].steps()[2].lane);
  CHECK(read[1].steps()[1].lane == read[0].steps()[1].lane);
  CHECK(read[0].dependencies(1).size() == 1);
  CHECK(read[1].dependencies(3)[0] == 1);
  CHECK(read[1].dependencies(2).empty());  // along with a receive that waits for nothing
  CHECK(flaws(read) == "");
  CHECK(parse_goal(goal_of(read), "file") == read);

  // Whoever begins along with an operation waits for all that it waits for.
  const std::string along = replaced(text, "answer requires late", "answer irequires work") + "";
  const auto begun = parse_goal(
      replaced(along, "work irequires early", "work requires late\nwork requires early"), "file");
  CHECK(begun[1].dependencies(3).size() == 2);
  // What is required may stand below; messages of no bytes have one.
  const auto below =
      parse_goal("num_ranks 1\nrank 0 {\na: calc 1\nb: calc 2\na requires b\n}\n", "file");
  CHECK(below[0].computations()[0].ns == 2);
  const auto empty =
      parse_goal("num_ranks 2\nrank 0 {\nsend 0b to 1\n}\nrank 1 {\nrecv 0b from 0\n}\n", "file");
  CHECK(empty[0].sent() == 1);
  CHECK(flaws(parse_goal(replaced(text, "recv 8b from 0 tag 8", "recv 8b from 0 tag 9"), "file")) !=
        "");
}

TEST_CASE("GOAL: a wrong file is refused in one sentence") {
  const auto wrong = [](const std::string& operations) {
    return goal_refused("num_ranks 2\nrank 1 {\n}\nrank 0 {\n" + operations + "\n}\n");
  };
  CHECK(goal_refused("") == "file:1: expected \"num_ranks N\", found the end of the text");
  CHECK(goal_refused("rank 0 {") == "file:1: expected \"num_ranks N\", found \"rank\"");
  CHECK(goal_refused("num_ranks 0") ==
        "file:1: expected a number of ranks from 1 to 1048576, found \"0\"");
  CHECK(goal_refused("num_ranks 2\nrank 2 {\n}") ==
        "file:2: expected a rank from 0 to 1, found \"2\"");
  CHECK(goal_refused("num_ranks 2\nrank 0 {\n}") ==
        "file:4: expected \"rank 1 {\", found the end of the text");
  CHECK(goal_refused("num_ranks 1\nrank 0 {\n}\nrank 0 {\n}") ==
        "file:4: expected each rank once, found rank 0 twice");
  CHECK(goal_refused("num_ranks 1\nrank 0 {\ncalc 1") ==
        "file:4: expected \"}\", found the end of the text");
  CHECK(goal_refused("num_ranks 1\nranks 0 {") == "file:2: expected \"rank R {\", found \"ranks\"");
  CHECK(wrong("send 8 to 1") == "file:5: expected bytes such as 8b, found \"to\"");
  CHECK(wrong("send 8b from 1") == "file:5: expected \"to\", found \"from\"");
  CHECK(wrong("send 8b to 2") == "file:5: expected a rank from 0 to 1, found \"2\"");
  CHECK(wrong("send 8b to 0") == "file:5: expected another rank as peer, found rank 0 itself");
  CHECK(wrong("recv 8b from -1") == "file:5: expected a rank from 0 to 1, found \"-1\"");
  CHECK(wrong("recv 8b from 1 tag x") ==
        "file:5: expected a tag from 0 to 4294967295, found \"x\"");
  CHECK(wrong("calc 1 cpu 1") ==
        "file:5: expected cpu 0, as a rank has one processor and one network card, found cpu 1");
  CHECK(wrong("calc 1 tag 1") ==
        "file:5: expected tag, cpu, nic or the end of the line, found \"tag\"");
  const std::string longest = "calc 4611686018427387903";
  CHECK(wrong(longest) == "accepted");
  CHECK(wrong("calc 4611686018427387904") ==
        "file:5: expected a time in ns from 0 to 4611686018427387903, found "
        "\"4611686018427387904\"");
  CHECK(wrong(longest + "\n" + longest + "\n" + longest) ==
        "file:6: expected computations of all ranks that take at most 4611686018427387903 ns "
        "together, found more");
  CHECK(goal_refused("num_ranks 2\nrank 0 {\n" + longest + "\n}\nrank 1 {\ncalc 1\n}") ==
        "file:6: expected computations of all ranks that take at most 4611686018427387903 ns "
        "together, found more");
  CHECK(wrong("a: wait 1") == "file:5: expected send, recv or calc, found \"wait\"");
  CHECK(wrong("a calc 1") ==
        "file:5: expected \":\", \"requires\" or \"irequires\" after a label, found \"calc\"");
  CHECK(wrong("a: calc 1\na: calc 1") == "file:6: expected labels that differ, found \"a\"");
  CHECK(wrong("a: calc 1\na requires b") ==
        "file:6: expected the label of a line above, found \"b\"");
  CHECK(wrong("a: calc 1\nb: calc 1\na requires b\nb irequires a") ==
        "file:5: expected operations that do not wait for themselves, found a circle of requires");
}

TEST_CASE("GOAL: tags differ for schedules with many lanes, and lanes are as few as needed") {
  std::string text = "baton-schedule 1\ncollective broadcast\nsize 2\ninput 0\noutput 24\n";
  std::string sends, receives;
  for (int i = 0; i < 24; ++i) {  // all lanes of one message, and two of lane 0
    const std::string region =
        " output[" + std::to_string(i) + ":1] lane " + std::to_string(i % 12);
    sends += "send 1" + region + "\n";
    receives = "recv 0" + region + "\n" + receives;
  }
  for (int i = 0; i < 12; ++i) {  // receives of a lane in order
    const std::string a = " output[" + std::to_string(i) + ":1] lane " + std::to_string(i),
                      b = " output[" + std::to_string(i + 12) + ":1] lane " + std::to_string(i);
    receives = replaced(receives, "recv 0" + a, "recv 0 swap");
    receives = replaced(receives, "recv 0" + b, "recv 0" + a);
    receives = replaced(receives, "recv 0 swap", "recv 0" + b);
  }
  const auto schedules = parse(text + "rank 0\n" + sends + "rank 1\n" + receives);
  REQUIRE(flaws(schedules) == "");
  const auto read = parse_goal(goal_of(schedules), "file");
  CHECK(flaws(read) == "");
  CHECK(read[0].lanes() == 12);
  // Every tag once: with 8 lanes' tags, lane 8 would be taken for the next message of lane 0.
  const std::string written = goal_of(schedules);
  for (int i = 0; i < 24; ++i) {
    const std::string tag = " to 1 tag " + std::to_string(i) + "\n";
    CHECK(written.find(tag) != std::string::npos);
    CHECK(written.find(tag) == written.rfind(tag));
  }
}
