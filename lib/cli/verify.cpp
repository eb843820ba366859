#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <thread>

#include "baton/schedule/passes.hpp"
#include "baton/schedule/text.hpp"
#include "baton/verify.hpp"
#include "commands.hpp"
#include "json.hpp"
#include "progress.hpp"
#include "prove.hpp"
#include "text.hpp"
#include "workload.hpp"

namespace baton::cli {
namespace {

std::string failures(std::size_t n) { return counted(static_cast<std::int64_t>(n), "failure"); }

struct VerifyOptions {
  int max_ranks = 64, ranks = 0, threads = 0;
  std::string collective, algorithm, schedule;
  bool fused = false, in_groups = false, json = false, progress = false;
};

constexpr std::size_t shown_findings = 10;  // of one algorithm

std::vector<const Algorithm*> wanted(const Registry& registry, const VerifyOptions& options) {
  std::vector<Collective> collectives;
  for (int c = 0; c < collective_count; ++c) collectives.push_back(static_cast<Collective>(c));
  if (!options.collective.empty()) collectives = {collective_named(options.collective)};
  return algorithms_named(registry, collectives, options.algorithm);
}

/// One algorithm's proofs for all numbers of ranks.
struct Total {
  const Algorithm* algorithm;
  proving::SweepResult result;
};

std::vector<Total> totals(const std::vector<const Algorithm*>& algorithms,
                          const std::vector<ProofTask>& tasks,
                          std::vector<proving::SweepResult> results) {
  std::vector<Total> totals;
  for (const Algorithm* algorithm : algorithms) totals.push_back({algorithm, {}});
  for (std::size_t i = tasks.size(); i-- > 0;) {  // few ranks first
    const auto total = std::ranges::find(totals, tasks[i].algorithm, &Total::algorithm);
    total->result += std::move(results[i]);
  }
  return totals;
}

Json json(const proving::SweepFinding& finding) {
  return Json::object({{"problem", finding.problem},
                       {"flaw", finding.flaw},
                       {"rank", finding.rank},
                       {"step", finding.step},
                       {"sentence", finding.sentence}});
}

Json json(const std::vector<proving::SweepFinding>& findings) {
  std::vector<Json> list;
  for (const proving::SweepFinding& finding : findings) list.push_back(json(finding));
  return Json::array(list);
}

int verify_algorithms(const VerifyOptions& options) {
  const Registry registry = Registry::builtin();
  const auto algorithms = wanted(registry, options);
  const auto tasks = proof_tasks(algorithms, options.max_ranks, options.ranks);
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const int threads = options.threads > 0 ? options.threads : cores;
  Progress progress(static_cast<std::int64_t>(tasks.size()), options.progress);
  const auto show = [&](std::int64_t done, const ProofTask& task) {
    progress.show(done, fmt::format("{} {}, {} ranks", name(task.algorithm->collective),
                                    task.algorithm->name, task.ranks));
  };
  auto results =
      prove(tasks, threads, show, options.fused ? proving::Form::fused : proving::Form::plain);
  progress.clear();
  const auto all = totals(algorithms, tasks, std::move(results));

  const std::string ranks = options.ranks > 0 ? fmt::format("{}", options.ranks)
                                              : fmt::format("1..{}", options.max_ranks);
  proving::SweepResult sum;
  std::vector<Json> rows;
  if (!options.json) {
    fmt::print("# {:<14} {:<22} {:>8} {:>9} {:>12} {:>12} {:>8}\n", "collective", "algorithm",
               "ranks", "proofs", "steps", "messages", "failures");
  }
  for (const auto& [algorithm, result] : all) {
    sum += result;
    if (options.json) {
      rows.push_back(Json::object({{"collective", name(algorithm->collective)},
                                   {"algorithm", algorithm->name},
                                   {"proofs", result.proofs},
                                   {"steps", result.steps},
                                   {"messages", result.messages},
                                   {"findings", json(result.findings)}}));
      continue;
    }
    fmt::print("  {:<14} {:<22} {:>8} {:>9} {:>12} {:>12} {:>8}\n", name(algorithm->collective),
               algorithm->name, ranks, result.proofs, result.steps, result.messages,
               result.findings.size());
    for (std::size_t i = 0; i < std::min(result.findings.size(), shown_findings); ++i) {
      fmt::print("    {}\n", text_of(result.findings[i]));
    }
    if (result.findings.size() > shown_findings) {
      fmt::print("    and {} more\n", result.findings.size() - shown_findings);
    }
  }
  if (options.json) {
    Json::object({{"ranks", ranks},
                  {"algorithms", Json::array(rows)},
                  {"proofs", sum.proofs},
                  {"failures", sum.findings.size()}})
        .print();
  } else {
    fmt::print("# {} for P = {}: {} over {}, {}\n",
               counted(static_cast<std::int64_t>(all.size()), "algorithm"), ranks,
               counted(sum.proofs, "proof"), counted(sum.messages, "message"),
               failures(sum.findings.size()));
  }
  return sum.holds() ? 0 : 1;
}

int verify_schedule(const VerifyOptions& options) {
  auto schedules = parse(file_text(options.schedule), options.schedule);
  const auto problems = problems_of(schedules);
  if (options.fused) schedules = fused(schedules);
  const bool in_groups = options.fused || options.in_groups;
  const Proof proof = in_groups ? verify_fused(schedules, problems) : verify(schedules, problems);
  const Schedule::Header& header = schedules[0].header();
  if (options.json) {
    std::vector<Json> findings;
    for (const Finding& finding : proof.findings) {
      findings.push_back(Json::object({{"flaw", name(finding.flaw)},
                                       {"rank", finding.rank},
                                       {"step", finding.step},
                                       {"sentence", finding.sentence}}));
    }
    Json::object({{"schedule", options.schedule},
                  {"collective", name(header.collective)},
                  {"algorithm", header.algorithm},
                  {"ranks", header.size},
                  {"messages", proof.messages},
                  {in_groups ? "groups" : "rounds", proof.rounds},
                  {"findings", Json::array(findings)}})
        .print();
    return proof.holds() ? 0 : 1;
  }
  for (const Finding& finding : proof.findings) {
    fmt::print("{}: {}: {}\n", options.schedule, name(finding.flaw), finding.sentence);
  }
  fmt::print("# {} {} on {}: {}", name(header.collective), header.algorithm,
             counted(header.size, "rank"), counted(proof.messages, "message"));
  if (proof.rounds >= 0) {
    fmt::print(" in {}", counted(proof.rounds, in_groups ? "fused group" : "round"));
  }
  fmt::print(", {}\n", failures(proof.findings.size()));
  return proof.holds() ? 0 : 1;
}

int verify(const VerifyOptions& options, Launch& launch) {
  if (launch.rank() != 0) return 0;
  return options.schedule.empty() ? verify_algorithms(options) : verify_schedule(options);
}

}  // namespace

void add_verify(CLI::App& app, Command& command) {
  auto options = std::make_shared<VerifyOptions>();
  CLI::App* sub = app.add_subcommand(
      "verify",
      "Prove schedules: every contribution exactly once, messages matched, no deadlock even with\n"
      "synchronous sends, no hazard, nothing out of bounds, rounds and elements as documented");
  auto* most = sub->add_option("--max-ranks", options->max_ranks, "for 1 to N ranks (default 64)")
                   ->type_name("N")
                   ->check(whole_number(1, 4096));
  auto* ranks = sub->add_option("--ranks", options->ranks, "for this number of ranks only")
                    ->type_name("P")
                    ->check(whole_number(1, 4096))
                    ->excludes(most);
  auto* collective =
      sub->add_option("--collective", options->collective, "only this one")->type_name("C");
  auto* algorithm =
      sub->add_option("--algorithm", options->algorithm, "only this one")->type_name("A");
  auto* schedule =
      sub->add_option("--schedule", options->schedule,
                      "instead, a schedule of your own (format: lib/schedule/README.md)")
          ->type_name("FILE")
          ->excludes(most)
          ->excludes(ranks)
          ->excludes(collective)
          ->excludes(algorithm);
  auto* fused =
      sub->add_flag("--fused,--grouped", options->fused,
                    "put messages in fused groups first, and prove that these can run one after\n"
                    "another on each rank, as NCCL runs them");
  sub->add_flag(
         "--in-groups", options->in_groups,
         "the same for a FILE whose messages are in fused groups already: those of one round\n"
         "with nothing between")
      ->needs(schedule)
      ->excludes(fused);
  sub->add_option("--threads", options->threads, "that prove at once (default: one per core)")
      ->type_name("N")
      ->check(whole_number(1, 1024));
  sub->add_flag("--progress", options->progress, "show progress even where stderr is no terminal");
  sub->add_flag("--json", options->json, "print JSON");
  sub->footer(
      "Each algorithm is generated for many counts (even, uneven, fewer than ranks), roots, in "
      "place\n"
      "and not, whole and in segments. The last line says how many proofs there were, and how "
      "many\n"
      "failures.\n"
      "\n"
      "Examples:\n"
      "  baton verify --max-ranks 16\n"
      "  baton verify --collective all_reduce --algorithm ring --ranks 7\n"
      "  baton verify --fused --max-ranks 17\n"
      "  baton verify --schedule my_schedule.txt");
  sub->callback([options, &command] {
    command = [options](Launch& launch) { return verify(*options, launch); };
  });
}

}  // namespace baton::cli
