// An algorithm of one's own, outside the library: registered, proved, and run beside the library's.
//
//   own_algorithm                          proves it for 1 to 16 ranks and runs it on 4
//   own_algorithm there_and_back.txt       and compares it with the same algorithm written as text
//
// As a shared object it brings its algorithm to the program `baton`:
//
//   baton verify --registry own_algorithm.so --algorithm there_and_back
//   baton tune all_reduce --registry own_algorithm.so --output table.txt

#include <baton/baton.hpp>
#include <baton/own_algorithms.hpp>
#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <vector>

namespace {

/// There and back: partial sums go from the last rank to the first, the result goes back the same
/// way.
///
/// Rounds   2(P-1); with messages cut into segments, a pipeline.
/// Sent     n by the first and the last rank, 2n by the others.
/// Domain   any P >= 1, any count.
/// Order    rank order, at rank 0 only, so ranks agree bit for bit.
baton::Schedule there_and_back(const baton::Problem& p) {
  baton::ScheduleBuilder chain(p);
  const baton::Region all = chain.work();
  const int before = p.rank - 1, after = p.rank + 1;
  if (after < p.size) chain.recv_reduce(after, all);  // there: what arrives stands on the right
  if (before >= 0) chain.send(before, all);
  if (before < 0) chain.reduced(all);
  chain.end_round();
  if (before >= 0) chain.recv(before, all);  // and back
  if (after < p.size) chain.send(after, all);
  return chain.build("there_and_back");
}

baton::Cost there_and_back_cost(const baton::Problem& p) {
  const int neighbours = (p.rank > 0) + (p.rank + 1 < p.size);
  baton::Cost cost;
  cost.rounds = 2 * (p.size - 1);
  cost.sent = cost.received = neighbours * p.count;
  cost.folded = p.rank + 1 < p.size ? p.count : 0;
  return cost;
}

baton::Algorithm algorithm() {
  baton::Algorithm own;
  own.collective = baton::Collective::all_reduce;
  own.name = "there_and_back";
  own.generate = there_and_back;
  own.cost = there_and_back_cost;
  own.ordered = true;
  own.rounds = "2(P-1)";
  own.sent = "2n";
  own.source = "this example";
  return own;
}

std::vector<baton::Problem> problems(int size, std::int64_t count) {
  baton::Problem problem;
  problem.collective = baton::Collective::all_reduce;
  problem.size = size;
  problem.count = count;
  problem.commutative = false;  // the strictest: contributions fold in rank order
  std::vector<baton::Problem> all;
  for (int r = 0; r < size; ++r) all.push_back(problem.at(r));
  return all;
}

bool prove() {
  for (int size = 1; size <= 16; ++size) {
    for (const std::int64_t segment : {0, 2}) {  // whole messages, and pieces of two elements
      const baton::Proof proof = baton::verify(algorithm(), problems(size, 5), segment);
      for (const auto& finding : proof.findings) std::puts(finding.sentence.c_str());
      if (!proof.holds()) return false;
    }
  }
  std::puts("proved for 1 to 16 ranks");
  return true;
}

void run() {
  auto registry = std::make_shared<baton::Registry>(baton::Registry::builtin());
  baton_register(*registry);
  baton::run_threads(4, [&](std::unique_ptr<baton::Transport> transport) {
    baton::Options options;
    options.registry = registry;
    baton::Communicator world(std::move(transport), options);

    std::vector<double> data(1000, world.rank() + 1.0), theirs = data;
    world.all_reduce(data, baton::sum, {"there_and_back", 1024});  // pieces of 1,024 bytes
    world.all_reduce(theirs, baton::sum, {"ring"});
    if (data != theirs) throw std::runtime_error("expected the ring's result, found another");
    if (world.rank() == 0) std::printf("ran on 4 ranks: %g\n", data[999]);
  });
}

/// Whether the text describes what the generator generates.
bool same_as(const char* file) {
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  const std::vector<baton::Schedule> written = baton::parse(text.str(), file);
  const auto size = static_cast<int>(written.size());
  for (const baton::Problem& problem : problems(size, written[0].header().output)) {
    const auto rank = static_cast<std::size_t>(problem.rank);
    if (const auto found = baton::difference(written[rank], there_and_back(problem))) {
      std::printf("rank %d: %s\n", problem.rank, found->c_str());
      return false;
    }
  }
  std::printf("equal to %s\n", file);
  return true;
}

}  // namespace

void baton_register(baton::Registry& registry) { registry.add(algorithm()); }

int main(int argc, char** argv) try {
  if (!prove()) return 1;
  run();
  return argc < 2 || same_as(argv[1]) ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 2;
}
