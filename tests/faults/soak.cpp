/// Runs every collective with every algorithm on 2 to 9 ranks with every fault at every step, in
/// random order, as many cases of each kind of fault, but of ranks that stop a tenth, as each costs
/// the timeout of a second, until the time is over or SIGINT or SIGTERM comes. Prints its counts as
/// JSON; a case that did not end as promised goes to standard error at once.
///
/// Usage: soak SECONDS PART PARTS SEED: the collectives on so many ranks whose number is PART
/// modulo PARTS; PART is from 0 to PARTS - 1.

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "cases.hpp"

using namespace faults;

namespace {

using Clock = std::chrono::steady_clock;

volatile std::sig_atomic_t signalled = 0;

struct Counts {
  std::int64_t cases = 0, happened = 0, right = 0, wrong = 0;
  double seconds = 0;
};

/// All cases of one kind of fault, in random order, one after the other; then again with another
/// seed.
class Walk {
 public:
  Walk(Kind kind, std::size_t part, std::size_t parts, std::uint64_t seed) : seed_(seed) {
    std::size_t number = 0;
    for (const Subject& subject : subjects())
      for (int size = 2; size <= 9; ++size)
        for (int check = kind == Kind::corrupted ? 2 : 0; check <= 2; ++check)  // seen only with 2
          if (number++ % parts == part)
            all_.push_back({subject.collective, subject.choice, size, check, {kind, 0, 0, 0}});
    shuffle();
  }
  const Counts& counts() const { return counts_; }

  void step() {
    Case& one = all_[next_];
    const Clock::time_point begin = Clock::now();
    const Outcome outcome = run(one);
    counts_.seconds += std::chrono::duration<double>(Clock::now() - begin).count();
    if (!outcome.served) return skip();
    ++counts_.cases;
    if (outcome.happened) ++counts_.happened;
    if (outcome.right) ++counts_.right;
    if (!outcome.problem.empty()) {
      ++counts_.wrong;
      std::fprintf(stderr, "%s: %s\n", describe(one).c_str(), outcome.problem.c_str());
    }
    if (one.plan.kind <= Kind::reordered) return skip();  // has no rank and no step
    if (outcome.happened) {
      ++one.plan.at;
    } else {
      one.plan.at = 0;
      if (++one.plan.rank == one.size) skip();
    }
  }

 private:
  void shuffle() {
    for (Case& one : all_) one.plan = {one.plan.kind, 0, 0, seed_};
    std::shuffle(all_.begin(), all_.end(), std::mt19937_64(seed_++));
    next_ = 0;
  }
  void skip() {
    if (++next_ == all_.size()) shuffle();
  }

  std::vector<Case> all_;
  std::size_t next_ = 0;
  std::uint64_t seed_;
  Counts counts_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const int part = std::atoi(argv[2]), parts = std::atoi(argv[3]);
  if (part < 0 || part >= parts) {
    std::fprintf(stderr, "soak: expected a part from 0 to %d, found %s\n", parts - 1, argv[2]);
    return 2;
  }
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, [](int) { signalled = 1; });
  const auto seconds = std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(std::atof(argv[1])));
  const Clock::time_point end = Clock::now() + seconds;
  std::vector<Walk> walks;
  for (int kind = 0; kind < kinds; ++kind)
    walks.emplace_back(static_cast<Kind>(kind), static_cast<std::size_t>(part),
                       static_cast<std::size_t>(parts),
                       static_cast<std::uint64_t>(std::atoll(argv[4])));
  constexpr int rarer = 10;
  for (int round = 0; signalled == 0 && Clock::now() < end; ++round)
    for (int kind = 0; kind < kinds; ++kind)
      if (static_cast<Kind>(kind) != Kind::stopped || round % rarer == 0)
        walks[static_cast<std::size_t>(kind)].step();

  nlohmann::json counts;
  bool wrong = false;
  for (int kind = 0; kind < kinds; ++kind) {
    const Counts& of = walks[static_cast<std::size_t>(kind)].counts();
    counts[name(static_cast<Kind>(kind))] = {{"cases", of.cases},
                                             {"happened", of.happened},
                                             {"right", of.right},
                                             {"wrong", of.wrong},
                                             {"seconds", of.seconds}};
    wrong = wrong || of.wrong != 0;
  }
  std::puts(counts.dump().c_str());
  return wrong ? 1 : 0;
}
