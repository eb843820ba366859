#include <doctest/doctest.h>
#include <fmt/core.h>
#include <baton/error.hpp>
#include <baton/schedule/passes.hpp>
#include <baton/schedule/text.hpp>
#include <baton/verify.hpp>

#include <map>
#include <random>
#include <string>

#include "interpreter.hpp"
#include "mutations.hpp"
#include "support/sanitizer.hpp"

using namespace baton;

namespace {

/// A correct set of schedules.
struct Original {
  std::string name;
  std::vector<Problem> problems;
  std::vector<Schedule> schedules;
};

std::vector<Original> originals() {
  std::vector<Original> all;
  const Registry registry = Registry::builtin();
  for (const Algorithm& algorithm : registry.all()) {
    for (const int size : {2, 3, 4, 5, 7, 8}) {
      for (int variant = 0; variant < 6; ++variant) {
        Problem p;
        p.collective = algorithm.collective;
        p.size = size;
        p.in_place = variant % 2 == 1;
        p.count = std::array{1, 3, size}[static_cast<std::size_t>(variant / 2)];
        p.commutative = !algorithm.ordered || variant % 2 == 0;
        p.average = reducing(p.collective) && variant == 1;
        p.blocks = algorithm.pipelined ? 1 + variant % 3 : 1;
        if (rooted(p.collective)) p.root = variant % size;
        if (p.collective == Collective::barrier) p.count = 1;
        if (variant == 4 && algorithm.uneven && p.collective != Collective::all_to_all) {
          std::vector<std::int64_t> counts(static_cast<std::size_t>(size));
          for (int r = 0; r < size; ++r) counts[static_cast<std::size_t>(r)] = (r + 1) % 3;
          p.input_blocks = p.output_blocks = Blocks::packed(counts);
        }
        if (algorithm.hierarchical) {
          std::vector<int> hosts;
          for (int r = 0; r < size; ++r) {
            hosts.push_back(variant % 3 == 0 ? r / 2 : variant % 3 == 1 ? r % 2 : r * r % 3);
          }
          p.hosts = host_grouping(hosts);
        }
        if (!refusal(algorithm, p).empty()) continue;
        Original original{fmt::format("{} {}, {} ranks, variant {}", name(algorithm.collective),
                                      algorithm.name, size, variant),
                          {},
                          {}};
        for (int r = 0; r < size; ++r) {
          original.problems.push_back(p.at(r));
          Schedule schedule = algorithm.generate(original.problems.back());
          if (variant == 5) schedule = segmented(schedule, 2);
          original.schedules.push_back(std::move(schedule));
        }
        all.push_back(std::move(original));
      }
    }
  }
  return all;
}

std::string print(const std::set<Flaw>& flaws) {
  std::string text;
  for (const Flaw flaw : flaws) text += (text.empty() ? "" : ", ") + std::string(name(flaw));
  return text.empty() ? "nothing" : text;
}

std::set<Flaw> flaws_of(const Proof& proof) {
  std::set<Flaw> flaws;
  for (const Finding& finding : proof.findings) flaws.insert(finding.flaw);
  return flaws;
}

/// Breaks schedules at random and demands the same flaws of interpreter and verifier, and that each
/// of `reasons` comes up.
void agree_on_mutants(const std::vector<Original>& from, interpreter::Run run, int wanted,
                      const std::vector<Flaw>& reasons) {
  const bool fused = run == interpreter::Run::fused;
  std::mt19937 random(20240607);
  std::map<std::string, std::map<std::string, int>> table;  // mutation, the interpreter's verdict
  std::map<Flaw, int> seen;
  int mutants = 0, accepted = 0, disagreements = 0;
  while (mutants < wanted) {
    const Original& original = from[random() % from.size()];
    std::vector<Schedule> schedules = original.schedules;
    std::string mutation;
    if (fused && random() % 4 == 0) {
      if (move_fused_group(schedules, random)) mutation = "fused group cut or joined";
    } else {
      mutation = mutate(schedules, random);
    }
    if (random() % 4 == 0 && !mutate(schedules, random).empty()) mutation = "two mutations";
    if (mutation.empty() || schedules == original.schedules) continue;
    ++mutants;
    const std::set<Flaw> found = interpreter::judge(schedules, original.problems, run);
    const Proof proof =
        fused ? verify_fused(schedules, original.problems) : verify(schedules, original.problems);
    const std::set<Flaw> proved = flaws_of(proof);

    ++table[mutation][print(found)];
    for (const Flaw flaw : found) ++seen[flaw];
    accepted += found.empty();
    if (found == proved) continue;
    if (++disagreements > 10) break;
    std::string text;
    for (const Schedule& schedule : schedules) text += baton::print(schedule);
    FAIL_CHECK(original.name << ": " << mutation << ": interpreter: " << print(found)
                             << "; verifier: " << print(proved) << "\n"
                             << (proof.findings.empty() ? "" : proof.findings[0].sentence + "\n")
                             << text);
  }
  CHECK(disagreements == 0);

  // Both verdicts, and every reason, must have come up.
  CHECK(accepted > (support::under_sanitizer ? 10 : 100));
  for (const Flaw flaw : reasons) {
    CAPTURE(name(flaw));
    CHECK(seen[flaw] >= (support::under_sanitizer ? 1 : 20));
  }
  std::string summary;
  for (const auto& [mutation, verdicts] : table) {
    summary += "\n" + mutation + ":";
    for (const auto& [verdict, n] : verdicts) summary += fmt::format(" {} {};", n, verdict);
  }
  MESSAGE(mutants << " mutants, " << accepted << " of them correct" << summary);
}

void check_both(const std::vector<Schedule>& schedules, const std::set<Flaw>& expected) {
  const std::vector<Problem> problems = problems_of(schedules);
  CHECK(print(interpreter::judge(schedules, problems)) == print(expected));
  CHECK(print(flaws_of(verify(schedules, problems))) == print(expected));
}

}  // namespace

TEST_CASE("interpreter and verifier accept every algorithm") {
  for (const Original& original : originals()) {
    CAPTURE(original.name);
    CHECK(print(interpreter::judge(original.schedules, original.problems)) == "nothing");
    const Proof proof = verify(original.schedules, original.problems);
    CHECK((proof.holds() ? "" : proof.findings[0].sentence) == "");
  }
}

TEST_CASE("interpreter and verifier agree on mutants") {
  agree_on_mutants(originals(), interpreter::Run::steps, support::under_sanitizer ? 2000 : 20000,
                   {Flaw::unmatched, Flaw::deadlock, Flaw::hazard, Flaw::bounds, Flaw::undefined,
                    Flaw::contribution, Flaw::order, Flaw::clobbered, Flaw::disagree});
}

TEST_CASE("interpreter and verifier accept every algorithm in fused groups, and agree on mutants") {
  std::vector<Original> all = originals();
  for (Original& original : all) {
    original.schedules = fused(original.schedules, original.problems[0].in_place ? 1 : 0);
    CAPTURE(original.name);
    const auto run = interpreter::Run::fused;
    CHECK(print(interpreter::judge(original.schedules, original.problems, run)) == "nothing");
    CHECK(print(flaws_of(verify_fused(original.schedules, original.problems))) == "nothing");
  }
  agree_on_mutants(
      all, interpreter::Run::fused, support::under_sanitizer ? 2000 : 10000,
      {Flaw::unmatched, Flaw::deadlock, Flaw::hazard, Flaw::bounds, Flaw::undefined,
       Flaw::contribution, Flaw::order, Flaw::clobbered, Flaw::disagree, Flaw::fused_group});
}

TEST_CASE("the window alone can be the cause of a deadlock") {
  // Rank 1 receives the first message from 0 when it has passed on the second.
  const std::vector<Schedule> schedules = parse(R"(baton-schedule 1
collective all_reduce
size 3
input 4
output 4
rank 0
  send 1 input[0:1]
  send 1 input[1:1]
rank 1
  recv 2 output[0:1]
  recv 0 output[1:1] after 0
  recv 0 output[2:1]
  send 2 output[2:1]
rank 2
  recv 1 output[0:1]
  send 1 output[0:1]
)");
  check_both(schedules, {Flaw::deadlock});
}

TEST_CASE("an order that only messages keep is none") {
  // Step 3 of rank 0 comes after step 0, but only because rank 1 answers.
  const std::vector<Schedule> schedules = parse(R"(baton-schedule 1
collective all_reduce
size 2
input 2
output 2
dependencies listed
rank 0
  copy scratch[0:1] = input[0:1]
  send 1 input[1:1] after 0
  recv 1 output[1:1]
  copy output[0:1] = scratch[0:1] after 2
rank 1
  recv 0 output[0:1]
  send 0 output[0:1] after 0
)");
  check_both(schedules, {Flaw::hazard});
}
