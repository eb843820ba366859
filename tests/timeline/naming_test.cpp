#include <doctest/doctest.h>

#include <map>
#include <set>

#include "baton/schedule/passes.hpp"
#include "baton/schedule/text.hpp"
#include "baton/timeline.hpp"
#include "support/programs.hpp"
#include "timelines.hpp"

using namespace baton;
using support::rounds;

namespace {

/// "0>1 c0" of each message, in the order of messages_of().
std::vector<std::string> messages(const Timeline& timeline) {
  std::vector<std::string> texts;
  for (const TimedMessage& m : messages_of(timeline)) {
    const Event& send = timeline.events[m.send];
    CHECK(send.chunk == timeline.events[m.recv].chunk);
    const ChunkName& name = timeline.chunks.at(send.chunk);
    texts.push_back(std::to_string(send.rank) + "->" + std::to_string(send.peer) + " " + name.text +
                    (name.reduced ? " +=" : ""));
  }
  return texts;
}

/// Those of one rank.
std::vector<std::string> messages_from(const Timeline& timeline, int rank) {
  std::vector<std::string> texts;
  for (std::string& text : messages(timeline)) {
    if (text.starts_with(std::to_string(rank) + "->")) texts.push_back(std::move(text));
  }
  return texts;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("a ring all-reduce passes numbered chunks, folded on the first way round") {
  CHECK(messages(rounds(Collective::all_reduce, "ring", 3, 7)) ==
        Texts{"0->1 c0 +=", "0->1 c2 +=", "0->1 c1", "0->1 c0", "1->2 c1 +=", "1->2 c0 +=",
              "1->2 c2", "1->2 c1", "2->0 c2 +=", "2->0 c1 +=", "2->0 c0", "2->0 c2"});
}

TEST_CASE("messages of the whole vector carry all") {
  CHECK(messages(rounds(Collective::broadcast, "binomial", 4, 5)) ==
        Texts{"0->2 all", "0->1 all", "2->3 all"});
  CHECK(messages(rounds(Collective::all_reduce, "recursive_doubling", 2, 5)) ==
        Texts{"0->1 all +=", "1->0 all +="});
}

TEST_CASE("gathering names by whose contribution it is, even or not, in place or not") {
  const Texts ring{"0->1 c0", "0->1 c2", "1->2 c1", "1->2 c0", "2->0 c2", "2->0 c1"};
  CHECK(messages(rounds(Collective::all_gather, "ring", 3, 2)) == ring);
  CHECK(messages(rounds(Collective::all_gather, "ring", 3, 2, {.in_place = true})) == ring);
  CHECK(messages(rounds(Collective::all_gather, "ring", 3, 0, {.counts = {3, 1, 5}})) == ring);
  CHECK(messages(rounds(Collective::all_gather, "ring", 3, 4, {.rows = 2})) == ring);
  CHECK(messages(rounds(Collective::gather, "binomial", 4, 2)) ==
        Texts{"1->0 c1", "2->0 c2-c3", "3->2 c3"});
  CHECK(messages(rounds(Collective::gather, "binomial", 4, 2, {.in_place = true})) ==
        Texts{"1->0 c1", "2->0 c2-c3", "3->2 c3"});
}

TEST_CASE("scattering names by whom it is for") {
  CHECK(messages(rounds(Collective::scatter, "binomial", 4, 2)) ==
        Texts{"0->2 c2-c3", "0->1 c1", "2->3 c3"});
  const Texts ring{
      "0->1 c2 +=", "0->1 c1 +=", "1->2 c0 +=", "1->2 c2 +=", "2->0 c1 +=", "2->0 c0 +="};
  CHECK(messages(rounds(Collective::reduce_scatter, "ring", 3, 2)) == ring);
  CHECK(messages(rounds(Collective::reduce_scatter, "ring", 3, 2, {.in_place = true})) == ring);
  CHECK(messages(rounds(Collective::reduce_scatter, "ring", 3, 0, {.counts = {3, 1, 5}})) == ring);
}

TEST_CASE("an all-to-all names from whom to whom, whatever the layout and the way") {
  const Texts direct{"0->1 0>1", "0->2 0>2", "1->2 1>2", "1->0 1>0", "2->0 2>0", "2->1 2>1"};
  CHECK(messages(rounds(Collective::all_to_all, "spread_out", 3, 4)) == direct);
  CHECK(messages(rounds(Collective::all_to_all, "spread_out", 3, 4, {.in_place = true})) == direct);
  CHECK(messages(rounds(Collective::all_to_all, "spread_out", 3, 4, {.rows = 2})) == direct);
  CHECK(messages_from(rounds(Collective::all_to_all, "bruck", 4, 2), 0) ==
        Texts{"0->1 0>1,0>3", "0->2 0>2,3>2"});
}

TEST_CASE("a segmented message is named by chunk and piece") {
  CHECK(messages_from(rounds(Collective::all_reduce, "ring", 2, 8, {.segment = 2}), 0) ==
        Texts{"0->1 c0.0 +=", "0->1 c0.1 +=", "0->1 c1.0", "0->1 c1.1"});
  CHECK(messages_from(rounds(Collective::broadcast, "chain", 2, 6, {.segment = 2}), 0) ==
        Texts{"0->1 c0", "0->1 c1", "0->1 c2"});
  CHECK(messages_from(rounds(Collective::all_to_all, "spread_out", 2, 4, {.segment = 2}), 1) ==
        Texts{"1->0 1>0.0", "1->0 1>0.1"});
}

TEST_CASE("chunks that are too many to be listed are counted") {
  const Timeline timeline = rounds(Collective::all_to_all, "bruck", 8, 1);
  CHECK(messages_from(timeline, 0)[0] == "0->1 4 blocks");
}

TEST_CASE("a barrier passes tokens") {
  CHECK(messages(rounds(Collective::barrier, "dissemination", 2, 1)) ==
        Texts{"0->1 token", "1->0 token"});
}

TEST_CASE("a schedule that is no correct collective has names too") {
  const Timeline timeline = support::rounds(
      "baton-schedule 1\ncollective all_gather\nsize 2\ninput 1\noutput 2\nscratch 4\n"
      "rank 0\nsend 1 scratch[0:4]\nrank 1\nrecv 0 scratch[0:4]\nsend 0 output[0:1]\n");
  CHECK(messages(timeline) == Texts{"0->1 scratch[0:4]"});
  const Event& lonely = timeline.events.back();
  CHECK(lonely.rank == 1);
  CHECK(timeline.chunks[lonely.chunk].text == "output[0:1]");
}

TEST_CASE("every message of every algorithm is named by chunks, the same in either half") {
  support::for_each_algorithm({2, 3, 4, 5, 8}, [](const Algorithm& algorithm, const Problem& p) {
    for (const std::int64_t segment : {0, 2}) {
      const Timeline timeline =
          rounds(p.collective, algorithm.name, p.size, p.count, {.segment = segment});
      CAPTURE(algorithm.name);
      CAPTURE(p.size);
      for (const std::string& text : messages(timeline)) CHECK(text.find('[') == std::string::npos);
    }
  });
}

TEST_CASE("a program's steps are named and coloured by the computation whose result they carry") {
  const auto program = std::make_shared<const std::vector<Schedule>>(parse(support::two_stages));
  const Timeline timeline = rounds_of(program, 4);
  CHECK(timeline.operations[0].name == "program");
  CHECK(messages(timeline) == Texts{"0->1 0F0", "0->1 0F1", "1->0 1B0", "1->0 1B1"});
  std::map<std::string, int> computations;
  for (const Event& event : timeline.events) {
    const ChunkName& name = timeline.chunks.at(event.chunk);
    CHECK(event.bytes == (event.kind == StepKind::compute ? 0 : 16));
    REQUIRE(name.computation.has_value());
    CHECK(*name.computation ==
          (name.text[1] == 'F' ? ComputationKind::forward : ComputationKind::backward));
    if (event.kind == StepKind::compute) ++computations[name.text];
  }
  CHECK(computations.size() == 8);

  // Through a collective, too.
  const Algorithm ring = Registry::builtin().find(Collective::all_reduce, "ring");
  auto reduced = std::make_shared<std::vector<Schedule>>();
  for (int r = 0; r < 3; ++r) reduced->push_back(support::compute_reduce_compute(ring, 3, r, 6));
  for (const std::string& text : messages(rounds_of(reduced, 4)))
    CHECK(text.find(" loss") != std::string::npos);
}
