#include "proofs.hpp"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "baton/error.hpp"

namespace baton::cli::verify {

std::vector<const Algorithm*> algorithms_named(const Registry& registry,
                                               const std::vector<Collective>& collectives,
                                               const std::string& name) {
  std::vector<const Algorithm*> found;
  std::vector<std::string> known;
  for (const Algorithm& algorithm : registry.all()) {
    if (std::ranges::find(collectives, algorithm.collective) == collectives.end()) continue;
    if (name.empty() || algorithm.name == name) found.push_back(&algorithm);
    if (std::ranges::find(known, algorithm.name) == known.end()) known.push_back(algorithm.name);
  }
  if (!found.empty()) return found;
  const bool one =
      std::ranges::adjacent_find(collectives, std::not_equal_to<>()) == collectives.end();
  throw Error(ErrorCode::invalid_argument,
              fmt::format("expected an algorithm{} ({}), found \"{}\"",
                          one ? fmt::format(" of {}", baton::name(collectives.at(0))) : "",
                          fmt::join(known, ", "), name));
}

std::vector<ProofTask> proof_tasks(const std::vector<const Algorithm*>& algorithms, int max_ranks,
                                   int ranks) {
  std::vector<ProofTask> tasks;
  for (int P = ranks > 0 ? ranks : max_ranks; P >= (ranks > 0 ? ranks : 1); --P) {
    for (const Algorithm* algorithm : algorithms) tasks.push_back({algorithm, P});
  }
  return tasks;
}

std::vector<proving::SweepResult> prove(
    const std::vector<ProofTask>& tasks, int threads,
    const std::function<void(std::int64_t, const ProofTask&)>& done, proving::Form form) {
  std::vector<proving::SweepResult> results(tasks.size());
  std::atomic<std::size_t> next{0};
  std::int64_t finished = 0;
  std::mutex telling;
  const auto work = [&] {
    for (std::size_t i = next++; i < tasks.size(); i = next++) {
      results[i] = proving::sweep(*tasks[i].algorithm, tasks[i].ranks, form);
      const std::lock_guard lock(telling);
      done(++finished, tasks[i]);
    }
  };
  {
    std::vector<std::jthread> others;
    for (int t = 1; t < threads; ++t) others.emplace_back(work);
    work();
  }
  return results;
}

Json json_of(const std::vector<Finding>& findings) {
  return mapped(findings, [](const Finding& finding) {
    return Json::object({{"flaw", name(finding.flaw)},
                         {"rank", finding.rank},
                         {"step", finding.step},
                         {"sentence", finding.sentence}});
  });
}

std::string text_of(const proving::SweepFinding& finding) {
  std::string where;
  if (finding.rank >= 0) where += fmt::format(" on rank {}", finding.rank);
  if (finding.step >= 0) where += fmt::format(", step {}", finding.step);
  return fmt::format("{}: {}{}: {}", finding.problem, finding.flaw, where, finding.sentence);
}

}  // namespace baton::cli::verify
