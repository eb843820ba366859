/// Runs every collective with every algorithm on 2 to 9 ranks with every fault at every step, again
/// and again, until the time is over. Prints its counts as JSON; a case that did not end as
/// promised goes to standard error at once.
///
/// Usage: soak SECONDS PART PARTS: the subjects whose number is PART modulo PARTS.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "cases.hpp"

using namespace faults;

namespace {

using Clock = std::chrono::steady_clock;

struct Counts {
  std::int64_t cases = 0, happened = 0, right = 0, wrong = 0;
};

class Soak {
 public:
  Soak(Clock::time_point end, std::size_t part, std::size_t parts)
      : end_(end), part_(part), parts_(parts) {}

  /// One round over all cases; false if the time is over.
  bool round(std::uint64_t seed) {
    const std::vector<Subject> all = subjects();
    for (int kind = 0; kind < kinds; ++kind)  // the last has by far the most steps
      for (std::size_t i = part_; i < all.size(); i += parts_)
        for (int size = 2; size <= 9; ++size)
          for (int check = 0; check <= 2; ++check)
            if (!every_step({all[i].collective,
                             all[i].choice,
                             size,
                             check,
                             {static_cast<Kind>(kind), 0, 0, seed}}))
              return false;
    return true;
  }
  void print() const {
    nlohmann::json counts;
    for (const auto& [kind, c] : counts_)
      counts[name(kind)] = {
          {"cases", c.cases}, {"happened", c.happened}, {"right", c.right}, {"wrong", c.wrong}};
    std::puts(counts.dump().c_str());
  }
  bool wrong() const { return wrong_; }

 private:
  bool every_step(Case one) {
    const Kind kind = one.plan.kind;
    if (kind == Kind::corrupted && one.check < 2) return true;  // nobody promises anything
    for (one.plan.rank = 0; one.plan.rank < one.size; ++one.plan.rank)
      for (one.plan.at = 0;; ++one.plan.at) {
        if (Clock::now() > end_) return false;
        const Outcome outcome = run(one);
        if (!outcome.served) return true;
        Counts& counts = counts_[kind];
        ++counts.cases;
        if (outcome.happened) ++counts.happened;
        if (outcome.right) ++counts.right;
        if (!outcome.problem.empty()) {
          ++counts.wrong;
          wrong_ = true;
          std::fprintf(stderr, "%s: %s\n", describe(one).c_str(), outcome.problem.c_str());
        }
        if (kind <= Kind::reordered) return true;  // has no rank and no step
        if (!outcome.happened) break;
      }
    return true;
  }

  const Clock::time_point end_;
  const std::size_t part_, parts_;
  std::map<Kind, Counts> counts_;
  bool wrong_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const auto seconds = std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(std::atof(argv[1])));
  Soak soak(Clock::now() + seconds, static_cast<std::size_t>(std::atoi(argv[2])),
            static_cast<std::size_t>(std::atoi(argv[3])));
  for (std::uint64_t seed = 0; soak.round(seed); ++seed) continue;
  soak.print();
  return soak.wrong() ? 1 : 0;
}
